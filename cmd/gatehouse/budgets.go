package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

func newBudgets(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "budgets", Short: "What approved plans may still do without asking",
		Long: `The approval of a composite tool's plan is a budget from which its calls draw. It ends with
the plan, by time, or when you take it back; what was cut from it for sub-agents ends with it.`,
		Example: `  gatehouse budgets list --credential-file me.key
  gatehouse budgets revoke b_3a… --credential-file me.key`,
	})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List the budgets that are still good", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.BudgetList{}
			return a.show(cmd, "/v1/budgets", got, func() error {
				var rows [][]string
				for i := range got.Budgets {
					b := &got.Budgets[i]
					rows = append(rows, []string{b.ID, b.Principal.String(), left(b), b.Parent, b.By, stamp(b.Expires)})
				}
				return table(out(cmd), "id,agent,left,cut from,given by,until", rows)
			})
		},
	})
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "Take a budget back; what the plan still does asks again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/budgets/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	cmd.AddCommand(list, revoke)
	return cmd
}

// left says what a budget still holds.
func left(b *grant.Budget) string {
	parts := make([]string, len(b.Lines))
	for i := range b.Lines {
		l := &b.Lines[i]
		parts[i] = fmt.Sprintf("%s %d of %d", l.Need, l.Left(), l.Total)
	}
	return strings.Join(parts, ", ")
}
