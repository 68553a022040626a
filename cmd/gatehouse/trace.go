package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func newTrace(a *app) *cobra.Command {
	return a.withCredential(a.withJSON(&cobra.Command{
		Use:   "trace CORRELATION_ID",
		Short: "Put a past dispatch together again",
		Long: `Shows all that is recorded under a correlation id: the decision with its score and reasons, the job with its progress, what
it consumed, and every tool call that was decided inside the run. It reads records, so it works after restarts. An agent
sees its own; with an approver's credential, those of every agent.`,
		Example: `  gatehouse trace 7b2c…
  gatehouse trace 7b2c… --credential-file me.key --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var raw jsontext.Value
			if err := a.tool(cmd, "dispatch_trace", map[string]any{"correlationId": args[0]}, &raw); err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), raw)
			}
			var t dispatch.Trace
			if err := json.Unmarshal(raw, &t); err != nil {
				return err
			}
			return printTrace(out(cmd), &t)
		},
	}))
}

// moment is one line of a trace's time line.
type moment struct {
	at   time.Time
	what []string
}

func printTrace(w io.Writer, t *dispatch.Trace) error {
	fmt.Fprintf(w, "correlation  %s\n", match.Visible(t.CorrelationID))
	var line []moment
	add := func(at time.Time, what ...string) {
		for i := range what {
			what[i] = match.Visible(what[i])
		}
		line = append(line, moment{at, what})
	}
	for _, r := range t.Requests {
		fmt.Fprintf(w, "\nrequest      %s  %s by %s: %s, score %d (%s)\n", r.ID, match.Visible(r.Operation), match.Visible(r.Principal.Agent), r.Status, r.Score, r.Policy)
		if r.DecidedBy != "" {
			fmt.Fprintf(w, "  answered   by %s at %s\n", match.Visible(r.DecidedBy), r.DecidedAt.Local().Format(time.DateTime))
		}
		for _, reason := range r.Reasons {
			fmt.Fprintf(w, "  because    %s\n", match.Visible(reason))
		}
		fmt.Fprintf(w, "  prompt     %s\n  sha256     %s\n", match.Visible(r.PromptPreview), r.PromptSHA256)
		if r.SessionID != "" {
			fmt.Fprintf(w, "  session    %s\n", match.Visible(r.SessionID))
		}
		if u := r.Usage; u != nil {
			fmt.Fprintf(w, "  usage      %d in, %d out, %d from the cache, %d into it; %.6f USD (%s)\n",
				u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheCreationTokens, r.CostUSD, r.CostBasis)
		}
		if b := r.Job; b != nil {
			fmt.Fprintf(w, "  job        %s  %s, exit code %d, node %s\n", b.ID, b.State, b.ExitCode, match.Visible(b.Node))
		}
		if r.Error != "" {
			fmt.Fprintf(w, "  error      %s\n", match.Visible(r.Error))
		}
		add(r.Time, "decision", r.ID, r.Operation, fmt.Sprintf("%s, score %d", r.Status, r.Score))
		for _, e := range r.Progress {
			add(e.Time, "job", r.JobID, e.Phase, e.Text)
		}
	}
	for _, r := range t.Records {
		add(r.Time, r.Kind, r.Call, r.Operation, strings.TrimSpace(r.Level+" "+r.Outcome))
	}
	slices.SortStableFunc(line, func(a, b moment) int { return a.at.Compare(b.at) })
	var rows [][]string
	for _, m := range line {
		rows = append(rows, append([]string{m.at.Local().Format("15:04:05.000")}, m.what...))
	}
	fmt.Fprintln(w)
	return table(w, "time,what,id,operation,result", rows)
}
