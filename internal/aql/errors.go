package aql

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// RefusedError says why an operation that was let through did nothing.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Public returns the reason, which the agent may read.
func (e *RefusedError) Public() string { return e.Reason }

// refused makes the error.
func refused(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// unknown says that there is no such thing, and what there is that comes near.
func unknown(what, name string, known []string) error {
	reason := fmt.Sprintf("there is no %s %q", what, name)
	if near, ok := match.Nearest(name, known); ok {
		reason += fmt.Sprintf("; did you mean %q?", near)
	}
	return &RefusedError{Reason: reason}
}
