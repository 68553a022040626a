//go:build linux

package sandbox_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// A channel's listener is made inside and served outside; other sockets of the
// host stay out of reach though the family is open.
func TestChannelReachesTheCallerAlone(t *testing.T) {
	system(t, "python3")
	dir := work(t)
	other, err := net.Listen("unix", filepath.Join(dir, "other.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_ = os.Chmod(filepath.Join(dir, "other.sock"), 0o777)
	put(t, dir, map[string]string{"p.py": `
import socket, sys
def say(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path); s.sendall(b"hello"); s.shutdown(1); print(path[-12:], s.recv(64).decode())
    except OSError as e: print(path[-12:], "failed", e.errno)
say("/run/in.sock"); say("` + dir + `/other.sock"); say("/run/docker.sock"); say("\0gh-abstract")
`})
	s := script(dir, "python3 p.py")
	s.Channel = &sandbox.Channel{Path: "/run/in.sock", Serve: func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			_, _ = c.Write([]byte("heard " + string(b)))
			_ = c.Close()
		}
	}}
	r := run(t, s)
	if !strings.Contains(string(r.Stdout), "run/in.sock heard hello") || strings.Count(string(r.Stdout), "failed") != 3 {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	s.Channel.Path = "/tmp/x"
	if _, err := sandbox.Run(t.Context(), s); err == nil {
		t.Error("a channel outside of /run was made")
	}
	s.Channel.Path, s.Backend = "/run/in.sock", sandbox.Landlock
	if _, err := sandbox.Run(t.Context(), s); err == nil {
		t.Error("a channel without a file system of its own")
	}
}

// Files are there by content and cannot be changed; names mean nothing in a
// private root, paths do.
func TestFilesAndPrivateRoots(t *testing.T) {
	dir, home := work(t), work(t)
	put(t, home, map[string]string{"keep": "kept\n"})
	s := script(dir, `cat /etc/tool/policy; echo evil > /etc/tool/policy; rm -f /etc/tool/policy
echo x > "$HOME/.bashrc"; echo evil > "$HOME/keep"; mkdir -p .claude; echo '{"hooks":1}' > .claude/settings.json`)
	s.Private, s.Protected, s.Files = []string{home}, []string{home + "/keep"}, map[string]string{"/etc/tool/policy": "the policy\n"}
	s.Env.Set = map[string]string{"HOME": home}
	r := run(t, s)
	if string(r.Stdout) != "the policy\n" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	if b, err := os.ReadFile(home + "/.bashrc"); err != nil || string(b) != "x\n" {
		t.Errorf("%q %v", b, err)
	}
	if b, err := os.ReadFile(home + "/keep"); err != nil || string(b) != "kept\n" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := os.Stat(dir + "/.claude/settings.json"); err == nil || len(r.Quarantined) != 1 {
		t.Errorf("%v %+v", err, r.Quarantined)
	}
	if _, err := os.Stat("/etc/tool"); err == nil {
		t.Error("a file appeared on the host")
	}
}
