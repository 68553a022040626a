package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archDenied are calls only some architectures have.
var archDenied = []syscallRule{
	{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE}, {"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD},
}

var (
	archDeniedShared []syscallRule
	archModes        []modeCall
)
