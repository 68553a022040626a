//go:build linux

package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// TestEngines runs real containers on what a program needs of the host, read-only.
// No image is needed, and none can be pulled.
func TestEngines(t *testing.T) {
	for _, b := range []sandbox.Backend{sandbox.Podman, sandbox.Docker} {
		t.Run(string(b), func(t *testing.T) { testEngine(t, b) })
	}
}

func testEngine(t *testing.T, b sandbox.Backend) {
	dir := work(t)
	if os.Getuid() == 0 {
		_ = os.Chown(dir, escapeUser, escapeUser)
	}
	put(t, dir, map[string]string{".git/config": "[core]\n", ".git/HEAD": "x", "keep": "hello\n"})
	_ = os.Chmod(dir, 0o777)
	s := sandbox.Spec{Dir: dir, Write: []string{dir}, Backend: b, Limits: sandbox.Limits{Processes: 64}}
	needBackend(t, b)
	s.Command = []string{"/bin/sh", "-c", `echo x > $HOME/x && cat keep; echo made > made; seq 100 | sort -rn | head -1 > /tmp/x && cat /tmp/x
echo evil > .git/config; mv .git gone; echo evil > /etc/evil; echo evil > /usr/evil
(exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null; ls /run /tmp; id -u; grep -i "^cap\|nonew" /proc/self/status; cat /proc/1/cmdline; head -c 9 /etc/hostname /etc/fstab /etc/debian_version && echo RE""AD; exit 5`}
	r := run(t, s)
	out := string(r.Stdout)
	if r.ExitCode != 5 || !strings.Contains(out, "hello\n100\n") || !strings.Contains(out, "NoNewPrivs:\t1") || !strings.Contains(out, "CapEff:\t0000000000000000") {
		t.Errorf("exit %d\n%s\n%s", r.ExitCode, out, r.Stderr)
	}
	for path, want := range map[string]string{"made": "made\n", ".git/config": "[core]\n"} {
		if b, err := os.ReadFile(dir + "/" + path); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", path, b, err)
		}
	}
	for _, path := range []string{"/etc/evil", "/usr/evil"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s appeared on the host", path)
		}
	}
	want := sandbox.WriteRoots | sandbox.ReadAbsent | sandbox.ProtectedPaths | sandbox.NoNetwork | sandbox.Privileges | sandbox.Syscalls | sandbox.TreeDead
	if r.Backend != b || !r.Guarantees.Has(want|sandbox.ReadRoots) || strings.Contains(out, "READ") {
		t.Errorf("%s: %s", r.Backend, r.Guarantees)
	}
}
