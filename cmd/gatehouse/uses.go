package main

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

func newUses(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "uses", Short: "How often agents used tools whose declarations limit that",
		Long: `A declared tool may say how often it runs, after which others, and how long to wait in
between. What counts against that follows the agent and the workspace, into new sessions
and sub-agents, for 12 hours or until you end it.`,
		Example: `  gatehouse uses list --credential-file me.key
  gatehouse uses clear claude-1000 --credential-file me.key`,
	})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List what counts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.UseList{}
			return a.show(cmd, "/v1/uses", got, func() error {
				var rows [][]string
				for _, u := range got.Uses {
					rows = append(rows, []string{u.Agent, u.Tool, u.Workspace, strconv.Itoa(u.Runs), strconv.Itoa(u.Succeeded), strconv.Itoa(u.Running), ago(u.Last, time.Now())})
				}
				return table(out(cmd), "agent,tool,workspace,runs,succeeded,running,last", rows)
			})
		},
	})
	clear := &cobra.Command{
		Use: "clear AGENT", Short: "Have an agent's uses and denials count no more", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/uses/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	cmd.AddCommand(list, clear)
	return cmd
}
