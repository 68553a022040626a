package daemon

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// doors says who is at the door.
type doors struct {
	store    *store.Store
	sessions *session.Registry
	desk     *admin.Desk
	book     *rulebook.Book

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
	o := session.Open{Agent: ask.Agent, Surface: ask.Surface, Workspace: ask.Workspace, Peer: peer}
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
