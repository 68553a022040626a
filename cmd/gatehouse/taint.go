package main

import (
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

func newTaint(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "taint", Short: "What agents have taken in that makes what they send delicate",
		Long: `An agent that has read secrets is asked about everything it sends out afterwards, one that
has read what nobody vouches for about what it publishes. That follows the agent and the
workspace, into new sessions and sub-agents, until it ends by itself or you end it.`,
		Example: `  gatehouse taint list --credential-file me.key
  gatehouse taint clear claude-1000 --credential-file me.key`,
	})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List what agents carry", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.TaintList{}
			return a.show(cmd, "/v1/taints", got, func() error {
				var rows [][]string
				for _, t := range got.Taints {
					rows = append(rows, []string{t.Agent, t.Kind, t.Workspace, t.Call, ago(t.Since, time.Now()), stamp(t.Until)})
				}
				return table(out(cmd), "agent,kind,workspace,call,since,until", rows)
			})
		},
	})
	clear := &cobra.Command{
		Use: "clear AGENT", Short: "Say that it does not matter any more", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/taints/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	cmd.AddCommand(list, clear)
	return cmd
}
