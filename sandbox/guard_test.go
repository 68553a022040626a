//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// gate is this binary in the part of a gate that is about to be killed.
func gate(dir, mark string) {
	_, _ = sandbox.Run(context.Background(), sandbox.Spec{
		Command: []string{"/bin/sh", "-c", "echo up; setsid sleep 600 " + mark}, Dir: dir, Stdout: os.Stdout,
	})
}

// A gate that is killed outright takes its runs with it.
func TestAttack42TreeDiesWithTheGate(t *testing.T) {
	dir := work(t)
	mark := "0.77" + strings.TrimLeft(dir, "/tmpghwork-")
	cmd := exec.Command(selfPath(t), "gate", dir, mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("%q %v", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 200 {
		if !running(mark) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the command outlived the gate")
}

// With one socket named, another in the same directory stays out of reach.
func TestAttack38OnlyNamedSockets(t *testing.T) {
	h := newHost(t, 0)
	defer h.close()
	services(h)
	for _, c := range []struct {
		socket string
		reach  bool
	}{{h.ws + "/agent.sock", true}, {h.out + "/docker.sock", false}, {h.ws + "/packet.sock", false}} {
		s := h.spec(sandbox.Bubblewrap)
		s.UnixSockets = []string{h.ws + "/agent.sock"}
		network := "unix"
		if strings.HasSuffix(c.socket, "packet.sock") {
			network = "unixpacket"
		}
		s.Command = []string{h.env["SELF"], "attack", "dial", network, c.socket}
		if r := run(t, s); strings.Contains(string(r.Stdout), "ESCAPED") != c.reach {
			t.Errorf("%s: %s%s", c.socket, r.Stdout, r.Stderr)
		}
	}
}

// TestAttack38HostSockets: sockets of the host that lie in a declared root, in
// no root at all, or nowhere in the file system.
func TestAttack38HostSockets(t *testing.T) {
	for _, a := range reachAttempts() {
		if a.how != "unix socket" && a.how != "abstract socket" {
			continue
		}
		for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock} {
			owner := 0
			if b == sandbox.Landlock && os.Getuid() == 0 {
				owner = escapeUser
			}
			if a.confined(t, b, owner) {
				t.Errorf("%s: %s: ESCAPED", b, a.name)
			}
		}
	}
}

func TestMainForCommandLines(t *testing.T) {
	var out, errs strings.Builder
	o := sandbox.Options{Spec: script(work(t), "cat; exit 4")}
	code, r := sandbox.Main(t.Context(), o, strings.NewReader("hello"), &out, &errs)
	if code != 4 || out.String() != "hello" || r == nil {
		t.Errorf("%d %q %q", code, out.String(), errs.String())
	}
	o.Explain = true
	if code, _ := sandbox.Main(t.Context(), o, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "back-end") {
		t.Errorf("%d %q", code, errs.String())
	}
	o.Explain, o.Spec.Write = false, []string{"*.txt"}
	if code, _ := sandbox.Main(t.Context(), o, nil, &out, &errs); code != sandbox.ExitRefused {
		t.Errorf("%d", code)
	}
}

// A declared directory alternates with a link to a secret one while runs start:
// whatever is mounted is the directory, or nothing runs.
func TestAttack12SwappedRootIsNeverFollowed(t *testing.T) {
	h := newHost(t, 0)
	defer h.close()
	ws, link := h.dir+"/flip", h.dir+"/flop"
	put(t, ws, map[string]string{"secret.txt": "harmless"})
	if err := os.Symlink(h.priv, link); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, ws, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	ran := 0
	for range 40 {
		r, err := sandbox.Run(t.Context(), sandbox.Spec{
			Command: []string{"/bin/cat", h.dir + "/flip/secret.txt"}, Dir: "/usr", Read: []string{h.dir + "/flip/../flip"}, Backend: sandbox.Bubblewrap,
		})
		if err != nil {
			continue
		}
		ran++
		// A link that is there when the Spec is read is the caller's own word;
		// then what it names was declared and is mounted under its real path.
		if strings.Contains(string(r.Stdout), secret) {
			t.Fatal("the secret was mounted in place of the declared directory")
		}
	}
	close(stop)
	<-done
	t.Logf("%d runs started", ran)
}
