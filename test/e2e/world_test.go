package e2e_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" // #nosec G505: RFC 6238 by its letter, to compare with
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// world is a running gate with one approver and one agent.
type world struct {
	*gatetest.Gate
	t             testing.TB
	credential    string // the approver's
	key           string // the file that holds it
	token         string // the agent's
	person, agent *client.Client
}

// begin starts a gate and enrols ann and coder.
func begin(t testing.TB, args ...string) *world {
	t.Helper()
	return people(t, gatetest.Start(t, args...))
}

// beginWith is begin with a policy of the user's.
func beginWith(t testing.TB, policy string) *world {
	t.Helper()
	g := gatetest.New(t)
	write(t, filepath.Join(g.Home, "policy.toml"), policy)
	g.Up()
	return people(t, g)
}

func people(t testing.TB, g *gatetest.Gate) *world {
	t.Helper()
	w := &world{Gate: g, t: t}
	w.credential, w.key = g.Enrol("ann")
	w.token = g.Agent(w.credential, "coder")
	w.person, w.agent = g.Client(w.credential), g.Client(w.token)
	return w
}

// callOf makes a call of an operation and its arguments.
func callOf(operation, args string) *api.CallRequest {
	in := &api.CallRequest{Operation: operation}
	if args != "" {
		in.Args = []byte(args)
	}
	return in
}

// memo is a call that needs nobody and that the agent's host runs.
func memo(what any) *api.CallRequest {
	return callOf("TodoWrite", fmt.Sprintf(`{"todos":[{"content":"note %v"}]}`, what))
}

// create is a call that asks once per session, remove one that is pinned.
func create(name string) *api.CallRequest {
	return callOf("create_element", fmt.Sprintf(`{"element_type":"skill","name":%q,"description":"a test"}`, name))
}

func remove(name string) *api.CallRequest {
	return callOf("delete_element", fmt.Sprintf(`{"element_type":"skill","name":%q}`, name))
}

// submit sends a call and fails the test on anything but an answer.
func (w *world) submit(in *api.CallRequest) *api.CallResponse {
	w.t.Helper()
	return submit(w.t, w.agent, in)
}

func submit(t testing.TB, c *client.Client, in *api.CallRequest) *api.CallResponse {
	t.Helper()
	out := &api.CallResponse{}
	if err := c.Do(context.Background(), "POST", "/v1/calls", in, out); err != nil {
		t.Fatalf("%s: %v", in.Operation, err)
	}
	return out
}

// want submits a call and compares the verdict.
func (w *world) want(verdict gate.Verdict, in *api.CallRequest) *api.CallResponse {
	w.t.Helper()
	got := w.submit(in)
	if got.Verdict != verdict {
		w.t.Fatalf("%s %s: %s (%s), want %s", in.Operation, in.Args, got.Verdict, got.Message, verdict)
	}
	return got
}

// look reads a request as a person does.
func (w *world) look(id string) *admin.Request {
	w.t.Helper()
	r := &admin.Request{}
	if err := w.person.Do(context.Background(), "GET", "/v1/approvals/"+id, nil, r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// answer looks at a request and answers it.
func (w *world) answer(id, verb string, in func(*admin.Request) any) error {
	w.t.Helper()
	r := w.look(id)
	return w.person.Do(context.Background(), "POST", "/v1/approvals/"+id+"/"+verb, in(r), nil)
}

// approve approves a request once.
func (w *world) approve(id string) {
	w.t.Helper()
	if err := w.answer(id, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest} }); err != nil {
		w.t.Fatalf("approve %s: %v", id, err)
	}
}

// done reports that an allowed call succeeded, unless the gate itself has
// performed it.
func (w *world) done(c *api.CallResponse) {
	w.t.Helper()
	if c.Outcome != "" {
		return
	}
	in := &api.OutcomeRequest{Outcome: gate.Succeeded, Session: c.Session}
	if err := w.agent.Do(context.Background(), "POST", "/v1/calls/"+c.CallID+"/outcome", in, nil); err != nil {
		w.t.Fatal(err)
	}
}

// do makes a request of the person's that has to succeed.
func (w *world) do(method, path string, in, out any) {
	w.t.Helper()
	if err := w.person.Do(context.Background(), method, path, in, out); err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// kill throws the kill switch.
func (w *world) kill(on bool) {
	w.t.Helper()
	w.do("POST", "/v1/kill", &api.KillRequest{On: on, Reason: "drill"}, nil)
}

// verify proves that the log is whole.
func (w *world) verify() {
	w.t.Helper()
	if out := w.Must("audit", "verify", "--credential-file", w.key); !strings.Contains(out, "Verified") {
		w.t.Errorf("audit verify said %q", out)
	}
}

// factor enrols a second factor for ann and returns what makes its codes.
func (w *world) factor() *authenticator {
	w.t.Helper()
	got := &api.TOTPResponse{}
	w.do("POST", "/v1/totp", nil, got)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(got.Secret)
	if err != nil {
		w.t.Fatal(err)
	}
	a := &authenticator{secret: secret}
	w.do("POST", "/v1/totp/confirm", &api.CodeRequest{Code: a.next()}, nil)
	return a
}

// authenticator makes one-time codes. The gate takes each time step once, so
// that a test that needs several codes takes the neighbours that a clock may
// be off by, and then waits for the next.
type authenticator struct {
	secret []byte
	last   int64
}

const step = 30 * time.Second

// next returns a code that was not used before.
func (a *authenticator) next() string {
	for {
		now := time.Now().Unix() / int64(step.Seconds())
		for s := now - 1; s <= now+1; s++ {
			if s > a.last {
				a.last = s
				return a.code(s)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// code is RFC 6238 with its defaults.
func (a *authenticator) code(step int64) string {
	mac := hmac.New(sha1.New, a.secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes everything
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000)
}

// status is the HTTP status of an error of the API, 0 for none.
func status(err error) int {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// refused fails the test unless an error of the API has one of the statuses.
func refused(t testing.TB, what string, err error, statuses ...int) {
	t.Helper()
	got := status(err)
	for _, s := range statuses {
		if got == s {
			return
		}
	}
	t.Errorf("%s: %v (status %d %s), want one of %v", what, err, got, http.StatusText(got), statuses)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something holds. There is no limit but the test's
// own: a slow machine is not a failure.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for n := 0; !holds(); n++ {
		if n == 500 {
			t.Logf("still waiting: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
