package api

import (
	"context"
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
		if secret == "" && c.peer != nil {
			// A process on this machine without a token is named after its
			// user; what it may do is the policy's business.
			c.agent = fmt.Sprintf("local-%d", c.peer.Chain[0].UID)
			return c, nil
		}
		return nil, errNoAgent
	case approverHalf:
		if strings.HasPrefix(secret, tokenPrefix) {
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

// mcpCaller says who makes a request of the MCP endpoint: an agent, in the
// session of its token or process.
func (s *Server) mcpCaller(req *http.Request) (p call.Principal, isHeld bool, err error) {
	if fromBrowser(req) {
		return p, false, errForeign
	}
	c, err := s.identify(req, agentHalf)
	if err != nil {
		return p, false, public(err)
	}
	c.surface = "mcp"
	if p, err = s.principal(req.Context(), c, "", ""); err != nil {
		return p, false, public(err)
	}
	return p, held(c.peer), nil
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
