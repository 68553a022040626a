package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

func newDanger(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "danger", Short: "The danger zone: agents that are blocked, with everything they started",
		Example: `  gatehouse danger list --credential-file me.key
  gatehouse danger block coder --reason "deletes backups" --credential-file me.key
  gatehouse danger show coder --credential-file me.key      # shows the code that releases it
  gatehouse danger release coder --challenge K7M2PX --code 123456 --credential-file me.key`,
	})
	cmd.AddCommand(newDangerList(a), newDangerShow(a), newDangerBlock(a), newDangerRelease(a))
	return cmd
}

func newDangerList(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "list", Short: "List blocked agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &admin.Danger{}
			return a.show(cmd, "/v1/danger", got, func() error {
				if len(got.Blocks) == 0 {
					_, err := fmt.Fprintln(out(cmd), "No agent is blocked.")
					return err
				}
				var rows [][]string
				for _, b := range got.Blocks {
					rows = append(rows, []string{b.ID, b.Agent, b.Workspace, b.Reason, b.By, ago(b.At, time.Now())})
				}
				return table(out(cmd), "block,agent,workspace,reason,by,since", rows)
			})
		},
	})
}

func newDangerShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show AGENT|BLOCK", Short: "Show a block, and the code that releases it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &admin.BlockView{}
			if err := a.do(cmd, "POST", "/v1/danger/"+url.PathEscape(args[0])+"/challenge", nil, got); err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), got)
			}
			b, w := got.Block, out(cmd)
			for _, line := range [][2]string{{"block", b.ID}, {"agent", b.Agent}, {"workspace", b.Workspace}, {"reason", b.Reason}, {"by", b.By}, {"since", stamp(b.At)}} {
				if line[1] != "" {
					fmt.Fprintf(w, "%-12s %s\n", line[0], match.Visible(line[1]))
				}
			}
			printChallenge(w, &got.Challenge)
			_, err := fmt.Fprintf(w, "\n%s\n", paint(w, yellow, "gatehouse danger release "+b.ID+" --challenge "+got.Challenge.Code+" --code YOUR-ONE-TIME-CODE"))
			return err
		},
	})
}

func newDangerBlock(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "block AGENT", Short: "Block an agent and end what runs for it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &session.Block{}
			if err := a.do(cmd, "POST", "/v1/danger", &api.BlockRequest{Agent: args[0], Reason: reason}, got); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out(cmd), "%s %s (%s)\n", paint(out(cmd), red, "Blocked"), got.Agent, got.ID)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "blocked by hand", "why, for the log and the agent")
	return cmd
}

func newDangerRelease(a *app) *cobra.Command {
	var in api.ReleaseRequest
	cmd := &cobra.Command{
		Use: "release AGENT|BLOCK", Short: "Release an agent by the code that is bound to its block", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.do(cmd, "POST", "/v1/danger/"+url.PathEscape(args[0])+"/release", &in, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out(cmd), "%s %s\n", paint(out(cmd), green, "Released"), args[0])
			return err
		},
	}
	releaseFlags(cmd, &in)
	return cmd
}

func releaseFlags(cmd *cobra.Command, in *api.ReleaseRequest) {
	cmd.Flags().StringVar(&in.Challenge, "challenge", "", "the six characters that are shown with it")
	cmd.Flags().StringVar(&in.Code, "code", "", "your one-time code: a release is pinned")
}

func newExecutions(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "executions", Short: "Agents that work on their own: their steps and pauses",
		Example: `  gatehouse executions list --credential-file me.key
  gatehouse executions abort x_2f… --credential-file me.key`,
	})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List executions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.ExecutionList{}
			return a.show(cmd, "/v1/executions", got, func() error {
				var rows [][]string
				for _, x := range got.Executions {
					rows = append(rows, []string{x.ID, string(x.State), x.Principal.Agent, x.Element, fmt.Sprint(x.Steps), ago(x.Started, time.Now()), fmt.Sprint(x.Why)})
				}
				return table(out(cmd), "execution,state,agent,element,steps,started,why", rows)
			})
		},
	})
	abort := &cobra.Command{
		Use: "abort EXECUTION", Short: "End an execution", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &api.ExecutionList{}
			if err := a.do(cmd, "GET", "/v1/executions", nil, got); err != nil {
				return err
			}
			for _, x := range got.Executions {
				if x.ID == args[0] {
					return a.do(cmd, "POST", "/v1/executions/"+url.PathEscape(x.ID)+"/abort", &api.AbortRequest{Agent: x.Principal.Agent}, nil)
				}
			}
			return errors.New("there is no such execution")
		},
	}
	cmd.AddCommand(list, abort)
	return cmd
}
