package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// shown is what a sandbox that holds everything proves.
var shown = []string{
	"write-roots", "read-roots", "read-absent", "metadata", "no-network", "unix-sockets", "processes", "ipc", "privileges", "syscalls",
	"environment", "descriptors", "tree-dead", "terminal",
}

func runArgs(t *testing.T, r call.Run) []byte {
	t.Helper()
	args, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// TestAttack15ReceiptBeforeTheStart: a run that was let through because a
// sandbox holds it starts only as what was let through, with what it needs
// shown, once, and from its own session.
func TestAttack15ReceiptBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	args := runArgs(t, call.Run{Command: []string{"make", "test"}, Read: []string{dir + "/**"}})
	ask := &api.CallRequest{Kind: "external", Operation: call.OpRun, Args: args, Dir: dir}
	got := w.want(gate.Allowed, ask)
	if len(got.Requires) != 1 || got.Requires[0].Name != "confined" {
		t.Fatalf("it requires %v", got.Requires)
	}
	show := func(as string, r api.ReceiptRequest) error {
		return w.Client(as).Do(context.Background(), "POST", "/v1/calls/"+got.CallID+"/receipt", &r, nil)
	}
	good := api.ReceiptRequest{Args: args, Dir: dir, Backend: "bubblewrap", Guarantees: shown}
	for name, bad := range map[string]func(r *api.ReceiptRequest){
		"nothing shown": func(r *api.ReceiptRequest) { r.Guarantees = nil },
		"one missing":   func(r *api.ReceiptRequest) { r.Guarantees = shown[1:] },
		"any network": func(r *api.ReceiptRequest) {
			r.Guarantees = strings.Split(strings.ReplaceAll(strings.Join(shown, " "), "no-network ", ""), " ")
		},
		"another command": func(r *api.ReceiptRequest) {
			r.Args = runArgs(t, call.Run{Command: []string{"make", "evil"}, Read: []string{dir + "/**"}})
		},
		"another root": func(r *api.ReceiptRequest) {
			r.Args = runArgs(t, call.Run{Command: []string{"make", "test"}, Read: []string{dir + "/**"}, Write: []string{dir + "/**"}})
		},
		"another place": func(r *api.ReceiptRequest) { r.Dir = "/" },
		"not held": func(r *api.ReceiptRequest) {
			r.Args = runArgs(t, call.Run{Command: []string{"make", "test"}, Unconfined: true})
		},
		"unknown member": func(r *api.ReceiptRequest) { r.Args = []byte(`{"command":["make","test"],"extra":1}`) },
	} {
		r := good
		bad(&r)
		if err := show(w.token, r); err == nil || strings.Contains(err.Error(), "launcher") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := show(w.Gate.Agent(w.credential, "other"), good); err == nil {
		t.Error("another agent's receipt was taken")
	}
	// All of it is right but who shows it: this is no launcher of the gate's.
	for _, child := range []int{0, 1, os.Getpid(), confinedChild(t)} {
		forged := good
		forged.Child = child
		if err := show(w.token, forged); err == nil || !strings.Contains(err.Error(), "not from the gate's own launcher") {
			t.Errorf("a forged receipt, child %d: %v", child, err)
		}
	}
	refusals := []gate.Refusal{{Kind: "host", Subject: "evil.example:443", Program: "curl", Reason: "not declared", Count: 2}, {Kind: "syscall", Subject: "ptrace", Program: "gdb", Count: 1}}
	end := &api.OutcomeRequest{Outcome: gate.Failed, Detail: "exit 2", Refusals: refusals}
	if err := w.Client(w.token).Do(context.Background(), "POST", "/v1/calls/"+got.CallID+"/outcome", end, nil); err != nil {
		t.Fatal(err)
	}
	page := &api.LogPage{}
	if err := w.Client(w.credential).Do(context.Background(), "GET", "/v1/log/calls/"+got.CallID, nil, page); err != nil {
		t.Fatal(err)
	}
	text := bodies(t, page.Records)
	for _, want := range []string{`"evil.example:443"`, `"ptrace"`, `"exit 2"`, `"make"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if strings.Contains(text, `"receipt"`) {
		t.Error("a forged receipt is on record")
	}
}

// confinedChild starts a process that has a filter and no privileges, as what a
// launcher starts would, but is not below one.
func confinedChild(t *testing.T) int {
	t.Helper()
	needtest.Programs(t, "bwrap")
	cmd := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// TestAttack15ReceiptIsBound: a real run's receipt says what the gate saw of it
// for itself, and a launcher that another process steers is not believed. That
// one is taken once TestProjectCodeRunsConfined shows.
func TestAttack15ReceiptIsBound(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "bwrap")
	w := begin(t)
	dir := t.TempDir()
	command := func(args ...string) (string, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GATEHOUSE_HOME=" + w.Home}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := command(gatetest.Binary(t), "run", "--read", dir, "--", "true"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page := &api.LogPage{}
	if err := w.Client(w.credential).Do(t.Context(), "GET", "/v1/log?kind=receipt", nil, page); err != nil || len(page.Records) != 1 {
		t.Fatalf("%d receipts %v", len(page.Records), err)
	}
	full := &admin.Record{}
	if err := w.Client(w.credential).Do(t.Context(), "GET", "/v1/log/"+page.Records[0].ID, nil, full); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"seen":`, `"program"`, `"child"`, `"seccomp"`, `"no-capabilities"`, `"pid-namespace"`, `"write-roots"`} {
		if !strings.Contains(string(full.Body), want) {
			t.Errorf("the receipt does not say %s: %s", want, full.Body)
		}
	}
	needtest.Programs(t, "strace")
	if out, err := command("strace", "-f", "-o", "/dev/null", gatetest.Binary(t), "run", "--read", dir, "--", "true"); err == nil || !strings.Contains(out, "is traced") {
		t.Errorf("a traced launcher was believed: %v\n%s", err, out)
	}
}

// TestAttack15UnconfinedAsksEveryTime: without a sandbox a run is code that can
// do anything, whatever it says it writes.
func TestAttack15UnconfinedAsksEveryTime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	for name, args := range map[string]string{
		"unconfined": `{"command":["true"],"unconfined":true}`,
		"unreadable": `{"command":["true"],"held":true}`,
		"no command": `{"read":["` + dir + `/**"]}`,
		"empty":      `{}`,
	} {
		got := w.submit(&api.CallRequest{Kind: "external", Operation: call.OpRun, Args: []byte(args), Dir: dir})
		if got.Verdict != gate.Pending || got.Level != call.ConfirmSingleUse || len(got.Requires) != 0 {
			t.Errorf("%s: %s %s %v", name, got.Verdict, got.Level, got.Requires)
		}
	}
}

// TestAttack04RunReachesTheGate: a run cannot be given the gate's own files or
// addresses.
func TestAttack04RunReachesTheGate(t *testing.T) {
	t.Parallel()
	w := begin(t)
	addr := strings.TrimPrefix(w.URL, "http://")
	for name, r := range map[string]call.Run{
		"its data":        {Command: []string{"true"}, Write: []string{w.Home + "/**"}},
		"around its data": {Command: []string{"true"}, Write: []string{"/**"}},
		"reading":         {Command: []string{"true"}, Read: []string{w.Home + "/keys/**"}},
		"its address":     {Command: []string{"true"}, Hosts: []string{addr}},
	} {
		got := w.submit(&api.CallRequest{Kind: "external", Operation: call.OpRun, Args: runArgs(t, r), Dir: t.TempDir()})
		if got.Verdict != gate.Denied {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
	h := &api.Health{}
	if err := w.Client("").Do(context.Background(), "GET", "/v1/health", nil, h); err != nil || len(h.Addresses) != 1 || h.Addresses[0] != addr {
		t.Errorf("%v %v", h.Addresses, err)
	}
}

func bodies(t *testing.T, records []admin.Record) string {
	t.Helper()
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
