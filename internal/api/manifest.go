package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
)

func (s *Server) manifest(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*manifest.Manifest, error) {
	return s.opts.Desk.Manifest(ctx)
}
