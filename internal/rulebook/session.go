package rulebook

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// sessionScope names a session's own policy in the store. It is given when the
// session is opened and never changes; it tightens and nothing else.
const sessionScope = "session:"

// sessionFile is what a session's policy is called in messages.
const sessionFile = "session policy"

// maxSessions bounds the sessions whose policies are kept in memory. They are
// read again when they are needed.
const maxSessions = 4096

// SetSession gives a session that is being opened a policy of its own. It runs
// inside the transaction that opens it.
func (b *Book) SetSession(tx *store.Tx, id, text string) error {
	if len(text) > maxFile {
		return &SessionError{fmt.Errorf("it is larger than %d bytes", maxFile)}
	}
	parsed, err := policy.Parse(sessionFile, []byte(text))
	if err != nil {
		return &SessionError{err}
	}
	b.mu.Lock()
	layers := append([]policy.Layer(nil), b.force.layers...)
	b.mu.Unlock()
	if _, err := policy.Compile(append(layers, policy.Layer{Scope: policy.ScopeSession, File: parsed}), b.opts.Compile); err != nil {
		return &SessionError{err}
	}
	return b.writeFiles(tx, sessionScope+id, []file{{Scope: policy.ScopeSession, Path: sessionFile, Content: []byte(text)}}, "session")
}

// SessionError says what is wrong with a session's policy.
type SessionError struct{ err error }

// Error says what is wrong.
func (e *SessionError) Error() string { return "the policy of the session: " + e.err.Error() }

// Public is the same: it is about the caller's own text.
func (e *SessionError) Public() string { return e.Error() }

// HTTPStatus is that of a bad request.
func (e *SessionError) HTTPStatus() int { return 400 }

// inSession adds the session's own policy to the layers that hold for a call.
// One that cannot be read or does not go together with the others denies.
func (b *Book) inSession(c *call.Call, force *edition, snap *policy.Snapshot, paths []string, contents [][]byte) *policy.Snapshot {
	if snap == nil || c.Principal.Session == "" {
		return snap
	}
	own, err := b.sessionPolicy(c.Principal.Session)
	if err != nil {
		b.opts.Log.Error("a session's policy could not be read; its calls are denied", "session", c.Principal.Session, "error", err)
		return nil
	}
	if own == nil {
		return snap
	}
	return b.combine(force, append(paths, sessionFile), append(contents, own))
}

// sessionPolicy returns the text of a session's policy, nil if it has none.
func (b *Book) sessionPolicy(id string) ([]byte, error) {
	b.mu.Lock()
	text, known := b.sessions[id]
	b.mu.Unlock()
	if known {
		return text, nil
	}
	opened := true
	err := b.opts.Store.Read(context.Background(), func(tx *store.Tx) error {
		var n int
		if err := tx.QueryRow(`SELECT count(*) FROM policy_files WHERE scope = $1`, sessionScope+id).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			_, err := b.opts.Sessions.Get(tx, id)
			if opened = err == nil; errors.Is(err, session.ErrNotFound) {
				err = nil
			}
			return err
		}
		files, err := b.readFiles(tx, sessionScope+id)
		if err == nil && len(files) == 1 {
			text = files[0].Content
		}
		return err
	})
	if err != nil || !opened {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions == nil || len(b.sessions) >= maxSessions {
		b.sessions = make(map[string][]byte)
	}
	b.sessions[id] = text
	return text, nil
}
