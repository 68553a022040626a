//go:build linux

package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Nothing of the command runs before the word, and nothing after a no.
func TestBeforeStopsTheCommand(t *testing.T) {
	for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined} {
		t.Run(string(b), func(t *testing.T) {
			dir := work(t)
			if os.Getuid() == 0 { // nothing maps root's files without namespaces
				_ = os.Chown(dir, escapeUser, escapeUser)
			}
			no := errors.New("not today")
			asked := 0
			s := script(dir, "echo ran > mark")
			s.Backend, s.Without, s.AllowUnconfined = b, sandbox.ProtectedPaths, b == sandbox.Unconfined
			s.Before = func(st sandbox.Standing) error {
				asked++
				if st.Backend != b || (b != sandbox.Unconfined) != st.Guarantees.Has(sandbox.WriteRoots) {
					t.Errorf("%+v", st)
				}
				if _, err := os.Stat(filepath.Join(dir, "mark")); err == nil {
					t.Error("it ran before it was asked about")
				}
				return no
			}
			var stopped *sandbox.StoppedError
			if _, err := sandbox.Run(t.Context(), s); !errors.Is(err, no) || !errors.As(err, &stopped) {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "mark")); err == nil || asked != 1 {
				t.Errorf("it ran after a no; asked %d times", asked)
			}
			s.Before = func(sandbox.Standing) error { return nil }
			if r := run(t, s); r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A command that may start no program cannot, however it tries, and says so.
func TestAttack39NoExec(t *testing.T) {
	for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(b), func(t *testing.T) {
			for name, command := range map[string]string{
				"a program": "/bin/echo ESCAPED; :", "the loader": "/lib64/ld-linux-x86-64.so.2 /bin/echo ESCAPED; :",
				"replacing itself": "exec /bin/echo ESCAPED", "in the background": "/bin/echo ESCAPED & wait", "itself": "/bin/sh -c 'echo ESCAPED'; :",
			} {
				s := script(work(t), command)
				s.Backend, s.Without = b, sandbox.ProtectedPaths
				if r := run(t, s); !strings.Contains(string(r.Stdout), "ESCAPED") {
					t.Fatalf("%s: does not work even when allowed: %s", name, r.Stderr)
				}
				s.NoExec = true
				r := run(t, s)
				if strings.Contains(string(r.Stdout), "ESCAPED") {
					t.Errorf("%s: ESCAPED", name)
				}
				if !r.Guarantees.Has(sandbox.NoPrograms) || len(r.Refusals) == 0 || r.Refusals[0].Subject != "execve" {
					t.Errorf("%s: %v %+v", name, r.Guarantees, r.Refusals)
				}
			}
			s := script(work(t), "x=1; echo built in $((x+1))")
			s.Backend, s.Without, s.NoExec = b, sandbox.ProtectedPaths, true
			if r := run(t, s); string(r.Stdout) != "built in 2\n" {
				t.Errorf("%q %q", r.Stdout, r.Stderr)
			}
		})
	}
}
