//go:build linux && !amd64 && !arm64

package sandbox

// auditArch zero means that no filter can be built, and nothing is started.
const auditArch = 0

var (
	archDenied, archDeniedShared []syscallRule
	archModes                    []modeCall
)
