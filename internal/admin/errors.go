package admin

import (
	"errors"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Error is an error with a half that may be shown.
type Error struct {
	text   string
	status int
	cause  error
}

// Error returns the public text and the cause, for the log.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

// Public returns what may be shown.
func (e *Error) Public() string { return e.text }

// HTTPStatus returns the status that fits.
func (e *Error) HTTPStatus() int { return e.status }

// Unwrap returns the hidden cause.
func (e *Error) Unwrap() error { return e.cause }

// shown lists the causes that people are told, each with what to do about it.
// The first that fits counts.
var shown = []struct {
	cause  error
	status int
	text   string // "" shows the cause's own
}{
	{approval.ErrThrottled, http.StatusTooManyRequests, ""},
	{approval.ErrAgentToken, http.StatusForbidden, "an agent's token cannot do this"},
	{approval.ErrCredential, http.StatusUnauthorized, "the credential, link or cookie is not valid (any more): ask an approver for a new one"},
	{session.ErrToken, http.StatusUnauthorized, "the agent's token is not valid: `gatehouse agent add NAME` makes one"},
	{session.ErrGone, http.StatusForbidden, "the calling process cannot be told from others here: give the agent a token, `gatehouse agent add NAME` makes one"},
	{session.ErrForeign, http.StatusForbidden, "the session belongs to another process or token"},
	{session.ErrNotFound, http.StatusNotFound, "there is no such session or agent"},
	{session.ErrExists, http.StatusConflict, "the name is taken"},
	{session.ErrEnded, http.StatusConflict, "the session has ended: open a new one"},
	{session.ErrMoved, http.StatusConflict, "the policy in force has changed meanwhile: look at it again"},
	{session.ErrForged, http.StatusConflict, ""},
	{approval.ErrNotFound, http.StatusNotFound, "there is no such thing here"},
	{audit.ErrNotFound, http.StatusNotFound, "there is no such record"},
	{approval.ErrStale, http.StatusConflict, ""},
	{approval.ErrTooSoon, http.StatusConflict, "it was on screen for less than a second: read it, then answer"},
	{approval.ErrNotFresh, http.StatusForbidden, "a console that was opened a while ago needs your credential for this; or sign in anew and do it within five minutes"},
	{approval.ErrFactor, http.StatusForbidden, "this needs a fresh one-time code: enrol one with `gatehouse approver totp`, then give the code with the answer"},
	{approval.ErrOffer, http.StatusBadRequest, ""},
	{approval.ErrEnrolled, http.StatusForbidden, ""},
	{approval.ErrLast, http.StatusConflict, ""},
	{approval.ErrExists, http.StatusConflict, ""},
	{approval.ErrForged, http.StatusConflict, ""},
	{approval.ErrSpent, http.StatusConflict, ""},
	{approval.ErrCode, http.StatusForbidden, "the challenge's code is wrong: it is shown with the challenge, and is another one after five minutes"},
	{job.ErrNotFound, http.StatusNotFound, "there is no such run (any more)"},
	{autonomy.ErrNotFound, http.StatusNotFound, "there is no such execution or pause"},
	{autonomy.ErrOver, http.StatusConflict, ""},
	{autonomy.ErrForged, http.StatusConflict, ""},
	{store.ErrFull, http.StatusInsufficientStorage, "the disk or the database is full: nothing can be recorded, so nothing is let through"},
	{store.ErrReadOnly, http.StatusServiceUnavailable, "the database is read-only: nothing can be recorded, so nothing is let through"},
	{store.ErrLocked, http.StatusServiceUnavailable, "the database is locked by another program: nothing can be recorded, so nothing is let through"},
	{store.ErrUnavailable, http.StatusServiceUnavailable, "the database cannot be reached: nothing can be recorded, so nothing is let through"},
	{store.ErrInUse, http.StatusServiceUnavailable, "another gate runs under this node's name: nothing can be recorded, so nothing is let through"},
	{store.ErrBusy, http.StatusServiceUnavailable, "the gate is overloaded: try again in a moment"},
}

// publicError gives an error its public half, where it has one.
func publicError(err error) error {
	if err == nil {
		return nil
	}
	var already interface{ Public() string }
	if errors.As(err, &already) {
		return err
	}
	var decided *approval.DecidedError
	if errors.As(err, &decided) {
		return &Error{text: decided.Error(), status: http.StatusConflict, cause: err}
	}
	if errors.Is(err, autonomy.ErrStopped) {
		return &Error{text: err.Error(), status: http.StatusForbidden, cause: err} // it says what stops the agent
	}
	var invalid *call.InvalidError
	if errors.As(err, &invalid) {
		return &Error{text: invalid.Error(), status: http.StatusBadRequest, cause: err}
	}
	for _, s := range shown {
		if errors.Is(err, s.cause) {
			text := s.text
			if text == "" {
				text = s.cause.Error()
			}
			return &Error{text: text, status: s.status, cause: err}
		}
	}
	if errors.Is(err, approval.ErrInvalid) || errors.Is(err, session.ErrInvalid) {
		return &Error{text: err.Error(), status: http.StatusBadRequest, cause: err}
	}
	return err
}

// PublicError gives an error of a state package its public half, for the
// surfaces that reach the state on another way.
func PublicError(err error) error { return publicError(err) }
