package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// caller is who makes a request: an agent or an approver, never both.
type caller struct {
	agent    string
	approver string
	tokenID  string
	peer     *session.Peer
	surface  string
	// workspace is where the caller says it works, "" if it does not say.
	workspace string
	session   string // the one session that the token is good for, "" for any
}

type peerKey struct{}

// connContext remembers the process at the other end of a unix socket.
func (s *Server) connContext(ctx context.Context, conn net.Conn) context.Context {
	if conn.LocalAddr().Network() != "unix" {
		return ctx
	}
	peer, err := s.opts.Doors.Peer(conn)
	if err != nil {
		s.log.Warn("unix socket peer unknown", "error", err)
		return ctx // without a peer the request is refused like any stranger's
	}
	return context.WithValue(ctx, peerKey{}, &peer)
}

func peerOf(ctx context.Context) *session.Peer {
	peer, _ := ctx.Value(peerKey{}).(*session.Peer)
	return peer
}

// The prefixes tell a credential from a token at a glance, so that neither is
// ever tried on the other's door.
const (
	credentialPrefix = "gha_"
	tokenPrefix      = "ghg_"
	sessionPrefix    = "ghs_" // an agent's token that is good for one session
)

// identify finds out who calls and whether they may use this half.
func (s *Server) identify(req *http.Request, h half) (c *caller, err error) {
	ctx := req.Context()
	c = &caller{peer: peerOf(ctx), surface: "api"}
	secret, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	switch h {
	case openHalf:
		return c, nil
	case agentHalf:
		if strings.HasPrefix(secret, tokenPrefix) {
			c.agent, c.tokenID, err = s.opts.Doors.Agent(ctx, secret)
			return c, err
		}
		if strings.HasPrefix(secret, sessionPrefix) {
			c.agent, c.tokenID, c.session, err = s.opts.Doors.SessionToken(ctx, secret)
			return c, err
		}
		if secret == "" && c.peer != nil {
			// A process on this machine without a token is named after its
			// user; what it may do is the policy's business.
			c.agent = fmt.Sprintf("local-%d", c.peer.Chain[0].UID)
			return c, nil
		}
		return nil, errNoAgent
	case approverHalf:
		if strings.HasPrefix(secret, tokenPrefix) || strings.HasPrefix(secret, sessionPrefix) {
			return nil, errWrongHalf
		}
		if !strings.HasPrefix(secret, credentialPrefix) {
			return nil, errNoCredential
		}
		c.approver, err = s.opts.Doors.Approver(ctx, secret)
		return c, err
	}
	return nil, errNoCredential
}

// workspaceHeader is how a client of the MCP endpoint says where it works.
const workspaceHeader = "Gatehouse-Workspace"

// mcpCaller says who makes a request of the MCP endpoint: an agent, in the
// session it names, in that of its token or process, or in a new one. Bound
// says that what the caller showed is good for that one session only.
func (s *Server) mcpCaller(req *http.Request, id string) (p call.Principal, isHeld, bound bool, err error) {
	if s.foreignPage(req) {
		return p, false, false, errForeign
	}
	c, err := s.identify(req, agentHalf)
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok && err == errNoAgent && !strings.HasPrefix(token, credentialPrefix) {
		// Not one of ours; an issuer that the operator trusts may have made it,
		// for this endpoint and no other part of the API.
		c = &caller{}
		c.agent, c.tokenID, err = s.opts.Doors.Bearer(req.Context(), token)
	}
	if err != nil {
		return p, false, false, public(err)
	}
	c.surface, c.workspace = "mcp", req.Header.Get(workspaceHeader)
	if c.tokenID == "" {
		// A server that an agent's host started speaks for the agent that the
		// host's hook speaks for, so that what is active for one is for both.
		agent, err := s.opts.Doors.Inside(req.Context(), c.peer)
		if err != nil {
			return p, false, false, public(err)
		}
		c.agent = cmp.Or(agent, c.agent)
	}
	p, err = s.principal(req.Context(), c, id, "")
	if c.tokenID == "" && id != NewSession && errors.Is(err, session.ErrForeign) {
		// It began before the hook did, or outlived it. Its own session is another
		// one now, which tells it to begin again.
		p, err = s.principal(req.Context(), c, "", "")
	}
	if err != nil {
		return p, false, false, public(err)
	}
	return p, held(c.peer), c.session != "" || c.tokenID == "", nil
}

// foreignPage recognises requests that a page of another site makes. A page of
// this machine under our own name may speak MCP: it has to show a token, which
// no browser adds by itself.
func (s *Server) foreignPage(req *http.Request) bool {
	if origin := req.Header.Get("Origin"); origin != "" {
		_, host, ok := strings.Cut(origin, "://")
		return !ok || !s.ownHost(host)
	}
	site := req.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// own is the session that a caller means: the one its token is good for, or
// the one it names.
func (c *caller) own(id string) (string, error) {
	if c.session == "" || id == c.session {
		return id, nil
	}
	if id == "" {
		return c.session, nil
	}
	return "", errOtherSession
}

// held says whether a process runs as a user who cannot touch the gate's own
// files. Whoever comes over TCP could be anyone, so it is not.
func held(peer *session.Peer) bool {
	if peer == nil {
		return false
	}
	uid := int(peer.Chain[0].UID)
	return uid != 0 && uid != os.Geteuid()
}
