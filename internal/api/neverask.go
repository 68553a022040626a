package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

// neverAskRoutes are the part of the approver half about rules that people
// propose while they answer.
func neverAskRoutes() []route {
	return []route{
		jsonRoute("POST", "/v1/approvals/{id}/never-ask-again", approverHalf,
			"Approve, and propose a narrow rule so that the same is never asked again; the rule waits to be accepted", (*Server).neverAsk),
	}
}

func (s *Server) neverAsk(ctx context.Context, c *caller, req *http.Request, in *ApproveRequest) (*admin.Proposal, error) {
	return s.opts.Desk.ApproveForGood(ctx, c.actor(), req.PathValue("id"), admin.Approval{Shown: in.Digest, Offer: in.Offer, Code: in.Code})
}
