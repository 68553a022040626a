package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// TestPublicErrors wraps every cause in what must not be shown, and checks
// the status and the words that people get. "" is the cause's own text.
func TestPublicErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cause  error
		status int
		text   string
	}{
		{approval.ErrThrottled, http.StatusTooManyRequests, ""},
		{approval.ErrAgentToken, http.StatusForbidden, "an agent's token cannot do this"},
		{approval.ErrCredential, http.StatusUnauthorized, "the credential, link or cookie is not valid (any more): ask an approver for a new one"},
		{session.ErrToken, http.StatusUnauthorized, "the agent's token is not valid: `gatehouse agent add NAME` makes one"},
		{session.ErrForeign, http.StatusForbidden, "the session belongs to another process or token"},
		{session.ErrNotFound, http.StatusNotFound, "there is no such session or agent"},
		{session.ErrExists, http.StatusConflict, "the name is taken"},
		{session.ErrEnded, http.StatusConflict, "the session has ended: open a new one"},
		{session.ErrMoved, http.StatusConflict, "the policy in force has changed meanwhile: look at it again"},
		{session.ErrInvalid, http.StatusBadRequest, "hidden detail: invalid"},
		{approval.ErrNotFound, http.StatusNotFound, "there is no such thing here"},
		{audit.ErrNotFound, http.StatusNotFound, "there is no such record"},
		{approval.ErrStale, http.StatusConflict, ""},
		{approval.ErrTooSoon, http.StatusConflict, "it was on screen for less than a second: read it, then answer"},
		{approval.ErrFactor, http.StatusForbidden, "this needs a fresh one-time code: enrol one with `gatehouse approver totp`, then give the code with the answer"},
		{approval.ErrOffer, http.StatusBadRequest, ""},
		{approval.ErrEnrolled, http.StatusForbidden, ""},
		{approval.ErrLast, http.StatusConflict, ""},
		{approval.ErrExists, http.StatusConflict, ""},
		{approval.ErrForged, http.StatusConflict, ""},
		{session.ErrForged, http.StatusConflict, ""},
		{approval.ErrSpent, http.StatusConflict, ""},
		{approval.ErrInvalid, http.StatusBadRequest, "hidden detail: invalid"},
		{store.ErrFull, http.StatusInsufficientStorage, "the disk or the database is full: nothing can be recorded, so nothing is let through"},
		{store.ErrReadOnly, http.StatusServiceUnavailable, "the database is read-only: nothing can be recorded, so nothing is let through"},
		{store.ErrLocked, http.StatusServiceUnavailable, "the database is locked by another program: nothing can be recorded, so nothing is let through"},
		{store.ErrUnavailable, http.StatusServiceUnavailable, "the database cannot be reached: nothing can be recorded, so nothing is let through"},
		{store.ErrBusy, http.StatusServiceUnavailable, "the gate is overloaded: try again in a moment"},
		{&call.InvalidError{Field: "kind", Problem: "is missing"}, http.StatusBadRequest, ""},
	}
	for _, tt := range tests {
		t.Run(tt.cause.Error(), func(t *testing.T) {
			t.Parallel()
			cause := fmt.Errorf("hidden detail: %w", tt.cause)
			err := admin.PublicError(cause)
			var public *admin.Error
			if !errors.As(err, &public) {
				t.Fatalf("nobody is told: %v", err)
			}
			want := tt.text
			if want == "" {
				want = tt.cause.Error()
			}
			if diff := cmp.Diff(want, public.Public()); diff != "" {
				t.Errorf("public (-want +got):\n%s", diff)
			}
			if public.HTTPStatus() != tt.status {
				t.Errorf("status %d, want %d", public.HTTPStatus(), tt.status)
			}
			// The log gets everything.
			if !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), "hidden detail") {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

func TestPublicErrorsOfNobody(t *testing.T) {
	t.Parallel()
	if err := admin.PublicError(nil); err != nil {
		t.Errorf("nil becomes %v", err)
	}
	var public interface{ Public() string }
	if err := admin.PublicError(errors.New("disk i/o error in /var/lib/secret")); errors.As(err, &public) {
		t.Errorf("an error that nobody foresaw is shown: %q", public.Public())
	}
	refused := &gate.RefusedError{Reason: "too many wait"}
	if err := admin.PublicError(fmt.Errorf("x: %w", refused)); !errors.As(err, &public) || public.Public() != "too many wait" {
		t.Errorf("what is public already: %v", err)
	}
}
