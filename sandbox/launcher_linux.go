package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/seed-3ebc6b8a/gatehouse/internal/beside"
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
	f, err := beside.Copy("gatehouse-launch", path)
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
	if path, ok := beside.Find("gatehouse-launch"); ok {
		return path, nil
	}
	if canLaunch.Load() {
		return "/proc/self/exe", nil
	}
	return "", ErrNoLauncher
}

// trustedProgram finds a helper in the system's directories only: PATH belongs
// to whoever started us, and a helper found there would hold the keys.
func trustedProgram(name string) (string, bool) {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"} {
		if path := filepath.Join(dir, name); beside.Trusted(path) {
			return path, true
		}
	}
	return "", false
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
