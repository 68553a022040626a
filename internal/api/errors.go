package api

import (
	"errors"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Error is an error as the caller sees it. The cause stays in the log.
type Error struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
	// Hint says what to do about it.
	Hint  string `json:"hint,omitzero"`
	cause error
}

// Error returns the public text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the hidden cause.
func (e *Error) Unwrap() error { return e.cause }

var (
	errNoCredential = &Error{Status: http.StatusUnauthorized, Text: "this needs an approver's credential", Hint: "send it as a Bearer token; `gatehouse approver add NAME` makes one"}
	errNoAgent      = &Error{Status: http.StatusUnauthorized, Text: "this needs an agent's token", Hint: "send it as a Bearer token; `gatehouse agent add NAME` makes one"}
	errEnrolHeld    = &Error{Status: http.StatusForbidden, Text: "the first approver is enrolled by the administrator of this machine", Hint: "sudo gatehouse approver add NAME"}
	errWrongHalf    = &Error{Status: http.StatusForbidden, Text: "an agent's token cannot do this"}
	errForeignHost  = &Error{Status: http.StatusForbidden, Text: "the Host header names another machine"}
	errForeign      = &Error{Status: http.StatusForbidden, Text: "requests from other sites are refused"}
	errTooLarge     = &Error{Status: http.StatusRequestEntityTooLarge, Text: "the request is too large"}
)

// public turns any error into one that may leave the process. An error says
// what may be shown by a method Public, and which status fits by a method
// Status; whatever does neither is an internal error.
func public(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var invalid *call.InvalidError
	if errors.As(err, &invalid) {
		return &Error{Status: http.StatusBadRequest, Text: invalid.Error(), cause: err}
	}
	var shown interface{ Public() string }
	if !errors.As(err, &shown) {
		return &Error{Status: http.StatusInternalServerError, Text: "the gate failed to do this; its log says why", cause: err}
	}
	out := &Error{Status: http.StatusConflict, Text: shown.Public(), cause: err}
	var status interface{ HTTPStatus() int }
	if errors.As(err, &status) {
		out.Status = status.HTTPStatus()
	}
	return out
}
