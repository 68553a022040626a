package main

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func newJobs(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use:   "jobs",
		Short: "Runs of agent CLIs: list, watch, read, end",
		Long:  `Shows your own runs of agent CLIs; with an approver's credential, those of every agent.`,
		Example: `  gatehouse jobs list
  gatehouse jobs watch job_3a…
  gatehouse jobs result job_3a… --json
  gatehouse jobs cancel job_3a… --credential-file me.key`,
	})
	cmd.AddCommand(newJobsList(a), newJobsShow(a), newJobsWatch(a), newJobsResult(a), newJobsCancel(a))
	return cmd
}

// jobRow is the part of a job that is printed.
type jobRow struct {
	ID       string    `json:"id"`
	CLI      string    `json:"cli"`
	State    string    `json:"status"`
	ExitCode int       `json:"exitCode"`
	Error    string    `json:"error"`
	Asked    time.Time `json:"queuedAt"`
	Owner    struct {
		Agent string `json:"agent"`
	} `json:"owner"`
	Correlation string `json:"correlationId"`
}

func newJobsList(a *app) *cobra.Command {
	var limit int
	var before string
	cmd := a.withJSON(&cobra.Command{
		Use: "list", Short: "List runs, newest first", Args: cobra.NoArgs, Example: "  gatehouse jobs list --limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.job(cmd, "llm_job_list", map[string]any{"limit": limit, "before": before}, func(raw jsontext.Value) error {
				var got struct {
					Jobs []jobRow `json:"jobs"`
				}
				if err := json.Unmarshal(raw, &got); err != nil {
					return err
				}
				var rows [][]string
				for _, j := range got.Jobs {
					rows = append(rows, []string{j.ID, j.CLI, j.State, j.Owner.Agent, j.Correlation, ago(j.Asked, time.Now())})
				}
				return table(out(cmd), "job,cli,state,agent,correlation,asked", rows)
			})
		},
	})
	cmd.Flags().IntVar(&limit, "limit", 50, "how many")
	cmd.Flags().StringVar(&before, "before", "", "from the job after this one on")
	return cmd
}

// job calls a tool about jobs and prints its answer.
func (a *app) job(cmd *cobra.Command, tool string, args map[string]any, print func(jsontext.Value) error) error {
	var raw jsontext.Value
	if err := a.tool(cmd, tool, args, &raw); err != nil {
		return err
	}
	if a.json {
		return printJSON(out(cmd), raw)
	}
	return print(raw)
}

// printJob prints the job of an answer in one line.
func printJob(cmd *cobra.Command, raw jsontext.Value) error {
	var got struct {
		Job jobRow `json:"job"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	j := &got.Job
	_, err := fmt.Fprintf(out(cmd), "%s %s %s, exit code %d, asked %s by %s, correlation %s %s\n",
		j.ID, j.CLI, j.State, j.ExitCode, stamp(j.Asked), match.Visible(j.Owner.Agent), match.Visible(j.Correlation), match.Visible(j.Error))
	return err
}

func newJobsShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show JOB", Short: "Show how far a run has got", Args: cobra.ExactArgs(1), Example: "  gatehouse jobs show job_3a…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.job(cmd, "llm_job_status", map[string]any{"jobId": args[0]}, func(raw jsontext.Value) error { return printJob(cmd, raw) })
		},
	})
}

func newJobsWatch(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch JOB", Short: "Print a run's progress until it is over", Args: cobra.ExactArgs(1), Example: "  gatehouse jobs watch job_3a…",
		RunE: func(cmd *cobra.Command, args []string) error { return a.watchJob(cmd.Context(), cmd, args[0]) },
	}
}

func newJobsResult(a *app) *cobra.Command {
	var offset, most int64
	cmd := a.withJSON(&cobra.Command{
		Use: "result JOB", Short: "Print a run's answer; its output is in --json, in pages", Args: cobra.ExactArgs(1),
		Example: "  gatehouse jobs result job_3a…\n  gatehouse jobs result job_3a… --json --offset 200000",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.job(cmd, "llm_job_result", map[string]any{"jobId": args[0], "offset": offset, "maxBytes": most}, func(raw jsontext.Value) error {
				var got struct {
					Result struct {
						Text  string `json:"text"`
						Error string `json:"error"`
					} `json:"result"`
				}
				if err := json.Unmarshal(raw, &got); err != nil {
					return err
				}
				if got.Result.Text+got.Result.Error == "" {
					return printJob(cmd, raw)
				}
				_, err := fmt.Fprintln(out(cmd), match.VisibleLines(got.Result.Text+got.Result.Error))
				return err
			})
		},
	})
	cmd.Flags().Int64Var(&offset, "offset", 0, "first byte of the page")
	cmd.Flags().Int64Var(&most, "max", 0, "bytes of the page (default 200000)")
	return cmd
}

func newJobsCancel(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "cancel JOB", Short: "End a run; returns when its processes are gone", Args: cobra.ExactArgs(1), Example: "  gatehouse jobs cancel job_3a…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.job(cmd, "llm_job_cancel", map[string]any{"jobId": args[0]}, func(raw jsontext.Value) error { return printJob(cmd, raw) })
		},
	})
}
