package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// canLaunch is set once main has promised to play the second stage.
var canLaunch atomic.Bool

// MaybeLaunch turns this process into the second stage if it was started as
// one, and then never returns. Call it first thing in main (and in TestMain):
// whatever runs before it runs inside every sandbox.
func MaybeLaunch() {
	if launch.Requested() {
		launch.Main()
	}
	canLaunch.Store(true)
}

// launchers caches the sealed copies by path, for the life of the process.
var launchers struct {
	sync.Mutex
	byPath map[string]*os.File
}

// launcher returns a sealed, read-only memory file of the second stage. It is
// a copy because a confined process that got hold of the file behind it
// through /proc must not find anything worth rewriting.
func launcher(s *Spec) (*os.File, error) {
	path, err := launcherPath(s.Launcher)
	if err != nil {
		return nil, err
	}
	launchers.Lock()
	defer launchers.Unlock()
	if f := launchers.byPath[path]; f != nil {
		return f, nil
	}
	f, err := sealedCopy(path)
	if err != nil {
		return nil, fmt.Errorf("second stage %s: %w", path, err)
	}
	if launchers.byPath == nil {
		launchers.byPath = map[string]*os.File{}
	}
	launchers.byPath[path] = f
	return f, nil
}

func launcherPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), "gatehouse-launch")
		if trustedFile(beside) {
			return beside, nil
		}
	}
	if canLaunch.Load() {
		return "/proc/self/exe", nil
	}
	return "", ErrNoLauncher
}

// trustedFile reports whether a program may be started in our name: a regular
// file of root's or our own that nobody else can write.
func trustedFile(path string) bool {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o022 != 0 || fi.Mode().Perm()&0o111 == 0 {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Getuid())
}

// trustedProgram finds a helper in the system's directories only: PATH belongs
// to whoever started us, and a helper found there would hold the keys.
func trustedProgram(name string) (string, bool) {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"} {
		if path := filepath.Join(dir, name); trustedFile(path) {
			return path, true
		}
	}
	return "", false
}

func sealedCopy(path string) (*os.File, error) {
	src, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return sealed("gatehouse-launch", 0o555, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}

// sealed writes a memory file, seals it, and returns a descriptor that can
// only read: one that could write would make executing it fail.
func sealed(name string, mode uint32, fill func(io.Writer) error) (*os.File, error) {
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
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// ownFiles are the programs of the gate itself.
func ownFiles() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	return []string{exe, filepath.Join(filepath.Dir(exe), "gatehouse-launch"), filepath.Join(filepath.Dir(exe), "gatehouse-hook")}
}
