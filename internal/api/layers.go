package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

// layerRoutes are the part of the approver half about what confined runs left.
func layerRoutes() []route {
	return []route{
		jsonRoute("POST", "/v1/layers/{hash}/accept", approverHalf,
			"Put on record that what a confined run left, by its hash, is about to be taken over", recordLayer("accept")),
		jsonRoute("POST", "/v1/layers/{hash}/accepted", approverHalf, "Put on record what of it was taken over", recordLayer("accepted")),
		jsonRoute("POST", "/v1/layers/{hash}/discard", approverHalf, "Put on record that it is about to be deleted", recordLayer("discard")),
	}
}

func recordLayer(act string) func(*Server, context.Context, *caller, *http.Request, *admin.Layer) (*none, error) {
	return func(s *Server, ctx context.Context, c *caller, req *http.Request, in *admin.Layer) (*none, error) {
		return nil, s.opts.Desk.RecordLayer(ctx, c.actor(), act, req.PathValue("hash"), *in)
	}
}
