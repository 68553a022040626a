//go:build linux

package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestInteractive sits at a terminal before a confined shell: it has a terminal
// and a session of its own, Ctrl-C reaches what runs in it and not the launcher,
// a changed size arrives, and the exit code comes back.
func TestInteractive(t *testing.T) {
	const inside = `trap 'echo interrupted; over=yes' INT
test -t 0 && test -t 1 && test -t 2 && [ "$(cut -d' ' -f6 /proc/$$/stat)" != 0 ] && echo ready
until [ "$over" ]; do sleep 0.1; done
until [ "$(stty size)" = "12 34" ]; do sleep 0.05; done
echo resized; read x; echo "got $x"; exit 6`
	cmd := exec.Command(selfPath(t), "interactive", work(t), inside)
	person, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	var seen strings.Builder
	until := func(word string) {
		t.Helper()
		for buf := make([]byte, 1024); !strings.Contains(seen.String(), word); {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				t.Fatalf("it ended with %v before %q: %q", err, word, seen.String())
			}
		}
	}
	say := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	until("ready")
	say("\x03")
	until("interrupted")
	if err := pty.Setsize(person, &pty.Winsize{Rows: 12, Cols: 34}); err != nil {
		t.Fatal(err)
	}
	until("resized")
	say("hello\r")
	until("got hello")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 6 {
		t.Errorf("exit code %d", code)
	}
}
