package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// plan shows how the plan of a composite tool would be decided.
func (d *decider) plan(cmd *cobra.Command, file string) error {
	in, err := readPlan(cmd.InOrStdin(), file)
	if err != nil {
		return usageError{err}
	}
	got, err := d.decidePlan(cmd.Context(), in)
	if err != nil {
		return err
	}
	if d.app.json {
		err = printJSON(out(cmd), got)
	} else {
		err = printPlan(out(cmd), in.Name, got)
	}
	if err != nil {
		return err
	}
	return levelCode(got.Level)
}

func readPlan(stdin io.Reader, file string) (*api.PlanRequest, error) {
	text, err := os.ReadFile(file)
	if file == "-" {
		text, err = io.ReadAll(stdin)
	}
	if err != nil {
		return nil, err
	}
	in := &api.PlanRequest{}
	if err := json.Unmarshal(text, in, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s is no plan: %w", file, err)
	}
	if in.Dir != "" {
		if in.Dir, err = filepath.Abs(in.Dir); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (d *decider) decidePlan(ctx context.Context, in *api.PlanRequest) (*api.PlanDecision, error) {
	if !d.dry && d.policyFile == "" {
		c, err := d.app.asAgent()
		if err != nil {
			return nil, err
		}
		got := &api.PlanDecision{}
		err = c.Do(ctx, "POST", "/v1/plans/decide", in, got)
		if !errors.Is(err, client.ErrNoDaemon) {
			return got, err
		}
		fmt.Fprintln(os.Stderr, "No gate is running: a dry run on the policy files.")
	}
	if err := d.compile(); err != nil {
		return nil, err
	}
	c, plan, err := api.BuildPlan(in, "check", call.Principal{Agent: "check", Session: "dry-run"})
	if err != nil {
		return nil, err
	}
	return dryPlan(ctx, c, plan, d.snap, &observe.Machine{Home: d.home})
}

// dryPlan decides a plan on a policy alone.
func dryPlan(ctx context.Context, c *call.Call, plan *gate.Plan, snap *policy.Snapshot, machine *observe.Machine) (*api.PlanDecision, error) {
	if err := plan.Check(); err != nil {
		return nil, err
	}
	if err := c.Normalize(); err != nil {
		return nil, err
	}
	var steps []gate.Step
	for _, s := range plan.Calls {
		f := machine.Facts(ctx, s, snap)
		steps = append(steps, gate.Step{Call: s, Facts: f, Decision: snap.Decide(&policy.Input{Call: s, Facts: f, Digest: s.Digest()}, nil)})
	}
	f := plan.Union(steps)
	return api.NewPlanDecision(snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil), f, steps), nil
}

// printPlan shows the decision on a plan for people.
func printPlan(w io.Writer, name string, got *api.PlanDecision) error {
	var rows [][]string
	for i, s := range got.Steps {
		rows = append(rows, []string{fmt.Sprint(i + 1), s.Operation, s.Level.String(), s.Words})
	}
	if err := table(w, "step,operation,by itself,does", rows); err != nil {
		return err
	}
	for _, n := range got.Needs {
		fmt.Fprintf(w, "needs %s\n", match.Visible(n.String()))
	}
	fmt.Fprintln(w)
	return printDecision(w, "the plan "+name, &got.DecideResponse)
}
