package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// budgetRoutes are the part of the approver half about the budgets of plans.
func budgetRoutes() []route {
	return []route{
		jsonRoute("GET", "/v1/budgets", approverHalf, "List the budgets of plans that are still good", (*Server).budgets),
		jsonRoute("DELETE", "/v1/budgets/{id}", approverHalf, "Revoke a budget, with all that were cut from it", (*Server).revokeBudget),
	}
}

// BudgetList lists budgets.
type BudgetList struct {
	Budgets []grant.Budget `json:"budgets"`
}

func (s *Server) budgets(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*BudgetList, error) {
	list, err := s.opts.Desk.Budgets(ctx)
	return &BudgetList{Budgets: list}, err
}

func (s *Server) revokeBudget(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RevokeBudget(ctx, c.actor(), req.PathValue("id"))
}
