package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// requestAnswer is the part of an answer that is printed.
type requestAnswer struct {
	Success  bool   `json:"success"`
	Status   string `json:"status"`
	Response string `json:"response"`
	Error    string `json:"error"`
	Message  string `json:"message"`
	Approval struct {
		ID      string   `json:"id"`
		Status  string   `json:"status"`
		Score   int      `json:"score"`
		Policy  string   `json:"policy"`
		Reasons []string `json:"reasons"`
	} `json:"approval"`
	Job struct {
		ID string `json:"id"`
	} `json:"job"`
	SessionID     string `json:"sessionId"`
	CorrelationID string `json:"correlationId"`
	Deduplicated  bool   `json:"deduplicated"`
	AgeMS         int64  `json:"ageMs"`
	Warnings      []any  `json:"warnings"`
}

func newAsk(a *app) *cobra.Command {
	t := &call.Task{}
	var async bool
	cmd := a.withJSON(&cobra.Command{
		Use:   "ask CLI [PROMPT]",
		Short: "Hand a request to an agent CLI, through the gate",
		Long: `Hands a request to claude, codex, gemini, grok or mistral. The request is scored and decided
first; one that is denied starts nothing. Every tool call inside the run is decided as well.
Without PROMPT, or with "-", the prompt is read from standard input.

Exit codes: 0 done, 1 the CLI failed, 10 a person is asked, 20 denied, 2 the command line is wrong,
3 something else failed.`,
		Example: `  gatehouse ask claude "Refactor the auth module" --policy strict
  gatehouse ask codex "Add tests for the parser" --full-auto
  git diff | gatehouse ask claude - --json
  gatehouse ask gemini "Explain this repository" --async        # then: gatehouse jobs watch JOB
  gatehouse ask claude "And now the docs" --session 0b0c5a9e-6c1f-4a63-9d5c-0a2f3c9b7e11`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !slices.Contains(call.CLIs(), args[0]) {
				return usageError{fmt.Errorf("there is no CLI %q: use one of %s", args[0], strings.Join(call.CLIs(), ", "))}
			}
			if t.Prompt, err = promptOf(cmd, args[1:]); err != nil {
				return err
			}
			name := call.RequestOperation(args[0])
			if async {
				name += "_async"
			}
			return a.request(cmd, name, t)
		},
	})
	f := cmd.Flags()
	f.BoolVar(&async, "async", false, "answer with a job at once")
	f.StringVar(&t.WorkingDir, "dir", "", "directory to work in (default the current one)")
	f.StringVar(&t.Model, "model", "", "model (default the CLI's own)")
	f.StringVar(&t.ApprovalPolicy, "policy", "", "strict, balanced or permissive; only ever stricter than the operator's")
	f.StringVar(&t.ApprovalStrategy, "strategy", "mcp_managed", "mcp_managed or legacy; changes the CLI's flags, not the decision")
	f.StringSliceVar(&t.MCPServers, "mcp-server", nil, "MCP servers that the CLI gets (default sqry)")
	f.BoolVar(&t.StrictMCPConfig, "strict-mcp", false, "refuse if a server is not defined")
	f.StringSliceVar(&t.AllowedTools, "allowed-tool", nil, "tools that the CLI may use")
	f.StringSliceVar(&t.DisallowedTools, "disallowed-tool", nil, "tools that the CLI may not use")
	f.StringVar(&t.PermissionMode, "permission-mode", "", "the CLI's own mode, such as plan")
	f.StringVar(&t.ApprovalMode, "approval-mode", "", "Gemini's own mode: default, auto_edit, yolo, plan")
	f.BoolVar(&t.FullAuto, "full-auto", false, "Codex: write in the workspace")
	f.StringVar(&t.SandboxMode, "sandbox-mode", "", "Codex: read-only, workspace-write or danger-full-access")
	f.StringVar(&t.SessionID, "session", "", "session to begin or go on with")
	f.BoolVar(&t.ResumeLatest, "resume-latest", false, "go on with the active or last session")
	f.BoolVar(&t.ForkSession, "fork", false, "go on in a copy of the session")
	f.StringVar(&t.CorrelationID, "correlation-id", "", "name that joins request, job, tool calls and records")
	f.IntVar(&t.IdleTimeoutMs, "idle-timeout-ms", 0, "end a CLI that prints nothing for so long (30000 to 3600000)")
	f.BoolVar(&t.ForceRefresh, "force-refresh", false, "run anew even if an equal request was answered")
	f.BoolVar(&t.Sandbox, "sandbox", false, "run the CLI confined to its directory and its models")
	f.BoolVar(&t.Worktree, "worktree", false, "work in a private clone of the repository")
	return cmd
}

// promptOf is the prompt from the command line or standard input.
func promptOf(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 && args[0] != "-" {
		return args[0], nil
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), call.MaxPrompt+1))
	return string(text), err
}

// tool calls a tool of dispatch.
func (a *app) tool(cmd *cobra.Command, name string, args, result any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	path, in := "/v1/tools/"+name, &api.ToolRequest{Args: jsontext.Value(raw), Dir: dir}
	c, err := a.asAgent()
	if a.credential != "" {
		path, in.Dir = "/v1/operator/"+name, ""
		c, err = a.client()
	}
	if err != nil {
		return err
	}
	got := &api.ToolResponse{}
	if err := c.Do(cmd.Context(), "POST", path, in, got); err != nil {
		return err
	}
	return json.Unmarshal(got.Answer, result)
}

// request calls a request's tool and prints the answer.
func (a *app) request(cmd *cobra.Command, name string, args any) error {
	var raw jsontext.Value
	if err := a.tool(cmd, name, args, &raw); err != nil {
		return err
	}
	var got requestAnswer
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if a.json {
		if err := printJSON(out(cmd), raw); err != nil {
			return err
		}
	} else if err := printAnswer(cmd, &got); err != nil {
		return err
	}
	switch {
	case got.Success:
		return nil
	case got.Status == "denied":
		return codeError(exitDeny)
	case got.Status == "pending":
		return codeError(exitAsk)
	}
	return codeError(1)
}

func printAnswer(cmd *cobra.Command, a *requestAnswer) error {
	w := bufio.NewWriter(cmd.ErrOrStderr())
	fmt.Fprintf(w, "%s: score %d under %s (%s, correlation %s)\n", a.Approval.Status, a.Approval.Score, a.Approval.Policy, a.Approval.ID, match.Visible(a.CorrelationID))
	for _, r := range a.Approval.Reasons {
		fmt.Fprintln(w, "  "+match.Visible(r))
	}
	for _, r := range a.Warnings {
		fmt.Fprintln(w, "note: "+match.Visible(fmt.Sprint(r)))
	}
	if a.Deduplicated {
		fmt.Fprintf(w, "answered by an equal request's job %s, %d s old; --force-refresh runs anew\n", a.Job.ID, a.AgeMS/1000)
	}
	if a.SessionID != "" {
		fmt.Fprintln(w, "session "+match.Visible(a.SessionID))
	}
	if a.Status == "deferred" {
		fmt.Fprintf(w, "job %s runs on: gatehouse jobs watch %s\n", a.Job.ID, a.Job.ID)
	}
	if a.Error != "" {
		fmt.Fprintln(w, match.VisibleLines(a.Error))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if a.Response == "" {
		return nil
	}
	_, err := fmt.Fprintln(out(cmd), match.VisibleLines(a.Response))
	return err
}

func newReview(a *app) *cobra.Command {
	in := &struct {
		CLI            string `json:"cli,omitzero"`
		Fixer          string `json:"fixer,omitzero"`
		Prompt         string `json:"prompt"`
		WorkingDir     string `json:"workingDir"`
		ApprovalPolicy string `json:"approvalPolicy,omitzero"`
		Rounds         int    `json:"rounds,omitzero"`
		CorrelationID  string `json:"correlationId,omitzero"`
	}{}
	cmd := a.withJSON(&cobra.Command{
		Use:   "review [PROMPT]",
		Short: "Review, fix and review again until it is approved, three rounds at most",
		Long: `Has a CLI review the working directory. The prompt ends with the required line; only an answer
that ends in the bare word APPROVED passes, a conditional one does not. Otherwise the findings are
handed to a CLI that fixes them, and the review is repeated. After three rounds a person is asked.
Every request passes the gate: gate and reviewer must both agree.`,
		Example: `  gatehouse review "Review the last commit for security" --policy strict
  gatehouse review --cli codex --fixer claude "Audit the auth module"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Prompt = "Review the uncommitted and the last committed changes of this repository."
			if len(args) > 0 {
				if in.Prompt, err = promptOf(cmd, args); err != nil {
					return err
				}
			}
			if in.WorkingDir == "" {
				if in.WorkingDir, err = os.Getwd(); err != nil {
					return err
				}
			}
			return a.review(cmd, in)
		},
	})
	f := cmd.Flags()
	f.StringVar(&in.CLI, "cli", "", "who reviews (default claude)")
	f.StringVar(&in.Fixer, "fixer", "", "who fixes (default who reviews)")
	f.StringVar(&in.WorkingDir, "dir", "", "directory (default the current one)")
	f.StringVar(&in.ApprovalPolicy, "policy", "", "strict, balanced or permissive")
	f.IntVar(&in.Rounds, "rounds", 0, "how many rounds, 3 at most")
	f.StringVar(&in.CorrelationID, "correlation-id", "", "name that joins all of it")
	return cmd
}

func (a *app) review(cmd *cobra.Command, in any) error {
	var raw jsontext.Value
	if err := a.tool(cmd, "review", in, &raw); err != nil {
		return err
	}
	var got struct {
		Approved bool   `json:"approved"`
		Status   string `json:"status"`
		Message  string `json:"message"`
		Request  string `json:"request"`
		Rounds   []struct {
			Reading struct {
				Verdict  string `json:"verdict"`
				Findings string `json:"findings"`
			} `json:"reading"`
		} `json:"rounds"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if a.json {
		if err := printJSON(out(cmd), raw); err != nil {
			return err
		}
	} else {
		for i, r := range got.Rounds {
			fmt.Fprintf(out(cmd), "round %d: %s\n%s\n", i+1, r.Reading.Verdict, match.VisibleLines(r.Reading.Findings))
		}
		fmt.Fprintln(out(cmd), match.VisibleLines(got.Message))
	}
	switch {
	case got.Approved:
		return nil
	case got.Status == "escalated" || got.Status == "pending":
		return codeError(exitAsk)
	case got.Status == "denied":
		return codeError(exitDeny)
	}
	return codeError(1)
}

// watchJob prints a job's progress until it is over.
func (a *app) watchJob(ctx context.Context, cmd *cobra.Command, id string) error {
	after := int64(0)
	for {
		var got struct {
			Job struct {
				State string `json:"status"`
				Error string `json:"error"`
			} `json:"job"`
			Progress []struct {
				Seq     int64  `json:"seq"`
				Phase   string `json:"phase"`
				Message string `json:"message"`
			} `json:"progress"`
		}
		if err := a.tool(cmd, "llm_job_watch", map[string]any{"jobId": id, "afterProgressSeq": after, "waitMs": 30_000}, &got); err != nil {
			return err
		}
		for _, e := range got.Progress {
			after = max(after, e.Seq)
			fmt.Fprintf(out(cmd), "%s: %s\n", e.Phase, match.Visible(e.Message))
		}
		if got.Job.State != "queued" && got.Job.State != "running" {
			fmt.Fprintln(out(cmd), got.Job.State+" "+match.Visible(got.Job.Error))
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
