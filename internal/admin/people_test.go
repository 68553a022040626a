package admin_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office is a desk on its real store, with what it put on record.
type office struct {
	*admin.Desk
	t    *testing.T
	acts []string
	fail error        // what recording fails with
	late atomic.Int64 // how far the clock has been put forward
}

func newOffice(t *testing.T) *office {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t}
	opts := storetest.SQLite(t)
	opts.Clock = func() time.Time { return time.Now().Add(time.Duration(o.late.Load())) }
	o.Desk = admin.New(admin.Options{
		Store: storetest.Open(t, opts), Approval: approval.New(keys), Sessions: session.New(keys, nil), Channels: approval.NewChannels(),
		Record: func(_ *store.Tx, a admin.Act) error {
			o.acts = append(o.acts, a.Name+" "+a.By)
			return o.fail
		},
		BaseURL: "http://console.test",
	}, admin.NewChanges())
	return o
}

func (o *office) first(name string) (token string) {
	o.t.Helper()
	link, err := o.FirstLink(name)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.token(link)
}

func (o *office) token(link string) string {
	o.t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		o.t.Fatal(err)
	}
	return u.Query().Get("token")
}

func (o *office) signIn(token string) (approver string, err error) {
	cookie, approver, _, err := o.SignIn(o.t.Context(), token, "test")
	if err == nil {
		if who, err := o.CheckCookie(o.t.Context(), cookie); err != nil || who != approver {
			o.t.Errorf("the cookie is %q's: %v", who, err)
		}
	}
	return approver, err
}

func TestFirstLinkWorksOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	token := o.first("alice")
	if who, err := o.signIn(token); err != nil || who != "alice" {
		t.Fatalf("%q %v", who, err)
	}
	if _, err := o.signIn(token); !errors.Is(err, approval.ErrCredential) {
		t.Errorf("the link works a second time: %v", err)
	}
	list, err := o.Approvers(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "alice" {
		t.Errorf("%+v %v", list, err)
	}
	if len(o.acts) == 0 || o.acts[0] != "approver.enrol alice" {
		t.Errorf("on record is %q", o.acts)
	}
}

// TestFirstLinkWhileNobodyIsEnrolled: whoever enrolled some other way in the
// meantime is the first, and the link is void.
func TestFirstLinkWhileNobodyIsEnrolled(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	token := o.first("mallory")
	if _, err := o.Enrol(t.Context(), "alice", admin.Enrolment{Process: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.signIn(token); !errors.Is(err, approval.ErrEnrolled) {
		t.Errorf("a second first approver: %v", err)
	}
	if _, err := o.Enrol(t.Context(), "mallory", admin.Enrolment{}); !errors.Is(err, approval.ErrEnrolled) {
		t.Errorf("a second first approver: %v", err)
	}
}

func TestFirstLinkIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	old, next := o.first("alice"), o.first("alice")
	for _, token := range []string{old, "", "nonsense", next[:len(next)-1]} {
		if _, err := o.signIn(token); err == nil {
			t.Errorf("%q signs in", token)
		}
	}
	if _, err := o.signIn(next); err != nil {
		t.Error(err)
	}
}

// TestNothingHappensOffTheRecord: an act that cannot be recorded is not done.
func TestNothingHappensOffTheRecord(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.fail = errors.New("the log is full")
	if _, err := o.Enrol(t.Context(), "alice", admin.Enrolment{}); !errors.Is(err, o.fail) {
		t.Errorf("enrolled off the record: %v", err)
	}
	if enrolled, err := o.Enrolled(t.Context()); err != nil || enrolled {
		t.Errorf("enrolled %v, %v", enrolled, err)
	}
	o.fail = nil
	if _, err := o.Enrol(t.Context(), "alice", admin.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	alice := admin.Actor{Approver: "alice", Channel: "terminal"}
	o.fail = errors.New("the log is full")
	credential, err := o.AddApprover(t.Context(), alice, "bob")
	if err == nil {
		t.Error("added off the record")
	}
	if _, err := o.CheckCredential(t.Context(), credential); !errors.Is(err, approval.ErrCredential) {
		t.Errorf("a credential that was never given out is good: %v", err)
	}
}

func TestSignInLinkWorksOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if _, err := o.Enrol(t.Context(), "alice", admin.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	link, err := o.Link(t.Context(), admin.Actor{Approver: "alice", Channel: "terminal"})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := o.signIn(o.token(link)); err != nil || who != "alice" {
		t.Errorf("%q %v", who, err)
	}
	if _, err := o.signIn(o.token(link)); !errors.Is(err, approval.ErrCredential) {
		t.Errorf("the link works a second time: %v", err)
	}
	if _, err := o.Link(t.Context(), admin.Actor{Approver: "nobody"}); err == nil {
		t.Error("a link for nobody")
	}
}

// TestAttackFactorWithACookie: whoever came by a cookie cannot make themselves
// a second factor or a credential with it. It takes the credential, the own
// one, or a sign-in of just now.
func TestAttackFactorWithACookie(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx := t.Context()
	credential, err := o.Enrol(ctx, "alice", admin.Enrolment{Process: "test"})
	if err != nil {
		t.Fatal(err)
	}
	terminal := admin.Actor{Approver: "alice", Channel: "terminal"}
	bobs, err := o.AddApprover(ctx, terminal, "bob")
	if err != nil {
		t.Fatal(err)
	}
	link, err := o.Link(ctx, terminal)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, _, err := o.SignIn(ctx, o.token(link), "test")
	if err != nil {
		t.Fatal(err)
	}
	console := admin.Actor{Approver: "alice", Channel: "console", Cookie: cookie}
	begin := func(a admin.Actor) error { _, _, err := o.BeginTOTP(ctx, a); return err }
	renew := func(a admin.Actor) error { _, err := o.NewCredential(ctx, a); return err }
	if err := begin(console); err != nil {
		t.Errorf("just after signing in: %v", err)
	}
	o.late.Store(int64(approval.FreshFor))
	if _, err := o.CheckCookie(ctx, cookie); err != nil {
		t.Fatalf("the cookie is no good any more: %v", err)
	}
	with := func(secret string) admin.Actor { a := console; a.Credential = secret; return a }
	for name, a := range map[string]admin.Actor{
		"a cookie": console, "no cookie": {Approver: "alice", Channel: "console"}, "another's credential": with(bobs), "nonsense": with("gha_nonsense"),
		"another's name": {Approver: "bob", Channel: "console", Cookie: cookie},
	} {
		if err := begin(a); err == nil {
			t.Errorf("%s: made a second factor", name)
		}
		if err := renew(a); err == nil {
			t.Errorf("%s: made a credential", name)
		}
	}
	if err := begin(console); !errors.Is(err, approval.ErrNotFresh) {
		t.Errorf("refused with %v", err)
	}
	if err := begin(with(credential)); err != nil {
		t.Errorf("with the credential: %v", err)
	}
	if err := renew(with(credential)); err != nil {
		t.Errorf("with the credential: %v", err)
	}
}
