package beside

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Find returns the path of a program in the main program's folder, if it may be
// started in our name.
func Find(name string) (string, bool) {
	exe, err := os.Executable()
	if err != nil {
		return "", false
	}
	path := filepath.Join(filepath.Dir(exe), name)
	return path, Trusted(path)
}

// Trusted reports whether a program may be started in our name: a regular file
// of root's or our own that nobody else can write.
func Trusted(path string) bool {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o022 != 0 || fi.Mode().Perm()&0o111 == 0 {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Getuid())
}

// Copy makes a sealed copy of a program in memory, under a name.
func Copy(name, path string) (*os.File, error) {
	src, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return Sealed(name, 0o555, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}

// Sealed writes a memory file, seals it, and returns a descriptor that can only
// read: one that could write would make executing it fail.
func Sealed(name string, mode uint32, fill func(io.Writer) error) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), name)
	defer w.Close()
	if err := fill(w); err != nil {
		return nil, err
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return nil, err
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, err
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}
