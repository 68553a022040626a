//go:build !(linux && amd64)

package launch

// Entry is empty where the second stage needs the runtime.
const Entry = ""
