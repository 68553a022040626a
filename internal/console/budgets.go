package console

import "net/http"

func (c *Console) budgetsPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	all, err := c.desk.Budgets(r.Context())
	if err != nil {
		return err
	}
	return c.render(w, r, who, "budgets", frame{Title: "Budgets", Nav: "budgets", Page: all})
}

func (c *Console) revokeBudget(r *http.Request, who visitor) (done, error) {
	d := done{"/budgets", "Budget revoked. What the plan still does asks again.", ""}
	return d, c.desk.RevokeBudget(r.Context(), who.actor(), r.PathValue("id"))
}
