// Package gatetest starts the real gatehouse binary for tests.
//
// [Start] builds the binary once per test process, starts `gatehouse up` on a
// directory of its own and waits until it answers. Everything a test does goes
// through the command line, the unix socket or TCP, as a user's would. The
// daemon is stopped when the test ends, and what it logged is shown if the test
// failed.
//
// Nothing here reaches into the daemon's memory: what a test cannot see from
// outside, a user cannot see either.
package gatetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
)

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gatehouse-bin-")
	if err != nil {
		return "", err
	}
	const commands = "github.com/seed-3ebc6b8a/gatehouse/cmd/"
	// The hook and the second stage of a sandbox lie beside the main program, as
	// they do when installed.
	cmd := exec.Command("go", "build", "-o", dir, commands+"gatehouse", commands+"gatehouse-hook", commands+"gatehouse-launch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	// Other users start it as well, in tests of what they cannot do.
	return filepath.Join(dir, "gatehouse"), os.Chmod(dir, 0o755)
})

// Binary returns the path of the gatehouse binary, built from this tree.
func Binary(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// Gate is a running daemon.
type Gate struct {
	// Home is its directory, URL its TCP address.
	Home, URL string
	// Program is what is started: the binary of this tree, unless a test
	// says otherwise.
	Program string
	// Args are what `up` is started with, besides the directory and address.
	Args []string
	// Env is added to the daemon's environment.
	Env []string
	// Wrap is put in front of the daemon's command line. It must end in
	// becoming the daemon, so that signals reach it.
	Wrap []string

	t    testing.TB
	addr string
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{}
	tty  *os.File // the controlling terminal of the next start, nil for none
}

// Start starts a gate with the arguments and stops it when the test ends.
func Start(t testing.TB, args ...string) *Gate {
	t.Helper()
	g := New(t, args...)
	g.Up()
	return g
}

// New prepares a gate without starting it.
func New(t testing.TB, args ...string) *Gate {
	t.Helper()
	// Unix sockets have short names; test directories have long ones.
	home, err := os.MkdirTemp("", "gh-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	g := &Gate{Program: Binary(t), Home: home, URL: "http://" + addr, Args: args, t: t, addr: addr, log: &syncBuffer{}}
	t.Cleanup(func() {
		g.Stop()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", g.log)
		}
	})
	return g
}

// Up starts the daemon and waits until it answers.
func (g *Gate) Up() {
	g.t.Helper()
	if err := g.TryUp(); err != nil {
		g.t.Fatalf("the gate did not come up: %v\n%s", err, g.log)
	}
}

// TryUp is Up for tests that expect it to fail.
func (g *Gate) TryUp() error {
	if err := g.Launch(); err != nil {
		return err
	}
	for {
		err := g.Client("").Do(context.Background(), "GET", "/v1/health", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-g.done:
			return errors.New("it ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Launch starts the daemon and does not wait for it.
func (g *Gate) Launch() error {
	line := slices.Concat(g.Wrap, []string{g.Program, "up", "--data", g.Home, "--listen", g.addr}, g.Args)
	g.cmd = exec.Command(line[0], line[1:]...)
	g.cmd.Env = append(os.Environ(), g.Env...)
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	// A session of its own: the daemon must not find the tests' terminal.
	g.cmd.SysProcAttr = ownSession(g.tty != nil)
	if g.tty != nil {
		g.cmd.Stdin = g.tty
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	done, cmd := make(chan struct{}), g.cmd
	g.done = done
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is the test's business
	}()
	return nil
}

// PID is the process id of the daemon.
func (g *Gate) PID() int { return g.cmd.Process.Pid }

// Kill ends the daemon as a crash would.
func (g *Gate) Kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill() // it may have ended by itself
		<-g.done
	}
}

// Stop ends the daemon as Ctrl-C would.
func (g *Gate) Stop() {
	if g.cmd != nil {
		_ = g.cmd.Process.Signal(syscall.SIGTERM)
		<-g.done
	}
}

// Log returns what the daemon wrote so far.
func (g *Gate) Log() string { return g.log.String() }

// Socket is the daemon's unix socket.
func (g *Gate) Socket() string { return filepath.Join(g.Home, "gatehouse.sock") }

// Client returns a client on the unix socket, with a secret or none.
func (g *Gate) Client(secret string) *client.Client { return client.Unix(g.Socket(), secret) }

// Run runs a command of the binary against this gate and returns what it
// printed and its exit code.
func (g *Gate) Run(args ...string) (stdout, stderr string, code int) {
	g.t.Helper()
	cmd := exec.Command(g.Program, args...)
	cmd.Env = append(os.Environ(), "GATEHOUSE_HOME="+g.Home)
	cmd.SysProcAttr = ownSession(false)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Must is Run for commands that have to succeed; it returns what they printed.
func (g *Gate) Must(args ...string) string {
	g.t.Helper()
	out, errs, code := g.Run(args...)
	if code != 0 {
		g.t.Fatalf("gatehouse %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// Enrol enrols an approver and returns the credential and a file that holds it.
func (g *Gate) Enrol(name string) (credential, file string) {
	g.t.Helper()
	credential = strings.TrimSpace(g.Must("approver", "add", name))
	file = filepath.Join(g.t.TempDir(), name+".key")
	if err := os.WriteFile(file, []byte(credential), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return credential, file
}

// Agent enrols an agent on behalf of an approver and returns its token.
func (g *Gate) Agent(credential, name string) string {
	g.t.Helper()
	got := &api.SecretResponse{}
	if err := g.Client(credential).Do(context.Background(), "POST", "/v1/agents", &api.NameRequest{Name: name}, got); err != nil {
		g.t.Fatal(err)
	}
	return got.Secret
}

// HTTP makes a request over TCP and returns the answer with its body read.
func (g *Gate) HTTP(method, path, secret string, header http.Header, in any) (*http.Response, []byte) {
	g.t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.MarshalWrite(&body, in); err != nil {
			g.t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, g.URL+path, &body)
	if err != nil {
		g.t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := noRedirects.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	var read bytes.Buffer
	if _, err := read.ReadFrom(resp.Body); err != nil {
		g.t.Fatal(err)
	}
	return resp, read.Bytes()
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
