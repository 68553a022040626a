package approval_test

import (
	"encoding/base32"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestTOTPVectors are the SHA-1 vectors of RFC 6238, appendix B, cut to six
// digits.
func TestTOTPVectors(t *testing.T) {
	t.Parallel()
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		got := approval.TOTPCode([]byte("12345678901234567890"), approval.TOTPStep(time.Unix(at, 0)))
		if got != want {
			t.Errorf("at %d: got %s, want %s", at, got, want)
		}
	}
}

// phone is the approver's authenticator.
type phone struct{ secret []byte }

func (o *office) newPhone(t *testing.T, approver string, proof approval.Proof) *phone {
	t.Helper()
	var uri string
	o.write(t, func(tx *store.Tx) (err error) { uri, err = o.EnrolFactor(tx, approver, proof); return err })
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Gatehouse:"+approver {
		t.Fatalf("%s: %v", uri, err)
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(u.Query().Get("secret"))
	if err != nil || len(secret) != 20 {
		t.Fatalf("%s: %v", uri, err)
	}
	return &phone{secret}
}

func (p *phone) code(at time.Time) string { return approval.TOTPCode(p.secret, approval.TOTPStep(at)) }

func (p *phone) wrong(at time.Time) string {
	for _, c := range []string{"000000", "111111", "222222", "333333"} {
		if c != p.code(at) && c != p.code(at.Add(-30*time.Second)) && c != p.code(at.Add(30*time.Second)) {
			return c
		}
	}
	panic("unreachable: three codes, four candidates")
}

func TestPinnedCallNeedsAFreshFactor(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	ctx := t.Context()
	ph := o.newPhone(t, "ada", approval.Proof{})
	if _, err := o.Prove(ctx, o.s, "ada", "r_1", ph.code(clock.Now())); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("a factor counts before it is confirmed: %v", err)
	}
	if err := o.ConfirmFactor(ctx, o.s, "ada", ph.wrong(clock.Now())); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("a wrong code confirms: %v", err)
	}
	if err := o.ConfirmFactor(ctx, o.s, "ada", ph.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	r := ask("s1", 1)
	r.Pinned, r.Offers = true, r.Offers[:1]
	filed := o.file(t, r, plenty)
	clock.pass(30 * time.Second)
	proof, err := o.Prove(ctx, o.s, "ada", filed.ID, ph.code(clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Prove(ctx, o.s, "ada", filed.ID, ph.code(clock.Now())); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("a code works twice: %v", err)
	}
	other := ask("s1", 2)
	other.Pinned, other.Offers = true, other.Offers[:1]
	filedOther := o.file(t, other, plenty)
	clock.pass(time.Second)
	o.write(t, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", "bob"); return err })
	for name, try := range map[string]struct {
		r        *approval.Request
		approver string
	}{"for another call": {filedOther, "ada"}, "by another approver": {filed, "bob"}} {
		a := yes(try.r)
		a.Approver, a.Proof = try.approver, proof
		if _, _, err := o.answer(t, try.r, a, plenty); !errors.Is(err, approval.ErrFactor) {
			t.Errorf("the proof serves %s: %v", name, err)
		}
	}
	clock.pass(61 * time.Second)
	a := yes(filed)
	a.Proof = proof
	if _, _, err := o.answer(t, filed, a, plenty); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("a stale proof approves: %v", err)
	}
	if a.Proof, err = o.Prove(ctx, o.s, "ada", filed.ID, ph.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	_, g, err := o.answer(t, filed, a, plenty)
	if err != nil || !g.Factor {
		t.Errorf("a fresh proof: %+v, %v", g, err)
	}
}

func TestCodesMayBeOneStepOff(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	ph := o.newPhone(t, "ada", approval.Proof{})
	if err := o.ConfirmFactor(t.Context(), o.s, "ada", ph.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	clock.pass(10 * time.Minute)
	for _, step := range []struct {
		off time.Duration
		ok  bool
	}{{-60 * time.Second, false}, {60 * time.Second, false}, {-30 * time.Second, true}, {0, true}, {30 * time.Second, true}, {0, false}} {
		_, err := o.Prove(t.Context(), o.s, "ada", "x", ph.code(clock.Now().Add(step.off)))
		if (err == nil) != step.ok {
			t.Errorf("a code %v off: %v, want ok %v", step.off, err, step.ok)
		}
	}
}

// TestGuessingCodesIsBounded is attack 9 for one-time codes: tries count
// whatever becomes of the answer, across restarts, and pauses grow.
func TestGuessingCodesIsBounded(t *testing.T) {
	t.Parallel()
	clock := newManual()
	opts := storetest.SQLite(t)
	opts.Clock = clock.Now
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	o := newOffice(t, s)
	ph := o.newPhone(t, "ada", approval.Proof{})
	if err := o.ConfirmFactor(t.Context(), s, "ada", ph.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	clock.pass(time.Hour)
	guess := func() bool {
		_, err := o.Prove(t.Context(), o.s, "ada", "x", ph.wrong(clock.Now()))
		if !errors.Is(err, approval.ErrFactor) && !errors.Is(err, approval.ErrThrottled) {
			t.Fatal(err)
		}
		return errors.Is(err, approval.ErrFactor)
	}
	judged := 0
	for range 15 {
		if guess() {
			judged++
		}
	}
	if judged != 10 {
		t.Errorf("%d guesses were judged at once, want 10", judged)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.s = storetest.Open(t, opts)
	if guess() {
		t.Error("a restart washed the tries off")
	}
	if _, err := o.Prove(t.Context(), o.s, "ada", "x", ph.code(clock.Now())); !errors.Is(err, approval.ErrThrottled) {
		t.Errorf("the right code during the pause: %v", err)
	}
	judged = 0
	for range 24 * 60 { // a day of a guess a minute and more
		clock.pass(time.Minute)
		for guess() {
			judged++
		}
	}
	if judged > 400 {
		t.Errorf("%d guesses were judged in a day; pauses must grow", judged)
	}
	clock.pass(time.Hour)
	if _, err := o.Prove(t.Context(), o.s, "ada", "x", ph.code(clock.Now())); err != nil {
		t.Errorf("the right code after the pause: %v", err)
	}
}

// TestFactorIsNotReplacedByACookie: who holds a session but not the telephone
// cannot put another in its place.
func TestFactorIsNotReplacedByACookie(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	ctx := t.Context()
	ph := o.newPhone(t, "ada", approval.Proof{})
	if err := o.ConfirmFactor(ctx, o.s, "ada", ph.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	if err := o.back(t, func(tx *store.Tx) error { _, err := o.EnrolFactor(tx, "ada", approval.Proof{}); return err }); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("replaced without proof: %v", err)
	}
	if err := o.back(t, func(tx *store.Tx) error { return o.DropFactor(tx, "ada", "ada", approval.Proof{}) }); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("dropped by its owner's cookie: %v", err)
	}
	clock.pass(time.Minute)
	proof, err := o.Prove(ctx, o.s, "ada", "factor", ph.code(clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	next := o.newPhone(t, "ada", proof)
	clock.pass(time.Minute)
	if _, err := o.Prove(ctx, o.s, "ada", "x", ph.code(clock.Now())); !errors.Is(err, approval.ErrFactor) {
		t.Errorf("the old telephone still counts: %v", err)
	}
	if err := o.ConfirmFactor(ctx, o.s, "ada", next.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	o.write(t, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", "bob"); return err })
	bobs := o.newPhone(t, "bob", approval.Proof{})
	if err := o.ConfirmFactor(ctx, o.s, "bob", bobs.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	clock.pass(time.Minute)
	if proof, err = o.Prove(ctx, o.s, "bob", "drop ada", bobs.code(clock.Now())); err != nil {
		t.Fatal(err)
	}
	o.write(t, func(tx *store.Tx) error { return o.DropFactor(tx, "bob", "ada", proof) })
	o.newPhone(t, "ada", approval.Proof{})
}
