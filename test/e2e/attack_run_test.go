package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
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
		if err := show(w.token, r); err == nil {
			t.Errorf("%s: the receipt was taken", name)
		}
	}
	if err := show(w.Gate.Agent(w.credential, "other"), good); err == nil {
		t.Error("another agent's receipt was taken")
	}
	if err := show(w.token, good); err != nil {
		t.Fatal(err)
	}
	if err := show(w.token, good); err == nil {
		t.Error("a second receipt was taken")
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
	for _, want := range []string{`"backend":"bubblewrap"`, `"write-roots"`, `"evil.example:443"`, `"ptrace"`, `"exit 2"`, `"make"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s", want)
		}
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
