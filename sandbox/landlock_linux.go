package sandbox

import (
	"golang.org/x/sys/unix"
)

const (
	landlockRead uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockV1   uint64 = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// landlockABI is the kernel's version of Landlock, 0 for none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// landlockMasks are all rights a version knows: what is not handled is not
// restricted, so nothing may be left out.
func landlockMasks(abi int) (fs, scoped uint64) {
	if abi < 1 {
		return 0, 0
	}
	fs = landlockV1
	if abi >= 2 {
		fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return fs, scoped
}
