//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asKnownUser runs a test of this binary again, in a mount namespace in which
// the system knows the user of the attempts: firejail only works for users it
// can look up. Nothing of the machine's own is changed.
func asKnownUser(t *testing.T, test string, become bool) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh-known-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(dir, 0o755))
	must(os.Mkdir(dir+"/home", 0o755))
	must(os.Chown(dir+"/home", escapeUser, escapeUser))
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("ghescape:x:%d:%d::%s/home:/bin/sh\n", escapeUser, escapeUser, dir),
		"group":  fmt.Sprintf("ghescape:x:%d:\n", escapeUser),
		// Ids to give away, without which Podman does not run for a user.
		"subuid": "ghescape:2000000:65536\n",
		"subgid": "ghescape:2000000:65536\n",
	} {
		old, err := os.ReadFile("/etc/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(err)
		must(os.WriteFile(filepath.Join(dir, name), append(old, line...), 0o644))
	}
	exe := selfPath(t)
	cmd := exec.Command(exe, "known-user", dir, "-test.run="+test, "-test.v", "-only="+*only)
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/home", "GH_KNOWN_USER=yes", "GH_LAUNCHER=" + shippedLauncher(t)}
	if become {
		cmd.Env = append(cmd.Env, "GH_BECOME=yes")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// knownUser is the inner half: it puts the files in place and becomes the tests.
func knownUser(dir string, args []string) error {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	for _, name := range []string{"passwd", "group", "subuid", "subgid"} {
		if file := filepath.Join(dir, name); exists(file) {
			err = errors.Join(err, unix.Mount(file, "/etc/"+name, "", unix.MS_BIND, ""))
		}
	}
	if err != nil {
		return err
	}
	if os.Getenv("GH_BECOME") != "" {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(escapeUser), syscall.Setuid(escapeUser)); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(exe, append([]string{exe}, args...), os.Environ())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
