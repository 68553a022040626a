package session

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
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
	// Policy and Epoch are what is in force in the scope that was asked for.
	Policy call.Digest
	Epoch  int64
	// Session is the principal's; nil where the gate knows none by that id.
	Session *Session
	// SessionEnded is set for a session that is over and for one that never
	// was.
	SessionEnded bool
}

// standingQuery reads everything at once. Missing rows come as empty values,
// which no signature fits.
const standingQuery = `SELECT k.killed, k.reason, k.set_by, k.set_at, k.blocks, k.version, k.mac,
	(SELECT count(*) FROM danger_block),
	COALESCE(b.agent, ''), COALESCE(b.reason, ''), COALESCE(b.set_by, ''), COALESCE(b.set_at, 0), COALESCE(b.mac, ''),
	COALESCE(p.hash, ''), COALESCE(p.epoch, 0), COALESCE(p.set_by, ''), COALESCE(p.set_at, 0), COALESCE(p.mac, ''),
	COALESCE(s.id, ''), COALESCE(s.agent, ''), COALESCE(s.ref, ''), COALESCE(s.surface, ''), COALESCE(s.workspace, ''),
	COALESCE(s.pid, 0), COALESCE(s.start, 0), COALESCE(s.uid, 0), COALESCE(s.boot, ''), COALESCE(s.machine, ''),
	COALESCE(s.token, ''), COALESCE(s.attendance, ''), COALESCE(s.mode, ''), COALESCE(s.opened, 0), COALESCE(s.seen, 0),
	COALESCE(s.ended, 0), COALESCE(s.ended_by, ''), COALESCE(s.mac, '')
	FROM switches k
	LEFT JOIN danger_block b ON b.agent = $1
	LEFT JOIN policy_head p ON p.scope = $2
	LEFT JOIN agent_session s ON s.id = $3
	WHERE k.one = 1`

// CheckStanding reads what holds for a principal, and the policy in force in a
// scope. In a write on PostgreSQL it first takes the switches' row for sharing:
// a switch thrown on another node waits for this transaction, and one thrown
// before is seen. An error denies.
func (g *Registry) CheckStanding(tx *store.Tx, p call.Principal, scope string) (Standing, error) {
	if lock := tx.ForShare(); lock != "" {
		// A statement of its own: the next one must see what was committed
		// while this one waited.
		var version int64
		err := tx.QueryRow(`SELECT version FROM switches WHERE one = 1` + lock).Scan(&version)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return Standing{}, err
		}
	}
	var k Switches
	var b Block
	h := Head{Scope: scope}
	var c sessionScan
	var blocks, killAt, blockAt, headAt int64
	var killMAC, blockMAC, headMAC, hash []byte
	dest := append([]any{&k.Kill, &k.Reason, &k.By, &killAt, &k.Blocks, &k.Version, &killMAC, &blocks,
		&b.Agent, &b.Reason, &b.By, &blockAt, &blockMAC, &hash, &h.Epoch, &h.By, &headAt, &headMAC}, c.dest()...)
	agent := AgentID(p.Agent)
	err := tx.QueryRow(standingQuery, agent, scope, p.Session).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return Standing{Kill: true, Why: "the row of switches is missing from the database"}, nil
	}
	if err != nil {
		return Standing{}, err
	}
	k.At, b.At, h.At = keyring.Time(killAt), keyring.Time(blockAt), keyring.Time(headAt)
	st := Standing{}
	g.judgeSwitches(&st, &k, killMAC, &b, blockMAC, blocks)
	if len(hash) > 0 {
		if len(hash) != copy(h.Hash[:], hash) || !g.headRow(&h).Is(headMAC) {
			return Standing{}, fmt.Errorf("policy of %s: %w", scope, ErrForged)
		}
		st.Policy, st.Epoch = h.Hash, h.Epoch
	}
	return st, g.judgeSession(&st, &c, agent)
}

// judgeSwitches reads the kill switch and the block; whatever is not as the
// gate wrote it stops.
func (g *Registry) judgeSwitches(st *Standing, k *Switches, killMAC []byte, b *Block, blockMAC []byte, blocks int64) {
	switch {
	case !g.switchRow(k).Is(killMAC):
		st.Kill, st.Why = true, "the row of switches was edited in the database"
	case k.Kill:
		st.Kill, st.Why = true, "the kill switch is on: "+k.Reason
	case b.Agent != "" && !g.blockRow(b).Is(blockMAC):
		st.Danger, st.Why = true, corrupt
	case b.Agent != "":
		st.Danger, st.Why = true, "the agent is blocked: "+b.Reason
	case blocks != k.Blocks:
		st.Danger, st.Why = true, "a danger block was added to or removed from the database by something else than the gate"
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
