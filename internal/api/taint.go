package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// TaintList lists what agents have taken in.
type TaintList struct {
	Taints []session.Tainted `json:"taints"`
}

func (s *Server) taints(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*TaintList, error) {
	list, err := s.opts.Desk.Taints(ctx)
	return &TaintList{Taints: list}, err
}

func (s *Server) clearTaints(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.ClearTaints(ctx, c.actor(), req.PathValue("agent"))
}

func (s *Server) clearGrants(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.ClearGrants(ctx, c.actor(), req.PathValue("id"))
}
