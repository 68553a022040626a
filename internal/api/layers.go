package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

// layerRoutes are the part of the approver half about what confined runs left.
func layerRoutes() []route {
	about := map[string]string{
		"accept":   "Put on record that what a confined run left, by its hash, is about to be taken over",
		"accepted": "Put on record what of it was taken over",
		"discard":  "Put on record that it is about to be deleted",
	}
	var list []route
	for _, act := range admin.LayerActs {
		list = append(list, jsonRoute("POST", "/v1/layers/{hash}/"+act, approverHalf, about[act],
			func(s *Server, ctx context.Context, c *caller, req *http.Request, in *admin.Layer) (*none, error) {
				return nil, s.opts.Desk.RecordLayer(ctx, c.actor(), act, req.PathValue("hash"), *in)
			}))
	}
	return list
}
