package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// elementRoutes are the approver's way to the elements in force.
func elementRoutes() []route {
	return []route{
		jsonRoute("GET", "/v1/elements", approverHalf, "Which elements are in force for whom, and which changes of their files wait", (*Server).elements),
		jsonRoute("POST", "/v1/elements/accept", approverHalf, "Take a change of an element's file that loosens", (*Server).acceptElement),
		jsonRoute("POST", "/v1/elements/release", approverHalf, "Take an element out of force for an agent", (*Server).releaseElement),
	}
}

// ElementRequest names an element that is in force.
type ElementRequest struct {
	Agent string `json:"agent"`
	// Workspace is where it is in force; left out: in sessions without one.
	Workspace string `json:"workspace,omitzero"`
	// Element is its id, type/name.
	Element string `json:"element"`
	// Digest is of the change that was shown, for accepting it.
	Digest call.Digest `json:"digest,omitzero"`
	// Code is a one-time code, where the approver has a second factor.
	Code string `json:"code,omitzero"`
}

func (s *Server) elements(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*admin.Elements, error) {
	e, err := s.opts.Desk.Elements(ctx)
	return &e, err
}

func (s *Server) acceptElement(ctx context.Context, c *caller, _ *http.Request, in *ElementRequest) (*none, error) {
	staged := activation.Staged{Agent: in.Agent, Workspace: in.Workspace, Element: in.Element, Digest: in.Digest}
	return nil, s.opts.Desk.AcceptElement(ctx, c.actor(), staged, in.Code)
}

func (s *Server) releaseElement(ctx context.Context, c *caller, _ *http.Request, in *ElementRequest) (*none, error) {
	return nil, s.opts.Desk.ReleaseElement(ctx, c.actor(), in.Agent, in.Workspace, in.Element, in.Code)
}
