package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
)

// restoreRoutes are the part of the approver half about restore points.
func restoreRoutes() []route {
	return []route{
		jsonRoute("GET", "/v1/restore", approverHalf, "List restore points of this node, newest first", (*Server).restorePoints),
		jsonRoute("GET", "/v1/restore/{id}", approverHalf, "One restore point, with what putting it back would change now", (*Server).restorePoint),
		jsonRoute("POST", "/v1/restore/{id}/apply", approverHalf, "Put a restore point back; what is there now is kept first", (*Server).applyRestore),
	}
}

// RestoreList lists restore points without their entries' state.
type RestoreList struct {
	Points []admin.RestorePoint `json:"points"`
	// Problems are points that cannot be read.
	Problems []string `json:"problems,omitzero"`
}

// RestoreRequest puts a point back.
type RestoreRequest struct {
	// Digest is that of the plan that was looked at.
	Digest string `json:"digest"`
	// Paths are what to put back; none is everything.
	Paths []string `json:"paths,omitzero"`
	// Newer says to overwrite what was changed after the batch as well.
	Newer bool `json:"newer,omitzero"`
}

func (s *Server) restorePoints(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*RestoreList, error) {
	list, problems, err := s.opts.Desk.RestorePoints(ctx)
	return &RestoreList{Points: list, Problems: problems}, err
}

func (s *Server) restorePoint(ctx context.Context, _ *caller, req *http.Request, _ *none) (*admin.RestorePoint, error) {
	return s.opts.Desk.RestorePoint(ctx, req.PathValue("id"))
}

func (s *Server) applyRestore(ctx context.Context, c *caller, req *http.Request, in *RestoreRequest) (*admin.Restored, error) {
	return s.opts.Desk.ApplyRestore(ctx, c.actor(), req.PathValue("id"), restore.Apply{Digest: in.Digest, Paths: in.Paths, Newer: in.Newer})
}
