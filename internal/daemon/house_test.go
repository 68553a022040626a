package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// house is a gate on its real state with one agent in it and one approver.
type house struct {
	t *testing.T
	*daemon.Parts
	disk   *storetest.Driver
	policy string // the user's policy file
	dir    string // where the agent works
	agent  call.Principal
	alice  admin.Actor
	tokens map[string]string // the ids of agents' tokens
}

// newHouse opens a gate whose user's policy file says text; "" is no file.
func newHouse(t *testing.T, text string) *house {
	t.Helper()
	home := t.TempDir()
	h := &house{t: t, disk: &storetest.Driver{}, policy: filepath.Join(home, "policy.toml"), dir: t.TempDir(), alice: admin.Actor{Approver: "alice", Channel: "terminal"}}
	if text != "" {
		h.writePolicy(text)
	}
	parts, err := daemon.Open(t.Context(), daemon.Options{Place: place.Place{Home: home}, Node: "test", WrapDriver: h.disk.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.disk.Before(nil)
		if err := parts.Store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	h.Parts = parts
	if _, err := h.Desk.Enrol(t.Context(), "alice", admin.Enrolment{Process: "test"}); err != nil {
		t.Fatal(err)
	}
	h.agent = h.enter("coder")
	return h
}

// enter opens a session of another agent.
func (h *house) enter(agent string) (p call.Principal) {
	h.t.Helper()
	token, err := h.Desk.AddAgent(h.t.Context(), h.alice, agent)
	if err != nil {
		h.t.Fatal(err)
	}
	h.tx(func(tx *store.Tx) error {
		a, err := h.Sessions.CheckToken(tx, token)
		if err != nil {
			return err
		}
		if h.tokens == nil {
			h.tokens = make(map[string]string)
		}
		h.tokens[agent] = a.TokenID()
		s, _, err := h.Sessions.Open(tx, session.Open{Agent: agent, Surface: "api", Peer: session.Peer{Token: a.TokenID()}})
		if err == nil {
			p = call.Principal{Agent: agent, Session: s.ID}
		}
		return err
	})
	return p
}

func (h *house) tx(fn func(*store.Tx) error) {
	h.t.Helper()
	if err := h.Store.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) writePolicy(text string) {
	h.t.Helper()
	if err := os.WriteFile(h.policy, []byte("version = 1\n"+text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// Calls of each level under the supervised profile.
func (h *house) read() *call.Call   { return h.native("list_elements", `{}`) }
func (h *house) create() *call.Call { return h.native("create_element", `{"name":"x"}`) }
func (h *house) run(command string) *call.Call {
	return &call.Call{Kind: call.External, Surface: "api", Principal: h.agent, Operation: "Bash", Args: jsontext.Value(`{"command":"` + command + `"}`), Dir: h.dir}
}

func (h *house) native(op, args string) *call.Call {
	return &call.Call{Kind: call.Native, Surface: "api", Principal: h.agent, Operation: op, Args: jsontext.Value(args), Dir: h.dir}
}

func (h *house) submit(c *call.Call) *gate.Answer {
	return h.Gate.Submit(h.t.Context(), gate.Submission{Call: c, Runs: "host"})
}

// want submits a call and checks how it is answered.
func (h *house) want(verdict gate.Verdict, c *call.Call, words ...string) *gate.Answer {
	h.t.Helper()
	ans := h.submit(c)
	h.check(ans, verdict, words...)
	return ans
}

func (h *house) check(ans *gate.Answer, verdict gate.Verdict, words ...string) {
	h.t.Helper()
	if ans.Verdict != verdict {
		h.t.Errorf("%s, want %s: %s", ans.Verdict, verdict, ans.Message)
	}
	for _, w := range words {
		if !strings.Contains(ans.Message, w) {
			h.t.Errorf("the agent is not told %q: %s", w, ans.Message)
		}
	}
}

// wait submits a call that waits for a person, and returns where its answer
// will be. It returns when the request has been filed.
func (h *house) wait(c *call.Call) (request string, answer <-chan *gate.Answer) {
	h.t.Helper()
	out := make(chan *gate.Answer, 1)
	ctx, stop := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	h.t.Cleanup(func() { stop(); <-done })
	release := h.Desk.Present()
	go func() {
		defer close(done)
		defer release()
		out <- h.Gate.Submit(ctx, gate.Submission{Call: c, Runs: "host", Wait: time.Hour})
	}()
	for {
		changed := h.Changes.Wait()
		for _, r := range h.requests("pending") {
			return r.ID, out
		}
		<-changed
	}
}

func (h *house) requests(state string) []admin.Request {
	h.t.Helper()
	list, _, err := h.Desk.Requests(h.t.Context(), state, "", 100)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

func (h *house) request(id string) *admin.Request {
	h.t.Helper()
	r, err := h.Desk.Request(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *house) approve(id string, offer int) {
	h.t.Helper()
	if err := h.Desk.Approve(h.t.Context(), h.alice, id, admin.Approval{Shown: h.request(id).Digest, Offer: offer}); err != nil {
		h.t.Fatal(err)
	}
}

// records lists what the log says about a call, newest last.
func (h *house) count(query string) (n int) {
	h.t.Helper()
	h.tx(func(tx *store.Tx) error { return tx.QueryRow(query).Scan(&n) })
	return n
}

// swap puts another directory in the place of one.
func (h *house) swap(dir string) {
	h.t.Helper()
	if err := os.Rename(dir, dir+".old"); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// again ends a session and opens another of the same agent.
func (h *house) again(p call.Principal) call.Principal {
	h.t.Helper()
	h.tx(func(tx *store.Tx) error {
		if err := h.Sessions.End(tx, p.Session, "test"); err != nil {
			return err
		}
		s, _, err := h.Sessions.Open(tx, session.Open{Agent: p.Agent, Surface: "api", Peer: session.Peer{Token: h.tokens[p.Agent]}})
		if err == nil {
			p.Session = s.ID
		}
		return err
	})
	return p
}
