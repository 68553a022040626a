package session

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Attendance says whether someone is there to be asked.
type Attendance string

// The kinds of attendance. The empty one is unattended: nobody waits.
const (
	Interactive Attendance = "interactive"
	Unattended  Attendance = "unattended"
)

// Mode says what the gate does with decisions in a session.
type Mode string

// The modes. The empty one enforces.
const (
	Enforce Mode = "enforce"
	// Observe decides and records without blocking.
	Observe Mode = "observe"
	// Plan denies everything beyond a read.
	Plan Mode = "plan"
)

// Session is an agent's session.
type Session struct {
	// ID is the gate's own; Ref is what the host calls it.
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Ref       string `json:"ref,omitzero"`
	Surface   string `json:"surface"`
	Workspace string `json:"workspace,omitzero"`
	// Process or Token is what it is bound to.
	Process    Process    `json:"process,omitzero"`
	Token      string     `json:"token,omitzero"`
	Attendance Attendance `json:"attendance"`
	Mode       Mode       `json:"mode"`
	Opened     time.Time  `json:"opened"`
	Seen       time.Time  `json:"seen"`
	Ended      time.Time  `json:"ended,omitzero"`
	EndedBy    string     `json:"ended_by,omitzero"`
	// Lineage are the agents that its process was started under, the nearest
	// first. What stops one of them stops this session as well.
	Lineage []string `json:"lineage,omitzero"`
	// Touch asks the caller to call [Registry.Touch] in a write.
	Touch bool `json:"-"`
}

// Open says which session to open.
type Open struct {
	Agent     string
	Surface   string
	Workspace string
	// Ref is the host's name for the session, if it has one.
	Ref string
	// Process is what the session is bound to; on a unix socket see [Anchor].
	Process Process
	// Peer is who asks. Its token, if it has one, binds the session instead;
	// it must be the agent's present one.
	Peer       Peer
	Attendance Attendance
	Mode       Mode
	// Resume takes a session on whose process has ended while a question of it
	// waits, in another process of the same user.
	Resume bool
}

// seenEvery is how exact a session's last use is.
const seenEvery = time.Minute

const maxName = 512

const sessionColumns = `id, agent, ref, surface, workspace, pid, start, uid, boot, machine, token, attendance, mode,
	opened, seen, ended, ended_by, lineage, mac`

// sessionRow signs everything but the last use, which changes all the time and
// opens nothing.
func (g *Registry) sessionRow(s *Session) *keyring.Row {
	return g.keys.Row("session").Text(s.ID, s.Agent, s.Ref, s.Surface, s.Workspace).
		Int(int64(s.Process.PID), int64(s.Process.Start), int64(s.Process.UID)).
		Text(s.Process.Boot, s.Process.Machine, s.Token, string(s.Attendance), string(s.Mode)).
		Time(s.Opened, s.Ended).Text(s.EndedBy, s.lineage())
}

// lineage is the list as it is stored; names of agents hold no blank.
func (s *Session) lineage() string { return strings.Join(s.Lineage, " ") }

// sessionScan is where a row's columns go while it is read.
type sessionScan struct {
	s                          Session
	start, opened, seen, ended int64
	lineage                    string
	mac                        []byte
}

func (c *sessionScan) dest() []any {
	s := &c.s
	return []any{&s.ID, &s.Agent, &s.Ref, &s.Surface, &s.Workspace, &s.Process.PID, &c.start, &s.Process.UID,
		&s.Process.Boot, &s.Process.Machine, &s.Token, &s.Attendance, &s.Mode, &c.opened, &c.seen, &c.ended, &s.EndedBy,
		&c.lineage, &c.mac}
}

// session checks the signature of what was read.
func (g *Registry) session(c *sessionScan) (*Session, error) {
	s := &c.s
	if s.Process.Start = uint64(c.start); c.lineage != "" {
		s.Lineage = strings.Fields(c.lineage)
	}
	s.Opened, s.Seen, s.Ended = keyring.Time(c.opened), keyring.Time(c.seen), keyring.Time(c.ended)
	if !g.sessionRow(s).Is(c.mac) {
		return nil, fmt.Errorf("session %s: %w", s.ID, ErrForged)
	}
	return s, nil
}

func (g *Registry) scanSession(row scanner) (*Session, error) {
	var c sessionScan
	err := row.Scan(c.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("session: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return g.session(&c)
}

// Open opens a session, or returns the one that the host's name already stands
// for if the peer belongs to it. Where that one's process has ended, it is
// ended and a new session opened, which shares nothing with it: grants of the
// old one stay with its id. A name that a living process holds is foreign to
// everyone outside its tree.
func (g *Registry) Open(tx *store.Tx, o Open) (s *Session, opened bool, err error) {
	s, err = o.session()
	if err != nil {
		return nil, false, err
	}
	if s.Token != "" {
		if err := g.holds(tx, s.Agent, s.Token); err != nil {
			return nil, false, err
		}
	}
	now, err := tx.Now()
	if err != nil {
		return nil, false, err
	}
	if o.Ref != "" {
		old, err := g.Find(tx, s.Agent, o.Ref)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, false, err
		case g.belongs(old, o.Peer) == nil:
			return old, false, nil
		case old.Process.IsZero() || !g.gone(old.Process, o.Peer):
			return nil, false, fmt.Errorf("session %s: %w", old.ID, ErrForeign)
		case o.Resume && old.Process.UID == s.Process.UID:
			return old, true, g.rebind(tx, old, s.Process)
		default:
			if err := g.End(tx, old.ID, "its process ended"); err != nil {
				return nil, false, err
			}
		}
	}
	if err := g.barred(tx, s.Process); err != nil {
		return nil, false, err
	}
	if s.ID, err = keyring.NewID("s_", g.keys.Random()); err != nil {
		return nil, false, err
	}
	s.Opened, s.Seen = now, now
	if s.Lineage, err = g.lineageOf(tx, s, o.Peer); err != nil {
		return nil, false, err
	}
	n, err := tx.Exec(`INSERT INTO agent_session (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
		$11, $12, $13, $14, $15, 0, '', $16, $17) ON CONFLICT DO NOTHING`, s.ID, s.Agent, s.Ref, s.Surface, s.Workspace,
		s.Process.PID, int64(s.Process.Start), int64(s.Process.UID), s.Process.Boot, s.Process.Machine, s.Token,
		string(s.Attendance), string(s.Mode), keyring.Micros(now), keyring.Micros(now), s.lineage(), g.sessionRow(s).Sum())
	if err != nil {
		return nil, false, err
	}
	if n != 1 { // another node was faster with the same name
		return nil, false, fmt.Errorf("session %q of %s: %w", o.Ref, s.Agent, ErrForeign)
	}
	store.Notify(tx, Topic, s.ID)
	return s, true, nil
}

// session checks what is to be opened.
func (o *Open) session() (*Session, error) {
	s := &Session{Agent: AgentID(o.Agent), Ref: o.Ref, Surface: o.Surface, Workspace: o.Workspace,
		Attendance: o.Attendance, Mode: o.Mode}
	if s.Attendance == "" {
		s.Attendance = Unattended
	}
	if s.Mode == "" {
		s.Mode = Enforce
	}
	if o.Peer.Token != "" {
		s.Token = o.Peer.Token
	} else {
		s.Process = o.Process
		s.Process.Exe = ""
	}
	switch {
	case s.Agent == "" || s.Surface == "":
		return nil, fmt.Errorf("%w: a session needs an agent and a surface", ErrInvalid)
	case s.Attendance != Interactive && s.Attendance != Unattended:
		return nil, fmt.Errorf("%w: %q is not an attendance: use interactive or unattended", ErrInvalid, s.Attendance)
	case s.Mode != Enforce && s.Mode != Observe && s.Mode != Plan:
		return nil, fmt.Errorf("%w: %q is not a mode: use enforce, observe or plan", ErrInvalid, s.Mode)
	case s.Token == "" && s.Process.PID <= 1:
		return nil, fmt.Errorf("%w: a session is bound to an agent's process or token", ErrInvalid)
	case s.Token == "" && !o.Peer.inside(s.Process):
		return nil, fmt.Errorf("%w: it would be bound to a process the caller is not part of", ErrForeign)
	}
	for _, name := range []string{s.Agent, s.Ref, s.Surface} {
		if len(name) > maxName || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("%w: a name is too long or holds a NUL byte", ErrInvalid)
		}
	}
	if len(s.Workspace) > 8*maxName || strings.ContainsRune(s.Workspace, 0) {
		return nil, fmt.Errorf("%w: the workspace's path is too long or holds a NUL byte", ErrInvalid)
	}
	return s, nil
}

// belongs says whether a peer speaks for a session.
func (g *Registry) belongs(s *Session, peer Peer) error {
	if s.Token != "" {
		if peer.Token == s.Token {
			return nil
		}
	} else if peer.Token == "" && peer.inside(s.Process) {
		return nil
	}
	return fmt.Errorf("session %s: %w", s.ID, ErrForeign)
}

// gone says whether the process a session is bound to has certainly ended. Of
// another machine's processes we know nothing.
func (g *Registry) gone(p Process, peer Peer) bool {
	if len(peer.Chain) == 0 || peer.Chain[0].Machine != p.Machine {
		return false
	}
	return peer.Chain[0].Boot != p.Boot || !g.alive(p)
}

// Check returns the session if it is open and the peer speaks for it. It
// changes nothing, so it works in a read as well.
func (g *Registry) Check(tx *store.Tx, id string, peer Peer) (*Session, error) {
	s, err := g.Get(tx, id)
	if err != nil {
		return nil, err
	}
	if err := g.belongs(s, peer); err != nil {
		return nil, err
	}
	if !s.Ended.IsZero() {
		return nil, fmt.Errorf("session %s: %w", id, ErrEnded)
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	s.Touch = now.Sub(s.Seen) >= seenEvery
	return s, nil
}

// Get returns a session, open or not.
func (g *Registry) Get(tx *store.Tx, id string) (*Session, error) {
	return g.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM agent_session WHERE id = $1`, id))
}

// Find returns the open session a host's name stands for.
func (g *Registry) Find(tx *store.Tx, agent, ref string) (*Session, error) {
	return g.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM agent_session
		WHERE agent = $1 AND ref = $2 AND ended = 0 AND ref <> ''`+tx.ForUpdate(), AgentID(agent), ref))
}

// Named returns the ids of all sessions, ended ones too, that a host gave a name.
func (g *Registry) Named(tx *store.Tx, agent, ref string) ([]string, error) {
	return store.All(tx, func(rows *store.Rows) (id string, err error) { return id, rows.Scan(&id) },
		`SELECT id FROM agent_session WHERE agent = $1 AND ref = $2 ORDER BY opened`, AgentID(agent), ref)
}

// Touch notes that a session is in use.
func (g *Registry) Touch(tx *store.Tx, id string) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE agent_session SET seen = $1 WHERE id = $2 AND ended = 0`, keyring.Micros(now), id)
	return err
}

// End ends a session. Decisions that have read it as open are waited for, and
// none that starts later does. Ending twice does nothing.
func (g *Registry) End(tx *store.Tx, id, by string) error {
	return g.change(tx, id, func(s *Session) (err error) {
		s.Ended, err = tx.Now()
		s.EndedBy = by
		return err
	})
}

// blockedBy marks a session that was stopped for what its process did.
const blockedBy = "blocked: "

// Block ends a session for good: the process it is bound to, which may go on,
// opens no other. Whoever starts the agent anew starts afresh.
func (g *Registry) Block(tx *store.Tx, id, why string) error { return g.End(tx, id, blockedBy+why) }

// barred refuses a process one of whose sessions was blocked.
func (g *Registry) barred(tx *store.Tx, p Process) error {
	if p.IsZero() {
		return nil
	}
	old, err := g.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM agent_session WHERE pid = $1 AND start = $2
		AND boot = $3 AND machine = $4 AND ended_by LIKE $5 ORDER BY id LIMIT 1`, p.PID, int64(p.Start), p.Boot, p.Machine, blockedBy+"%"))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("session %s: %w (%s)", old.ID, ErrEnded, old.EndedBy)
}

// rebind binds a session to another process.
func (g *Registry) rebind(tx *store.Tx, s *Session, p Process) error {
	if err := g.barred(tx, p); err != nil {
		return err
	}
	s.Process = p
	_, err := tx.Exec(`UPDATE agent_session SET pid = $1, start = $2, uid = $3, boot = $4, machine = $5, mac = $6 WHERE id = $7 AND ended = 0`,
		p.PID, int64(p.Start), int64(p.UID), p.Boot, p.Machine, g.sessionRow(s).Sum(), s.ID)
	store.Notify(tx, Topic, s.ID)
	return err
}

// SetMode says what the gate does with decisions in the session.
func (g *Registry) SetMode(tx *store.Tx, id string, m Mode) error {
	if m != Enforce && m != Observe && m != Plan {
		return fmt.Errorf("%w: %q is not a mode: use enforce, observe or plan", ErrInvalid, m)
	}
	return g.change(tx, id, func(s *Session) error { s.Mode = m; return nil })
}

// change changes an open session, behind the lock that decisions share.
func (g *Registry) change(tx *store.Tx, id string, change func(*Session) error) error {
	if err := g.lockSwitches(tx); err != nil {
		return err
	}
	s, err := g.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM agent_session WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil || !s.Ended.IsZero() {
		return err
	}
	if err := change(s); err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE agent_session SET attendance = $1, mode = $2, ended = $3, ended_by = $4, mac = $5 WHERE id = $6`,
		string(s.Attendance), string(s.Mode), keyring.Micros(s.Ended), s.EndedBy, g.sessionRow(s).Sum(), id)
	store.Notify(tx, Topic, id)
	return err
}

// List returns the newest sessions, open ones only if so asked.
func (g *Registry) List(tx *store.Tx, openOnly bool, limit int) ([]*Session, error) {
	if limit <= 0 || limit > 500 {
		limit = 500
	}
	open := ""
	if openOnly {
		open = "WHERE ended = 0"
	}
	return store.All(tx, g.nextSession, fmt.Sprintf(`SELECT %s FROM agent_session %s ORDER BY opened DESC, id DESC LIMIT %d`,
		sessionColumns, open, limit))
}

func (g *Registry) live(tx *store.Tx, condition, arg string) ([]*Session, error) {
	return store.All(tx, g.nextSession, `SELECT `+sessionColumns+` FROM agent_session WHERE ended = 0 AND `+condition+
		` ORDER BY id`, arg)
}

func (g *Registry) nextSession(rows *store.Rows) (*Session, error) { return g.scanSession(rows) }
