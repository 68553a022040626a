// Package agents_test runs the real agent CLIs against the real gate, with a
// scripted model on the loopback in place of the model.
//
// The CLIs come from the npm registry: `go run ./test/all` installs each into
// its cache and names the folder in a variable, GATEHOUSE_CLI_CLAUDE and so on.
// A test of a CLI that is not there is skipped and says so.
package agents_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// policyText denies one harmless command, so that nothing but the gate can be
// the reason that it did not run.
const policyText = `version = 1
[[rules]]
name = "never"
command = "touch never*"
level = "DENY"
reason = "the test forbids it"
matches = ["touch never.txt"]
misses = ["touch other.txt"]
`

// world is a gate, an agent connected to it, and a person.
type world struct {
	*gatetest.Gate
	t          *testing.T
	cli        canary.CLI
	home, dir  string
	credential string
}

// cli finds an agent's program, or skips the test.
func cli(t *testing.T, name string) canary.CLI {
	t.Helper()
	variable := "GATEHOUSE_CLI_" + strings.ToUpper(name)
	folder := os.Getenv(variable)
	if folder == "" {
		t.Skipf("%s names no folder with the CLI %s; go run ./test/all installs it", variable, name)
	}
	program := filepath.Join(folder, "node_modules", ".bin", name)
	if _, err := os.Stat(program); err != nil {
		t.Skipf("the CLI %s could not be had: %v", name, err)
	}
	return canary.CLI{Name: name, Program: program}
}

// begin starts a gate with an agent that is not connected yet.
func begin(t *testing.T, name string) *world {
	t.Helper()
	w := &world{t: t, cli: cli(t, name), home: t.TempDir(), dir: t.TempDir()}
	w.Gate = gatetest.New(t)
	w.Env = []string{"HOME=" + w.home}
	w.write(filepath.Join(w.Home, "policy.toml"), policyText)
	w.Up()
	w.credential, _ = w.Enrol("ann")
	w.prepare()
	return w
}

// connected starts a gate with an agent connected to it.
func connected(t *testing.T, name string, args ...string) *world {
	t.Helper()
	w := begin(t, name)
	w.connect(args...)
	return w
}

// prepare writes what the CLI itself needs to start without a person.
func (w *world) prepare() {
	switch w.cli.Name {
	case "codex": // its folder has to be there, whatever is in it
		must(w.t, os.MkdirAll(filepath.Join(w.home, ".codex"), 0o755))
	case "copilot": // it unpacks itself into the home; once is enough
		cache := filepath.Join(os.Getenv("GATEHOUSE_CLI_COPILOT"), "unpacked")
		must(w.t, errors.Join(os.MkdirAll(cache, 0o755), os.MkdirAll(filepath.Join(w.home, ".cache"), 0o755), os.Symlink(cache, filepath.Join(w.home, ".cache", "copilot"))))
	case "gemini":
		w.write(filepath.Join(w.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// connect runs `gatehouse connect` as the agent's user would.
func (w *world) connect(args ...string) string {
	w.t.Helper()
	out, err := w.command(append([]string{"connect", w.cli.Name}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("gatehouse connect: %v\n%s", err, out)
	}
	return string(out)
}

// command is a command of the binary, in the agent's home and directory.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(gatetest.Binary(w.t), append(args, "--data", w.Home)...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOME="+w.home, "PATH="+filepath.Dir(w.cli.Program)+":"+os.Getenv("PATH"))
	return cmd
}

// run runs the agent through a script and returns what the model saw.
func (w *world) run(r canary.Run, steps ...canary.Step) (results []string, out canary.Result) {
	w.t.Helper()
	m, err := canary.Start(steps...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer m.Close()
	r.Dir, r.Home = w.dir, w.home
	out, err = w.cli.Run(context.Background(), m, r)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", w.cli.Name, err, out.Stdout, out.Stderr)
	}
	w.t.Logf("%s: exit %d\n%s%s\nthe model saw: %q", w.cli.Name, out.Exit, out.Stdout, out.Stderr, m.Results())
	return m.Results(), out
}

// exists says whether the agent made a file in its directory.
func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

// present keeps a person's channel open while the test runs.
func (w *world) present() {
	w.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	joined, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		first := true
		_ = w.Client(w.credential).Watch(ctx, func() error { // it ends when the test does
			if first {
				close(joined)
			}
			first = false
			return nil
		})
	}()
	w.t.Cleanup(func() { leave(); <-left })
	<-joined
}

// answerOr waits for the agent's question. The test fails if the agent ends
// without one.
func (w *world) answerOr(ended <-chan []string) admin.Request {
	w.t.Helper()
	for {
		list := &api.ApprovalList{}
		if err := w.Client(w.credential).Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, list); err != nil {
			w.t.Fatal(err)
		}
		if len(list.Requests) > 0 {
			return list.Requests[0]
		}
		select {
		case results := <-ended:
			w.t.Fatalf("the agent ended without a question; the model saw %q", results)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// approve says yes to a request, once.
func (w *world) approve(r admin.Request) {
	w.t.Helper()
	if err := w.Client(w.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// deny says no to a request, in words for the agent.
func (w *world) deny(r admin.Request, text string) {
	w.t.Helper()
	if err := w.Client(w.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/deny", &api.ReplyRequest{Digest: r.Digest, Text: text}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// binary is the gatehouse that is tested.
func (w *world) binary() string { return gatetest.Binary(w.t) }

// stopStarted ends a gate that a hook started, by the process that listens.
func (w *world) stopStarted() {
	w.t.Helper()
	conn, err := net.Dial("unix", w.Socket())
	if err != nil {
		w.t.Fatalf("no gate was started: %v", err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		w.t.Fatal(err)
	}
	var cred *unix.Ucred
	if err := errors.Join(raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}), err); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.Kill(int(cred.Pid), unix.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
}

// records lists the log's records of calls, oldest first.
func (w *world) records(kind string) []admin.Record {
	w.t.Helper()
	page := &api.LogPage{}
	if err := w.Client(w.credential).Do(context.Background(), "GET", "/v1/log?limit=200&kind="+kind, nil, page); err != nil {
		w.t.Fatal(err)
	}
	return page.Records
}

// bodies are the records of a kind, as they are stored.
func (w *world) bodies(kind string) string {
	w.t.Helper()
	var all strings.Builder
	for _, r := range w.records(kind) {
		full := &admin.Record{}
		if err := w.Client(w.credential).Do(context.Background(), "GET", "/v1/log/"+r.ID, nil, full); err != nil {
			w.t.Fatal(err)
		}
		all.Write(full.Body)
		all.WriteByte('\n')
	}
	return all.String()
}

// saw says whether the model was told something.
func saw(results []string, text string) bool {
	return strings.Contains(strings.Join(results, "\n"), text)
}
