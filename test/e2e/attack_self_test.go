package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// decide asks how a call would be decided.
func (w *world) decide(in *api.CallRequest) *api.DecideResponse {
	w.t.Helper()
	out := &api.DecideResponse{}
	if err := w.agent.Do(context.Background(), "POST", "/v1/decide", in, out); err != nil {
		w.t.Fatalf("%s %s: %v", in.Operation, in.Args, err)
	}
	return out
}

// tool is a call of a host's tool with one argument.
func tool(name, argument, value string) *api.CallRequest {
	args, err := json.Marshal(map[string]string{argument: value})
	if err != nil {
		panic(err)
	}
	return &api.CallRequest{Operation: name, Args: args}
}

// selfDenies checks that the stage that protects the gate denies.
func (w *world) selfDenies(in *api.CallRequest) {
	w.t.Helper()
	d := w.decide(in)
	for _, v := range d.Votes {
		if v.Stage == call.StageSelf && v.Level == call.Deny {
			return
		}
	}
	w.t.Errorf("%s %s in %q: %s, want a denial because it reaches the gate", in.Operation, in.Args, in.Dir, d.Level)
}

// TestAttack04ReachingTheGateWithTools: an ordinary tool that goes to the
// gate's port, under whichever spelling, or to its files, on whichever way, is
// denied.
func TestAttack04ReachingTheGateWithTools(t *testing.T) {
	t.Parallel()
	w := begin(t)
	port := w.URL[strings.LastIndexByte(w.URL, ':')+1:]
	hosts := []string{
		"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1",
		"0.0.0.0", "0", "127.0.0.2", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "user@127.0.0.1", "a.localhost",
	}
	for _, host := range hosts {
		url := "http://" + host + ":" + port + "/v1/kill"
		w.selfDenies(tool("WebFetch", "url", url))
		w.selfDenies(tool("Bash", "command", "curl -X POST "+url))
	}
	for _, command := range []string{
		"wget -qO- http://127.0.0.1:" + port + "/", "curl 127.0.0.1:" + port, "curl -s 'http://localhost:" + port + "/v1/health'",
		"curl --unix-socket " + w.Socket() + " http://x/v1/approvers", "true && curl localhost:" + port + " | cat",
		"bash -c 'curl http://127.0.0.1:" + port + "/v1/kill'",
	} {
		w.selfDenies(tool("Bash", "command", command))
	}

	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"home": w.Home, "key": filepath.Join(w.Home, "keys", "mac.key"), "up": "..", "hop": "home", "keys": filepath.Join(w.Home, "keys")} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(work, w.Home)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		w.Home, w.Home + "/", w.Home + "/keys/mac.key", w.Home + "/keys/../keys/mac.key", "/tmp/../" + w.Home + "/gatehouse.db",
		relative + "/gatehouse.db", "./" + relative + "/policy.toml", "home/keys/mac.key", "key", "hop/gatehouse.db",
		"./home/../home/keys", "keys/../gatehouse.db", "keys/.././keys/../policy.toml", // as editors read it, and as the kernel does
	} {
		for name, argument := range map[string]string{"Read": "file_path", "Write": "file_path", "Edit": "file_path", "LS": "path", "Grep": "path", "NotebookEdit": "notebook_path"} {
			w.selfDenies(in(work, tool(name, argument, path)))
		}
		for _, command := range []string{"cat %s", "rm -rf %s", "cp /dev/null %s", "echo x > %s", "sqlite3 %s .dump", "ls %s", "tar cf - %s", "chmod 777 %s", "ln -s %s here"} {
			w.selfDenies(in(work, tool("Bash", "command", fmt.Sprintf(command, path))))
		}
	}
	for _, dir := range []string{w.Home, filepath.Join(w.Home, "keys"), filepath.Join(work, "home")} {
		w.selfDenies(in(dir, tool("Bash", "command", "cat gatehouse.db")))
		w.selfDenies(in(dir, tool("Read", "file_path", "mac.key")))
	}
	for _, command := range []string{
		"cd home && cat gatehouse.db", "cd keys && cat mac.key", "cd keys && cat ../gatehouse.db", "cd " + relative + " && cat gatehouse.db",
		"cd home/../home && cat gatehouse.db", "(cd keys; cat mac.key)", "pushd keys && cat mac.key", "env -C keys cat mac.key",
		"cd home && ls", "nc 127.0.0.1 " + port, fmt.Sprintf("kill -9 %d", w.PID()),
	} {
		w.selfDenies(in(work, tool("Bash", "command", command)))
	}
	if d := w.decide(in(work, tool("Bash", "command", "cd -P keys/.. && cat gatehouse.db"))); d.Level == call.AutoApprove {
		t.Errorf("going up from behind a link was approved: %s", d.Why)
	}

	// Beside it everything is as ever.
	if d := w.decide(in(work, tool("Read", "file_path", "README.md"))); d.Level != call.AutoApprove {
		t.Errorf("reading a file of the workspace: %s, %s", d.Level, d.Why)
	}
	if d := w.decide(tool("WebFetch", "url", "http://example.com:"+port)); d.Level == call.Deny {
		t.Errorf("fetching the same port elsewhere: %s", d.Why)
	}
}

// TestAttack06ForgedEvents: a session takes no calls and no outcomes from
// outside the token or process tree that it was opened by, and an outcome
// closes only what was opened there.
func TestAttack06ForgedEvents(t *testing.T) {
	t.Parallel()
	w := begin(t)
	mine := w.want(gate.Allowed, memo("mine"))
	eve := w.Client(w.Gate.Agent(w.credential, "eve"))
	ctx := context.Background()
	forged := callOf("list_elements", "")
	forged.Session = mine.Session
	refused(t, "a call in another's session", eve.Do(ctx, "POST", "/v1/calls", forged, &api.CallResponse{}), http.StatusForbidden)
	refused(t, "a call in another's session, without a token", w.Client("").Do(ctx, "POST", "/v1/calls", forged, &api.CallResponse{}), http.StatusForbidden)
	done := func(session string) *api.OutcomeRequest {
		return &api.OutcomeRequest{Outcome: gate.Succeeded, Session: session}
	}
	path := "/v1/calls/" + mine.CallID + "/outcome"
	refused(t, "an outcome of another's call", eve.Do(ctx, "POST", path, done(""), nil), http.StatusConflict)
	refused(t, "an outcome in another's session", eve.Do(ctx, "POST", path, done(mine.Session), nil), http.StatusForbidden)
	other := &api.SessionResponse{}
	if err := w.agent.Do(ctx, "POST", "/v1/sessions", &api.SessionRequest{}, other); err != nil {
		t.Fatal(err)
	}
	refused(t, "an outcome from another session of the same agent", w.agent.Do(ctx, "POST", path, done(other.Session), nil), http.StatusConflict)
	sub := done(mine.Session)
	sub.Path = "helper"
	refused(t, "an outcome from a sub-agent", w.agent.Do(ctx, "POST", path, sub, nil), http.StatusConflict)
	refused(t, "an outcome of a call that never was", w.agent.Do(ctx, "POST", "/v1/calls/c_aaaaaaaaaaaaaaaa/outcome", done(""), nil), http.StatusConflict)
	refused(t, "an outcome that is none", w.agent.Do(ctx, "POST", path, &api.OutcomeRequest{Outcome: "splendid"}, nil), http.StatusBadRequest)
	refused(t, "ending another's session", eve.Do(ctx, "DELETE", "/v1/sessions/"+mine.Session, nil, nil), http.StatusForbidden)
	w.done(mine)
	refused(t, "an outcome a second time", w.agent.Do(ctx, "POST", path, done(mine.Session), nil), http.StatusConflict)

	asked := w.want(gate.Pending, create("notes"))
	refused(t, "following another's request", eve.Do(ctx, "GET", "/v1/requests/"+asked.Request, nil, &api.RequestStatus{}), http.StatusConflict, http.StatusNotFound)
	refused(t, "withdrawing another's request", eve.Do(ctx, "DELETE", "/v1/requests/"+asked.Request, nil, nil), http.StatusConflict, http.StatusNotFound)
	if got := w.look(asked.Request); got.State != "pending" {
		t.Errorf("the request is %s", got.State)
	}
}

// TestAttack06ForeignProcess: a session that a process opened without a token
// is its tree's. A process beside it, even one of the same user that knows the
// session's name, is refused.
func TestAttack06ForeignProcess(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "setsid")
	needtest.Programs(t, "curl")
	w := begin(t)
	mine := submit(t, w.Client(""), callOf("list_elements", ""))
	if mine.Verdict != gate.Allowed {
		t.Fatal(mine.Message)
	}
	// Forked off twice: its parent is not of our tree any more.
	answer := filepath.Join(t.TempDir(), "answer")
	body := `{"operation":"list_elements","session":"` + mine.Session + `"}`
	cmd := exec.Command("/bin/sh", "-c", `setsid -f sh -c 'sleep 0.3; curl -s -o "$1.part" -w "%{http_code}" --unix-socket "$2" -d "$3" http://gatehouse/v1/calls > "$1.code"; mv "$1.code" "$1"' sh "$1" "$2" "$3"`, "sh", answer, w.Socket(), body)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	var code []byte
	eventually(t, "the foreign process was answered", func() bool {
		var err error
		code, err = os.ReadFile(answer)
		return err == nil
	})
	if string(code) != "403" {
		text, _ := os.ReadFile(answer + ".part")
		t.Errorf("a foreign process was answered %s: %s", code, text)
	}
}
