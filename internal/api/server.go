package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// Doors says who is at the door.
type Doors interface {
	// Agent returns the agent that a token belongs to, and a name for the
	// token that is no secret.
	Agent(ctx context.Context, token string) (name, tokenID string, err error)
	// Bearer returns the agent that a token of a trusted issuer was made for.
	Bearer(ctx context.Context, token string) (name, tokenID string, err error)
	// SessionToken returns whose token is good for which one session, and
	// MintSessionToken makes such a token for an agent that showed its own.
	SessionToken(ctx context.Context, token string) (agent, tokenID, session string, err error)
	MintSessionToken(ctx context.Context, agent, tokenID, session string) (token string, err error)
	// Approver returns the approver that a credential belongs to.
	Approver(ctx context.Context, credential string) (name string, err error)
	// Peer returns the process at the other end of a unix socket.
	Peer(conn net.Conn) (session.Peer, error)
	// Inside returns the agent whose hook's process tree a process belongs to,
	// "" where it is in none.
	Inside(ctx context.Context, peer *session.Peer) (agent string, err error)
	// Session finds or opens the session of a caller and checks that the
	// caller belongs to it.
	Session(ctx context.Context, ask SessionAsk) (id string, err error)
	// EndSession ends the caller's own session.
	EndSession(ctx context.Context, ask SessionAsk) error
}

// NewSession asks for a session that nobody has used yet.
const NewSession = "new"

// SessionAsk is who asks for which session.
type SessionAsk struct {
	Agent     string
	TokenID   string        // the token the caller showed, "" for a bare peer
	Peer      *session.Peer // the process at a unix socket, nil over TCP
	ID        string        // the session named by the caller, "" for its own
	Workspace string
	// Apart says that the caller's own session is the one in this workspace.
	Apart  bool
	Policy string // of a new session, "" for none
	// Path is the sub-agent in the session whose call the caller is about.
	Path    string
	Surface string
}

// Options is what a server is made of.
type Options struct {
	Gate  *gate.Gate
	Desk  *admin.Desk
	Doors Doors
	// Operations performs the gate's own operations.
	Operations Operations
	// Health reports how the gate is.
	Health func(context.Context) Health
	// Process notes a caller's process, so that it ends when its agent is
	// stopped, and refuses it if it is.
	Process func(ctx context.Context, peer *session.Peer, agent, what string) error
	// Console serves pages, MCP the MCP endpoint (it is told how to find out who
	// calls), Metrics the metrics; nil leaves them out.
	Console http.Handler
	MCP     func(identify func(r *http.Request, session string) (p call.Principal, held, bound bool, err error)) http.Handler
	// MCPMetadata tells clients of the MCP endpoint how to get a token.
	MCPMetadata http.Handler
	Metrics     http.Handler
	// Hook answers the events of agents' hooks; nil refuses them.
	Hook func(context.Context, *HookEvent) HookReply
	// Seen returns the host's ids of the calls that came in by a hook in a
	// session of an agent.
	Seen func(ctx context.Context, agent, session string) (map[string]bool, error)
	// Tools calls a tool of dispatch; nil where there is none. Its errors may be
	// shown.
	Tools func(ctx context.Context, who *ToolCaller, name string, args jsontext.Value) (jsontext.Value, error)
	// Hosts are the names under which the TCP listener may be addressed.
	Hosts []string
	Log   *slog.Logger
}

// Operations performs the gate's own operations: only the gate can, so a call
// of one that is let through is performed before it is answered.
type Operations interface {
	// Check refuses a call that could not be performed.
	Check(c *call.Call) error
	// Do takes a call through the gate and performs it if it is let through.
	// The error is the operation's own.
	Do(ctx context.Context, sub gate.Submission) (ans *gate.Answer, out any, err error)
}

// Server serves the API.
type Server struct {
	opts Options
	log  *slog.Logger
	mux  *http.ServeMux
}

// New makes a server.
func New(opts Options) *Server {
	s := &Server{opts: opts, log: opts.Log, mux: http.NewServeMux()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, r := range routes() {
		s.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
	s.mux.HandleFunc("/v1/", func(w http.ResponseWriter, req *http.Request) {
		s.fail(w, req, &Error{Status: http.StatusNotFound, Text: "there is no " + req.Method + " " + req.URL.Path, Hint: "GET /v1/openapi.json lists what there is"})
	})
	if opts.MCP != nil {
		front := opts.MCP(s.mcpCaller)
		s.mux.Handle("/mcp", front)
		s.mux.Handle("/mcp/", front)
	}
	if opts.MCPMetadata != nil {
		s.mux.Handle("GET /.well-known/oauth-protected-resource", opts.MCPMetadata)
		s.mux.Handle("GET /.well-known/oauth-protected-resource/", opts.MCPMetadata)
	}
	if opts.Metrics != nil {
		s.mux.Handle("GET /metrics", opts.Metrics)
	}
	if opts.Console != nil {
		s.mux.Handle("/", opts.Console)
	}
	return s
}

// ServeHTTP serves a request from either listener. Requests that a browser
// makes for another site are refused before anything looks at them.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if peerOf(req.Context()) == nil && !s.ownHost(req.Host) {
		s.fail(w, req, errForeignHost)
		return
	}
	if strings.HasPrefix(req.URL.Path, "/v1/") && fromBrowser(req) {
		s.fail(w, req, errForeign)
		return
	}
	s.mux.ServeHTTP(w, req)
}

// ownHost refuses names that a foreign page could have pointed at the
// loopback (DNS rebinding).
func (s *Server) ownHost(host string) bool { return slices.Contains(s.opts.Hosts, host) }

// fromBrowser recognises requests made by a page. The API is not for pages:
// the console has its own way in, with its own protection.
func fromBrowser(req *http.Request) bool {
	return req.Header.Get("Origin") != "" || req.Header.Get("Sec-Fetch-Site") != ""
}

func (s *Server) serve(w http.ResponseWriter, req *http.Request, r route) {
	c, err := s.identify(req, r.half)
	if err == nil {
		err = r.serve(s, w, req, c)
	}
	if err != nil {
		s.fail(w, req, err)
	}
}

func (s *Server) fail(w http.ResponseWriter, req *http.Request, err error) {
	e := public(err)
	level := slog.LevelDebug
	if e.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	s.log.Log(req.Context(), level, "request failed", "method", req.Method, "path", req.URL.Path, "status", e.Status, "error", err)
	if err := writeJSON(w, e.Status, e); err != nil {
		s.log.Debug("answer not delivered", "error", err)
	}
}

// Serve answers on the listeners until the context ends, then lets running
// requests finish for a moment.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext:       s.connContext,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	var err error
	running := len(listeners)
	select {
	case <-ctx.Done():
	case err = <-failed:
		running--
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if server.Shutdown(stop) != nil {
		server.Close()
	}
	for range running {
		<-failed
	}
	if err == http.ErrServerClosed {
		return nil
	}
	return err
}
