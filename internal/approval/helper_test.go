package approval_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// The test server's output is read until the process ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

// errBack takes a transaction back on purpose.
var errBack = errors.New("taken back")

// atOnce are limits under which nothing needs to be looked at for a second.
var atOnce = approval.Limits{ShownAtLeast: time.Nanosecond}

func newKeys(t testing.TB) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// office is a store with a desk and one approver, ada.
type office struct {
	*approval.Desk
	s    *store.Store
	keys *keyring.Keyring
	ada  string // her credential
}

func newOffice(t testing.TB, s *store.Store) *office {
	t.Helper()
	keys := newKeys(t)
	o := &office{Desk: approval.New(keys), s: s, keys: keys}
	o.write(t, func(tx *store.Tx) error {
		secret, err := o.Enrol(tx, "ada", approval.EnrolInfo{Process: "1 gatehouse"})
		o.ada = secret.Reveal()
		return err
	})
	return o
}

func (o *office) write(t testing.TB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := o.s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (o *office) read(t testing.TB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := o.s.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// back runs fn in a write that is taken back, and returns fn's error.
func (o *office) back(t testing.TB, fn func(tx *store.Tx) error) (err error) {
	t.Helper()
	if back := o.s.Write(t.Context(), func(tx *store.Tx) error {
		err = fn(tx)
		return errBack
	}); !errors.Is(back, errBack) {
		t.Fatal(back)
	}
	return err
}

func principal(session string) call.Principal {
	return call.Principal{Agent: "claude", Session: session}
}

// ask is a request to write a file, n-th of its kind.
func ask(session string, n int) approval.Request {
	c := &call.Call{Kind: call.External, Surface: "api", Principal: principal(session), Operation: "write_file",
		Args: []byte(fmt.Sprintf(`{"path":"f%d","text":"hunter2"}`, n))}
	return approval.Request{
		CallID: fmt.Sprintf("call%d", n), Digest: c.Digest(), World: call.Digest{1}, Policy: call.Digest{2},
		Principal: c.Principal, Surface: c.Surface, Kind: c.Kind, Operation: c.Operation, Level: call.ConfirmSession,
		Votes: []string{"session\x1fpolicy.toml:3\x1ffs.write\x1fCONFIRM_SESSION\x1ffs.write"},
		Offers: []grant.Offer{
			{Use: grant.Once, Words: "this call, once"},
			{Use: grant.Session, Words: "writing src for the rest of this session", Needs: []call.Need{{Capability: call.FSWrite, Scope: "src"}}},
		},
		View: c.Args,
	}
}

func (o *office) file(t testing.TB, r approval.Request, limits approval.Limits) *approval.Request {
	t.Helper()
	var got *approval.Request
	o.write(t, func(tx *store.Tx) (err error) {
		got, _, err = o.File(tx, r, limits)
		return err
	})
	return got
}

// yes approves r once, as ada.
func yes(r *approval.Request) approval.Answer {
	return approval.Answer{Verdict: approval.Approve, Shown: r.Digest, Approver: "ada", Channel: "console"}
}

func (o *office) answer(t testing.TB, r *approval.Request, a approval.Answer, limits approval.Limits) (got *approval.Request, g *grant.Grant, err error) {
	t.Helper()
	err = o.s.Write(t.Context(), func(tx *store.Tx) (err error) {
		got, g, err = o.Answer(tx, r.ID, a, limits)
		return err
	})
	return got, g, err
}

// granted files and approves a call and returns the grant.
func (o *office) granted(t testing.TB, r approval.Request, a func(*approval.Answer), limits approval.Limits) *grant.Grant {
	t.Helper()
	filed := o.file(t, r, limits)
	ans := yes(filed)
	if a != nil {
		a(&ans)
	}
	_, g, err := o.answer(t, filed, ans, limits)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// manual is a clock that a test moves; it works on SQLite only.
type manual struct {
	mu  sync.Mutex
	now time.Time
}

func newManual() *manual { return &manual{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (m *manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

// timed is an office on SQLite with a clock that the test moves.
func timed(t *testing.T) (*office, *manual) {
	t.Helper()
	clock := newManual()
	opts := storetest.SQLite(t)
	opts.Clock = clock.Now
	return newOffice(t, storetest.Open(t, opts)), clock
}

// nodes opens one database several times where several nodes can share it:
// PostgreSQL. On SQLite all are the same.
func nodes(t *testing.T, opts store.Options, n int) []*store.Store {
	t.Helper()
	var all []*store.Store
	for i := range n {
		if opts.DSN == "" && i > 0 {
			all = append(all, all[0])
			continue
		}
		opts.Node = fmt.Sprintf("node%d", i)
		all = append(all, storetest.Open(t, opts))
	}
	return all
}
