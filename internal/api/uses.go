package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// UseList lists the uses of declared tools that count against constraints.
type UseList struct {
	Uses []session.Used `json:"uses"`
}

func (s *Server) uses(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*UseList, error) {
	list, err := s.opts.Desk.Uses(ctx)
	return &UseList{Uses: list}, err
}

func (s *Server) clearUses(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.ClearUses(ctx, c.actor(), req.PathValue("agent"))
}
