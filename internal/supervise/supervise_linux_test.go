package supervise_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
)

func TestMain(m *testing.M) {
	if supervise.Requested() {
		supervise.Main()
	}
	os.Exit(m.Run())
}

// supervisor is one that was started by a test.
type supervisor struct {
	cmd  *exec.Cmd
	conn net.Conn
	out  *bytes.Buffer
}

func start(t *testing.T) *supervisor {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	s := &supervisor{out: &bytes.Buffer{}, cmd: exec.Command("/proc/self/exe", supervise.Mark)}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.ExtraFiles = s.out, s.out, []*os.File{theirs}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if s.conn, err = net.FileConn(ours); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(ours.Close(), theirs.Close()) // both have been handed on
	return s
}

// order has the supervisor run a shell script.
func (s *supervisor) order(t *testing.T, script string, env ...string) {
	t.Helper()
	o := supervise.Order{Path: "/bin/sh", Dir: t.TempDir(), Args: []string{"-c", script}, Env: append(env, "PATH=/usr/bin:/bin")}
	if err := o.Send(s.conn); err != nil {
		t.Fatal(err)
	}
}

// over waits for the word and for the supervisor's end.
func (s *supervisor) over(t *testing.T) supervise.Word {
	t.Helper()
	w, err := supervise.Hear(s.conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return w
}

func TestOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.order(t, `echo "$0 $1 $A"; exit 7`, "A=b=c d\n")
	if w := s.over(t); w.Code != 7 || w.Failed != "" || s.out.String() != "/bin/sh  b=c d\n\n" {
		t.Errorf("%+v %q", w, s.out)
	}
	s = start(t)
	if err := (&supervise.Order{Path: "/nowhere/at-all", Dir: "/"}).Send(s.conn); err != nil {
		t.Fatal(err)
	}
	if w := s.over(t); w.Code != 127 || !strings.Contains(w.Failed, "no such file") {
		t.Errorf("%+v", w)
	}
}

// TestAttackZeroByte: an argument with a zero byte in it would be two, or become
// a variable.
func TestAttackZeroByte(t *testing.T) {
	t.Parallel()
	for _, o := range []supervise.Order{
		{Path: "/bin/true\x00x", Dir: "/"}, {Path: "/bin/true", Dir: "/\x00"},
		{Path: "/bin/true", Dir: "/", Args: []string{"a\x00b"}}, {Path: "/bin/true", Dir: "/", Env: []string{"A=b\x00LD_PRELOAD=x"}},
	} {
		if err := o.Send(io.Discard); err == nil {
			t.Errorf("%q was sent", o)
		}
	}
}

// TestNeverUsed: a supervisor whose gate goes before it has an order goes too,
// with its cgroup.
func TestNeverUsed(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestGroup: where cgroups can be made, a tree is in one of its own, all of it
// dies with the gate's half of the socket, and the cgroup goes with it.
func TestGroup(t *testing.T) {
	t.Parallel()
	s := start(t)
	dir := t.TempDir()
	// A tree that grows while it is killed, away from its parents.
	s.order(t, `cat /proc/self/cgroup > $D/group; f() { while :; do (setsid sleep 1000 &); done; }; f & f & touch $D/ready; wait`, "D="+dir)
	for _, err := os.Stat(filepath.Join(dir, "ready")); err != nil; _, err = os.Stat(filepath.Join(dir, "ready")) {
		time.Sleep(time.Millisecond)
	}
	text, err := os.ReadFile(filepath.Join(dir, "group"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.over(t)
	group := lastPart(text)
	mount, writable := probe(t, lastPart(own))
	if !writable {
		t.Skip("no cgroup can be made here (that takes a writable hierarchy of version 2): the tree was ended without one")
	}
	if !strings.Contains(group, "gatehouse-job-") {
		t.Fatalf("the tree is in no cgroup of its own: %q", group)
	}
	if _, err := os.Stat(filepath.Join(mount, group)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup %s is still there: %v", group, err)
	}
}

// lastPart is the path in the line for version 2.
func lastPart(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// probe looks for the hierarchy and tries to make a cgroup in one's own.
func probe(t *testing.T, own string) (mount string, writable bool) {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(mount, own, "gatehouse-test-"+filepath.Base(t.TempDir()))
		if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err == nil && os.Mkdir(dir, 0o700) == nil {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
			return mount, true
		}
	}
	return "", false
}
