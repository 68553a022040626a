package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// doors says who is at the door.
type doors struct {
	store    *store.Store
	sessions *session.Registry
	desk     *admin.Desk
	keys     *keyring.Keyring
	issuer   *issuer // nil where no other's tokens are taken
	book     *rulebook.Book
	// around finds the job that a process belongs to.
	around func(chain []session.Process) (job.Job, bool)

	known memo[string, knownAgent] // by token
	in    memo[insideKey, string]  // sessions of callers
}

type knownAgent struct{ name, tokenID string }

// insideKey is a caller in a session. What it was bound to does not change,
// and whether the session still runs is read in every transaction.
type insideKey struct {
	agent, token, id string
	pid              int
	start            uint64
	workspace        string // of one that is apart
}

// Agent returns the agent that a token belongs to.
func (d *doors) Agent(ctx context.Context, token string) (name, tokenID string, err error) {
	if a, ok := d.known.get(token); ok {
		return a.name, a.tokenID, nil
	}
	var found *session.Agent
	err = d.store.Read(ctx, func(tx *store.Tx) (err error) {
		found, err = d.sessions.CheckToken(tx, token)
		return err
	})
	if err != nil {
		return "", "", admin.PublicError(err)
	}
	d.known.put(token, knownAgent{found.Name, found.TokenID()})
	return found.Name, found.TokenID(), nil
}

// sessionToken is what a token for one session holds, sealed.
type sessionToken struct {
	Agent   string `json:"agent"`
	TokenID string `json:"token"`
	Session string `json:"session"`
}

const (
	sessionTokenPrefix  = "ghs_"
	sessionTokenPurpose = "session token"
)

// MintSessionToken makes a token that is good for one session of an agent.
// That the session runs and that the agent's own token is still its present
// one is checked whenever it is used.
func (d *doors) MintSessionToken(_ context.Context, agent, tokenID, session string) (string, error) {
	plain, err := json.Marshal(sessionToken{agent, tokenID, session})
	if err != nil {
		return "", err
	}
	sealed, err := d.keys.Seal(sessionTokenPurpose, plain)
	return sessionTokenPrefix + base64.RawURLEncoding.EncodeToString(sealed), err
}

// SessionToken opens such a token.
func (d *doors) SessionToken(_ context.Context, token string) (agent, tokenID, id string, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, sessionTokenPrefix))
	if err != nil {
		return "", "", "", admin.PublicError(session.ErrToken)
	}
	plain, err := d.keys.Open(sessionTokenPurpose, sealed)
	var t sessionToken
	if err != nil || json.Unmarshal(plain, &t) != nil || t.TokenID == "" {
		return "", "", "", admin.PublicError(session.ErrToken)
	}
	return t.Agent, t.TokenID, t.Session, nil
}

// Approver returns the approver that a credential belongs to.
func (d *doors) Approver(ctx context.Context, credential string) (string, error) {
	return d.desk.CheckCredential(ctx, credential)
}

// Peer returns the process at the other end of a unix socket.
func (d *doors) Peer(conn net.Conn) (session.Peer, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return session.Peer{}, errors.New("not a socket")
	}
	return session.PeerOf(sc)
}

// Inside returns the agent whose hook bound the process tree that a peer is in.
func (d *doors) Inside(ctx context.Context, peer *session.Peer) (agent string, err error) {
	err = d.store.Read(ctx, func(tx *store.Tx) (err error) {
		agent, err = d.sessions.Agent(tx, peer.Chain)
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return "", nil
	}
	return agent, admin.PublicError(err)
}

// implicit is the host's name for the session of a caller that names none.
const implicit = "default"

// Session finds or opens the session of a caller.
func (d *doors) Session(ctx context.Context, ask api.SessionAsk) (id string, err error) {
	peer := session.Peer{Token: ask.TokenID}
	key := insideKey{agent: ask.Agent, token: ask.TokenID, id: ask.ID}
	if ask.Peer != nil {
		peer.Chain = ask.Peer.Chain
		key.pid, key.start = peer.Chain[0].PID, peer.Chain[0].Start
	}
	if ask.Apart {
		key.workspace = ask.Workspace
	}
	if d.dispatched(ask) {
		return ask.ID, nil
	}
	if id, ok := d.in.get(key); ok && ask.ID != api.NewSession {
		return id, nil
	}
	if ask.ID == "" || ask.ID == api.NewSession {
		id, err = d.open(ctx, ask, peer)
	} else {
		id, err = ask.ID, d.check(ctx, ask, peer)
	}
	if err != nil {
		return "", admin.PublicError(err)
	}
	d.in.put(key, id)
	return id, nil
}

// dispatched says whether the caller is a process of a run, about a call of
// that very run. The run is part of its asker's session, and its processes are
// for nothing else.
func (d *doors) dispatched(ask api.SessionAsk) bool {
	if ask.Path == "" || ask.Peer == nil || ask.TokenID != "" {
		return false
	}
	j, found := d.around(ask.Peer.Chain)
	if !found {
		return false
	}
	run := (&dispatched{CLI: j.CLI, Owner: j.Owner, Job: j.ID}).principal("")
	return ask.Agent == run.Agent && ask.ID == run.Session && (ask.Path == run.Path || strings.HasPrefix(ask.Path, run.Path+"/"))
}

// check says whether the caller belongs to the session it names.
func (d *doors) check(ctx context.Context, ask api.SessionAsk, peer session.Peer) error {
	return d.store.Read(ctx, func(tx *store.Tx) error {
		s, err := d.sessions.Check(tx, ask.ID, peer)
		if err == nil && s.Agent != ask.Agent {
			return session.ErrForeign
		}
		return err
	})
}

// open opens a session, or returns the caller's implicit one.
func (d *doors) open(ctx context.Context, ask api.SessionAsk, peer session.Peer) (id string, err error) {
	o := session.Open{Agent: ask.Agent, Surface: ask.Surface, Workspace: observe.RealDir(ask.Workspace), Peer: peer}
	if peer.Token == "" {
		if o.Process, err = session.Anchor(peer.Chain); err != nil {
			return "", err
		}
	}
	if ask.ID == "" {
		o.Ref = implicit
		if peer.Token == "" {
			o.Ref = implicit + "/" + o.Process.String()
		}
		if ask.Apart {
			o.Ref += fmt.Sprintf(" in %x", sha256.Sum256([]byte(o.Workspace)))
		}
		err = d.store.Read(ctx, func(tx *store.Tx) error {
			s, err := d.sessions.Find(tx, ask.Agent, o.Ref)
			if err == nil {
				s, err = d.sessions.Check(tx, s.ID, peer)
			}
			if err == nil {
				id = s.ID
			}
			return err
		})
		if err == nil {
			return id, nil
		}
	}
	err = d.store.Write(ctx, func(tx *store.Tx) error {
		s, _, err := d.sessions.Open(tx, o)
		if err != nil {
			return err
		}
		id = s.ID
		if ask.Policy == "" {
			return nil
		}
		return d.book.SetSession(tx, id, ask.Policy)
	})
	return id, err
}

// EndSession ends the caller's own session.
func (d *doors) EndSession(ctx context.Context, ask api.SessionAsk) error {
	id, err := d.Session(ctx, ask)
	if err != nil {
		return err
	}
	return d.desk.EndSession(ctx, admin.Actor{Approver: ask.Agent, Channel: ask.Surface}, id)
}
