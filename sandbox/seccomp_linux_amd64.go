package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// archDenied are calls only this architecture has.
var archDenied = []syscallRule{
	{"iopl", unix.SYS_IOPL}, {"ioperm", unix.SYS_IOPERM}, {"modify_ldt", unix.SYS_MODIFY_LDT}, {"uselib", unix.SYS_USELIB},
	{"ustat", unix.SYS_USTAT}, {"sysfs", unix.SYS_SYSFS}, {"_sysctl", unix.SYS__SYSCTL}, {"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE},
	{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD}, {"create_module", unix.SYS_CREATE_MODULE}, {"get_kernel_syms", unix.SYS_GET_KERNEL_SYMS},
	{"query_module", unix.SYS_QUERY_MODULE}, {"vserver", unix.SYS_VSERVER},
}

var archDeniedShared = []syscallRule{
	{"chown", unix.SYS_CHOWN}, {"lchown", unix.SYS_LCHOWN}, {"utime", unix.SYS_UTIME}, {"utimes", unix.SYS_UTIMES},
	{"futimesat", unix.SYS_FUTIMESAT},
}

var archModes = []modeCall{
	{nr: unix.SYS_CHMOD, mode: 1, path: true},
	{nr: unix.SYS_OPEN, flags: 1, mode: 2},
	{nr: unix.SYS_CREAT, mode: 1},
	{nr: unix.SYS_MKNOD, mode: 1},
}
