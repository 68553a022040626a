package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// connectTo is the variable that makes the test binary a client: it connects to
// the socket, says hello and stays until its input ends.
const connectTo = "GATEHOUSE_TEST_CONNECT"

func TestMain(m *testing.M) {
	if socket := os.Getenv(connectTo); socket != "" {
		os.Exit(client(socket))
	}
	// The test server's output is read until the process ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

func client(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// errBack takes a transaction back on purpose.
var errBack = errors.New("taken back")

type hall struct {
	*session.Registry
	s    *store.Store
	keys *keyring.Keyring
}

func newHall(t testing.TB, s *store.Store) *hall {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{session.New(keys, nil), s, keys}
	h.write(t, h.Prepare)
	return h
}

func (h *hall) write(t testing.TB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := h.s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// back runs fn in a write that is taken back, and returns fn's error.
func (h *hall) back(t testing.TB, fn func(tx *store.Tx) error) (err error) {
	t.Helper()
	if back := h.s.Write(t.Context(), func(tx *store.Tx) error {
		err = fn(tx)
		return errBack
	}); !errors.Is(back, errBack) {
		t.Fatal(back)
	}
	return err
}

func (h *hall) open(t testing.TB, o session.Open) (s *session.Session, opened bool, err error) {
	t.Helper()
	err = h.s.Write(t.Context(), func(tx *store.Tx) (err error) {
		s, opened, err = h.Open(tx, o)
		return err
	})
	return s, opened, err
}

// self is the test's own process with its ancestors.
func self(t testing.TB) session.Peer {
	t.Helper()
	chain, err := session.Ancestry(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return session.Peer{Chain: chain}
}

// own opens a session of the test's own process.
func own(t testing.TB, ref string) session.Open {
	peer := self(t)
	return session.Open{Agent: "claude", Surface: "hook:claude", Workspace: "/src", Ref: ref, Process: peer.Chain[0], Peer: peer}
}

// server hears clients on a unix socket.
type server struct {
	socket string
	l      *net.UnixListener
}

func newServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "gatehouse-peer-") // a short path: sockets have 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &server{socket, l}
}

// accept returns who connected.
func (s *server) accept(t *testing.T) (session.Peer, error) {
	t.Helper()
	conn, err := s.l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return session.PeerOf(conn)
}

// start runs a command that connects to the server, and returns its peer. The
// command ends when stop is called, or with the test.
func (s *server) start(t *testing.T, name string, args ...string) (peer session.Peer, stop func()) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), connectTo+"="+s.socket)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_ = cmd.Wait() // how it ended does not matter
		}
	}
	t.Cleanup(stop)
	peer, err = s.accept(t)
	if err != nil {
		t.Fatal(err)
	}
	return peer, stop
}
