package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// UpstreamRequest enters an MCP server.
type UpstreamRequest struct {
	Name string        `json:"name"`
	Spec upstream.Spec `json:"spec"`
}

// UpstreamList lists the MCP servers behind the gate.
type UpstreamList struct {
	Upstreams []admin.Upstream `json:"upstreams"`
}

// PinList lists what was pinned of an upstream.
type PinList struct {
	Pins []upstream.Pin `json:"pins"`
}

// AcceptUpstreamRequest accepts what was shown.
type AcceptUpstreamRequest struct {
	// Tool is the one tool that is accepted, "" for all that waits.
	Tool string `json:"tool,omitzero"`
	// Digest is of the differences that were shown.
	Digest string `json:"digest"`
}

// UpstreamCredentialRequest gives or takes an agent's credential.
type UpstreamCredentialRequest struct {
	// Agent is whose it is, "" for all agents that have none of their own.
	Agent  string `json:"agent,omitzero"`
	Secret string `json:"secret,omitzero"`
}

// upstreamRoutes are the routes about MCP servers behind the gate. All are the
// approver's: whoever names a command that the gate starts can start anything.
func upstreamRoutes() []route {
	return []route{
		jsonRoute("GET", "/v1/upstreams", approverHalf, "List the MCP servers behind the gate", (*Server).upstreams),
		jsonRoute("POST", "/v1/upstreams", approverHalf, "Add an MCP server", (*Server).addUpstream),
		jsonRoute("DELETE", "/v1/upstreams/{name}", approverHalf, "Remove an MCP server, its pins and its credentials", (*Server).removeUpstream),
		jsonRoute("GET", "/v1/upstreams/{name}/pins", approverHalf, "What was pinned of an MCP server, and what waits", (*Server).upstreamPins),
		jsonRoute("GET", "/v1/upstream-differences", approverHalf, "What waits to be accepted; ?upstream=NAME for one server", (*Server).differences),
		jsonRoute("POST", "/v1/upstreams/accept", approverHalf, "Accept what waits; ?upstream=NAME", (*Server).acceptUpstream),
		jsonRoute("POST", "/v1/upstreams/{name}/credential", approverHalf, "Keep a credential for an MCP server", (*Server).setUpstreamCredential),
		jsonRoute("DELETE", "/v1/upstreams/{name}/credential", approverHalf, "Forget a credential for an MCP server; ?agent=NAME", (*Server).clearUpstreamCredential),
	}
}

func (s *Server) upstreams(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*UpstreamList, error) {
	list, err := s.opts.Desk.Upstreams(ctx)
	return &UpstreamList{Upstreams: list}, err
}

func (s *Server) addUpstream(ctx context.Context, c *caller, _ *http.Request, in *UpstreamRequest) (*none, error) {
	return nil, s.opts.Desk.AddUpstream(ctx, c.actor(), in.Name, in.Spec)
}

func (s *Server) removeUpstream(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RemoveUpstream(ctx, c.actor(), req.PathValue("name"))
}

func (s *Server) upstreamPins(ctx context.Context, _ *caller, req *http.Request, _ *none) (*PinList, error) {
	list, err := s.opts.Desk.UpstreamPins(ctx, req.PathValue("name"))
	return &PinList{Pins: list}, err
}

func (s *Server) differences(ctx context.Context, _ *caller, req *http.Request, _ *none) (*admin.Differences, error) {
	d, err := s.opts.Desk.Differences(ctx, req.URL.Query().Get("upstream"))
	return &d, err
}

func (s *Server) acceptUpstream(ctx context.Context, c *caller, req *http.Request, in *AcceptUpstreamRequest) (*none, error) {
	return nil, s.opts.Desk.AcceptUpstream(ctx, c.actor(), req.URL.Query().Get("upstream"), in.Tool, in.Digest)
}

func (s *Server) setUpstreamCredential(ctx context.Context, c *caller, req *http.Request, in *UpstreamCredentialRequest) (*none, error) {
	return nil, s.opts.Desk.SetUpstreamCredential(ctx, c.actor(), req.PathValue("name"), in.Agent, in.Secret)
}

func (s *Server) clearUpstreamCredential(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.ClearUpstreamCredential(ctx, c.actor(), req.PathValue("name"), req.URL.Query().Get("agent"))
}
