package session

import (
	"bytes"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Standing is what holds for a principal at this moment, whatever its calls
// are. The zero value has no policy, and a gate whose policy differs denies.
type Standing struct {
	// Kill and Danger stop everything; Why says in words what does.
	Kill   bool
	Danger bool
	Why    string
	// Block is the block that Danger comes from, "" where it is the list of
	// blocks that was edited.
	Block string
	// Policy and Epoch are what is in force in the scope that was asked for.
	Policy call.Digest
	Epoch  int64
	// Session is the principal's; nil where the gate knows none by that id.
	// When it was last seen is not exact here.
	Session *Session
	// SessionEnded is set for a session that is over and for one that never
	// was.
	SessionEnded bool
	// Paused says which execution of the agent waits for a person, and why, ""
	// if none does. Hooks' sessions have no steps and are not paused, unless
	// the execution is theirs.
	Paused string
	// Elements is the policy of the elements that are active for the agent in
	// the session's workspace.
	Elements *element.Set
}

// standingQuery reads all but the blocks. Missing rows come as empty values,
// which no signature fits.
const standingQuery = `SELECT k.killed, k.reason, k.set_by, k.set_at, k.blocks, k.elements, k.version, k.mac,
	COALESCE(p.hash, ''), COALESCE(p.epoch, 0), COALESCE(p.set_by, ''), COALESCE(p.set_at, 0), COALESCE(p.mac, ''),
	COALESCE(s.id, ''), COALESCE(s.agent, ''), COALESCE(s.ref, ''), COALESCE(s.surface, ''), COALESCE(s.workspace, ''),
	COALESCE(s.pid, 0), COALESCE(s.start, 0), COALESCE(s.uid, 0), COALESCE(s.boot, ''), COALESCE(s.machine, ''),
	COALESCE(s.token, ''), COALESCE(s.attendance, ''), COALESCE(s.mode, ''), COALESCE(s.opened, 0), COALESCE(s.seen, 0),
	COALESCE(s.ended, 0), COALESCE(s.ended_by, ''), COALESCE(s.lineage, ''), COALESCE(s.mac, '')
	FROM switches k
	LEFT JOIN policy_head p ON p.scope = $1
	LEFT JOIN agent_session s ON s.id = $2
	WHERE k.one = 1`

// standingKey says whose standing it is.
type standingKey struct{ agent, session, scope string }

// standingSeen is a standing and the row of switches it was read with.
type standingSeen struct {
	version int64
	mac     []byte
	st      Standing
}

// maxSeen bounds what is kept; a full memory starts afresh.
const maxSeen = 4096

// CheckStanding reads what holds for a principal, and the policy in force in a
// scope. In a write on PostgreSQL it takes the row of switches for sharing: a
// switch thrown on another node waits for this transaction, and one thrown
// before is seen. An error denies.
//
// The row of switches is read in every transaction, here. While it
// is the very row with which the rest was read before, the rest cannot have
// changed, because nothing changes it without changing that row; then it is
// not read again.
func (g *Registry) CheckStanding(tx *store.Tx, p call.Principal, scope string) (Standing, error) {
	key := standingKey{AgentID(p.Agent), p.Session, scope}
	now, err := readVersion(tx)
	if errors.Is(err, sql.ErrNoRows) {
		return Standing{Kill: true, Why: "the row of switches is missing from the database"}, nil
	}
	if err != nil {
		return Standing{}, err
	}
	if st, ok := g.recall(key, &now); ok {
		return st, nil
	}
	if now.st, err = g.readStanding(tx, key); err != nil {
		return Standing{}, err
	}
	// A session that is not there may be opened without a change of switches.
	if now.st.Session != nil {
		g.remember(key, &now)
	}
	return now.st, nil
}

// versionKey is where the functions of one transaction find the row of
// switches that the first of them read and locked. Whoever changes the row
// takes it away from there.
type versionKey struct{}

// readVersion reads which row of switches it is, once in a transaction.
func readVersion(tx *store.Tx) (now standingSeen, err error) {
	if shared, ok := tx.Shared(versionKey{}).(standingSeen); ok {
		return shared, nil
	}
	// The row is as it was read if nothing at all was committed since.
	stamp := tx.Stamp()
	if seen, ok := tx.Recall(versionKey{}).(stamped); ok && seen.stamp.Same(stamp) {
		return seen.now, nil
	}
	// A statement of its own: the next one must see what was committed while
	// this one waited for the lock.
	err = tx.Settled(`SELECT version, mac FROM switches WHERE one = 1`+tx.ForShare()).Scan(&now.version, &now.mac)
	if err == nil {
		tx.Share(versionKey{}, now)
		tx.Remember(versionKey{}, stamped{stamp, now})
	}
	return now, err
}

// stamped is a row of switches and the state of the database in which it was read.
type stamped struct {
	stamp store.Stamp
	now   standingSeen
}

func (g *Registry) recall(key standingKey, now *standingSeen) (Standing, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, ok := g.seen[key]
	if !ok || seen.version != now.version || !bytes.Equal(seen.mac, now.mac) {
		return Standing{}, false
	}
	session := *seen.st.Session // the caller's own copy
	seen.st.Session = &session
	return seen.st, true
}

func (g *Registry) remember(key standingKey, now *standingSeen) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) >= maxSeen {
		clear(g.seen)
	}
	kept := *now
	session := *now.st.Session
	kept.st.Session = &session
	g.seen[key] = kept
}

// readStanding reads everything and checks every signature.
func (g *Registry) readStanding(tx *store.Tx, key standingKey) (Standing, error) {
	var k Switches
	h := Head{Scope: key.scope}
	var c sessionScan
	var killAt, headAt int64
	var killMAC, headMAC, hash []byte
	dest := append([]any{&k.Kill, &k.Reason, &k.By, &killAt, &k.blocks, &k.elements, &k.Version, &killMAC, &hash, &h.Epoch, &h.By,
		&headAt, &headMAC}, c.dest()...)
	if err := tx.QueryRow(standingQuery, key.scope, key.session).Scan(dest...); err != nil {
		return Standing{}, err
	}
	k.At, h.At = keyring.Time(killAt), keyring.Time(headAt)
	blocks, err := g.Blocks(tx)
	if err != nil {
		return Standing{}, err
	}
	var st Standing
	if err := g.judgeSession(&st, &c, key.agent); err != nil {
		return Standing{}, err
	}
	g.judgeSwitches(&st, &k, killMAC, blocks, key.agent)
	if len(hash) > 0 {
		if len(hash) != copy(h.Hash[:], hash) || !g.headRow(&h).Is(headMAC) {
			return Standing{}, fmt.Errorf("policy of %s: %w", key.scope, ErrForged)
		}
		st.Policy, st.Epoch = h.Hash, h.Epoch
	}
	if err := g.judgePauses(tx, &st, key.agent); err != nil {
		return Standing{}, err
	}
	return st, g.judgeElements(tx, &st, &k, key.agent)
}

// hookSurface is how the surfaces of agents' hooks begin.
const hookSurface = "hook:"

// judgePauses finds out whether an execution of the agent, or of one it was
// started by, is paused: a new session, a sub-agent or a child goes on no more
// than the one that was stopped.
func (g *Registry) judgePauses(tx *store.Tx, st *Standing, agent string) error {
	if g.paused == nil || st.Session == nil {
		return nil
	}
	p, err := g.paused(tx, append([]string{agent}, st.Session.Lineage...))
	if err != nil || p == nil || strings.HasPrefix(st.Session.Surface, hookSurface) && p.Session != st.Session.ID {
		return err
	}
	st.Paused = p.Why
	return nil
}

// judgeElements compiles what is active. A list that is not as the gate left
// it stops everything: what was taken out of it may have forbidden the call.
func (g *Registry) judgeElements(tx *store.Tx, st *Standing, k *Switches, agent string) error {
	sets, err := g.ActiveSets(tx)
	if err != nil {
		return err
	}
	if !g.listed(sets, k.elements) {
		st.Danger, st.Why = true, "the list of active elements was edited in the database"
		return nil
	}
	workspace := ""
	if st.Session != nil {
		workspace = st.Session.Workspace
	}
	st.Elements = g.compiled(sets, agent, workspace)
	return nil
}

// judgeSwitches reads the kill switch and the blocks; whatever is not as the
// gate wrote it stops.
func (g *Registry) judgeSwitches(st *Standing, k *Switches, mac []byte, blocks []Block, agent string) {
	block := blocking(blocks, agent, st.Session)
	switch {
	case !g.switchRow(k).Is(mac):
		st.Kill, st.Why = true, "the row of switches was edited in the database"
	case k.Kill:
		st.Kill, st.Why = true, "the kill switch is on: "+k.Reason
	case block != nil:
		st.Danger, st.Block, st.Why = true, block.ID, "this agent is blocked: "+block.Reason
	case !hmac.Equal(g.blockList(blocks), k.blocks):
		st.Danger, st.Why = true, "the list of blocked agents was edited in the database"
	}
}

func (g *Registry) judgeSession(st *Standing, c *sessionScan, agent string) error {
	if c.s.ID == "" {
		st.SessionEnded = true
		return nil
	}
	s, err := g.session(c)
	if err != nil {
		return err
	}
	if s.Agent != agent {
		return fmt.Errorf("session %s: %w", s.ID, ErrForeign)
	}
	st.Session, st.SessionEnded = s, !s.Ended.IsZero()
	return nil
}
