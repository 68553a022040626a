package dispatch

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Session is a conversation with a CLI that can be gone on with.
type Session struct {
	ID          string    `json:"id"`
	CLI         string    `json:"cli"`
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"createdAt"`
	Used        time.Time `json:"lastUsedAt"`
	Active      bool      `json:"active"`
	// Begun says that the CLI has it, under the name Provider.
	Begun    bool   `json:"begun"`
	Provider string `json:"providerSessionId,omitzero"`
	// Dir is where it began, and Posture what held it last.
	Dir     string           `json:"workingDir,omitzero"`
	Posture provider.Posture `json:"posture,omitzero"`
	// CacheState are its sums, where it has had requests.
	CacheState *flight.Session `json:"cacheState,omitzero"`

	agent string
}

// ErrNoSession is the answer to a session that is not the caller's.
var ErrNoSession = &Refused{"there is no such session of yours"}

// Refused is why a request cannot be carried out. It may be shown.
type Refused struct{ Reason string }

// Error returns the reason.
func (e *Refused) Error() string { return e.Reason }

// Public returns the reason, which may be shown.
func (e *Refused) Public() string { return e.Reason }

func refuse(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// maxSessions bounds what one agent keeps; the oldest go.
const maxSessions = 1000

// sealedSession is a session as it is kept.
type sealedSession struct {
	Session
	Agent string `json:"agent"`
}

func (s *Service) scanSession(row interface{ Scan(...any) error }) (*Session, error) {
	var id, agent, cli string
	var used, active int64
	var body []byte
	err := row.Scan(&id, &agent, &cli, &used, &active, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	raw, err := s.opts.Keys.Open("dispatch session "+agent+" "+id, body)
	var kept sealedSession
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil || kept.ID != id || kept.Agent != agent || kept.CLI != cli {
		return nil, refuse("the session %s was edited in the database", id)
	}
	kept.Session.agent, kept.Session.Active, kept.Session.Used = agent, active != 0, keyring.Time(used)
	return &kept.Session, nil
}

const sessionColumns = `id, agent, cli, used, active, body`

func (s *Service) putSession(tx *store.Tx, v *Session) error {
	raw, err := json.Marshal(&sealedSession{Session: *v, Agent: v.agent})
	if err != nil {
		return err
	}
	body, err := s.opts.Keys.Seal("dispatch session "+v.agent+" "+v.ID, raw)
	if err != nil {
		return err
	}
	active := int64(0)
	if v.Active {
		active = 1
	}
	_, err = tx.Exec(`INSERT INTO dispatch_session (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (agent, id) DO UPDATE SET used = excluded.used, active = excluded.active, body = excluded.body`,
		v.ID, v.agent, v.CLI, keyring.Micros(v.Used), active, body)
	return err
}

// SessionCreate makes a session that the first request with its id begins.
func (s *Service) SessionCreate(ctx context.Context, who call.Principal, cli, description string) (*Session, error) {
	if err := knownCLI(cli); err != nil {
		return nil, err
	}
	id, err := newUUID()
	if err != nil {
		return nil, err
	}
	v := &Session{ID: id, CLI: cli, Description: description, agent: who.Agent}
	err = s.opts.Store.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		v.Created, v.Used = now, now
		if _, err := tx.Exec(`DELETE FROM dispatch_session WHERE agent = $1 AND id IN
			(SELECT id FROM dispatch_session WHERE agent = $1 ORDER BY used DESC LIMIT 1000000 OFFSET $2)`, who.Agent, maxSessions-1); err != nil {
			return err
		}
		return s.putSession(tx, v)
	})
	return v, err
}

// newUUID is a random UUID, the form of session ids that CLIs take.
func newUUID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

// SessionList returns the caller's sessions, the last used first.
func (s *Service) SessionList(ctx context.Context, who call.Principal, cli string) (list []*Session, err error) {
	err = s.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, err = store.All(tx, func(rows *store.Rows) (*Session, error) { return s.scanSession(rows) },
			`SELECT `+sessionColumns+` FROM dispatch_session WHERE agent = $1 AND (cli = $2 OR $2 = '') ORDER BY used DESC, id LIMIT 200`, who.Agent, cli)
		return err
	})
	return list, err
}

// SessionGet returns one of the caller's sessions, with its cache state.
func (s *Service) SessionGet(ctx context.Context, who call.Principal, id string) (v *Session, err error) {
	err = s.opts.Store.Read(ctx, func(tx *store.Tx) error {
		if v, err = s.session(tx, who, id); err != nil {
			return err
		}
		v.CacheState, err = s.opts.Flight.Session(tx, who, v.ID, s.opts.Awareness())
		return err
	})
	return v, err
}

func (s *Service) session(tx *store.Tx, who call.Principal, id string) (*Session, error) {
	return s.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM dispatch_session WHERE agent = $1 AND id = $2`, who.Agent, id))
}

// SessionDelete forgets a session. What the CLI keeps of it stays.
func (s *Service) SessionDelete(ctx context.Context, who call.Principal, id string) error {
	return s.opts.Store.Write(ctx, func(tx *store.Tx) error {
		if _, err := s.session(tx, who, id); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM dispatch_session WHERE agent = $1 AND id = $2`, who.Agent, id)
		return err
	})
}

// SessionClear forgets the caller's sessions of a CLI, of all for "".
func (s *Service) SessionClear(ctx context.Context, who call.Principal, cli string) (n int64, err error) {
	err = s.opts.Store.Write(ctx, func(tx *store.Tx) error {
		n, err = tx.Exec(`DELETE FROM dispatch_session WHERE agent = $1 AND (cli = $2 OR $2 = '')`, who.Agent, cli)
		return err
	})
	return n, err
}

// SessionSetActive makes a session the one that resumeLatest goes on with; no
// id makes it none. No request goes on with a session without saying so.
func (s *Service) SessionSetActive(ctx context.Context, who call.Principal, cli, id string) error {
	return s.opts.Store.Write(ctx, func(tx *store.Tx) error {
		var v *Session
		if id != "" {
			var err error
			if v, err = s.session(tx, who, id); err != nil {
				return err
			}
			if v.CLI != cli {
				return refuse("the session %s is one of %s", id, v.CLI)
			}
		}
		if _, err := tx.Exec(`UPDATE dispatch_session SET active = 0 WHERE agent = $1 AND cli = $2`, who.Agent, cli); err != nil || v == nil {
			return err
		}
		_, err := tx.Exec(`UPDATE dispatch_session SET active = 1 WHERE agent = $1 AND id = $2`, who.Agent, id)
		return err
	})
}

// latestSession is the one that resumeLatest means: the active one, else the
// last one used.
func (s *Service) latestSession(tx *store.Tx, who call.Principal, cli string) (*Session, error) {
	return s.scanSession(tx.QueryRow(`SELECT `+sessionColumns+` FROM dispatch_session WHERE agent = $1 AND cli = $2
		ORDER BY active DESC, used DESC, id LIMIT 1`, who.Agent, cli))
}
