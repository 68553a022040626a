package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// finding is one thing that doctor looked at.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn or bad
	Text   string `json:"text"`
	Repair string `json:"repair,omitzero"`
	// Holds says of an agent whether it is held, advisory or not held.
	Holds string `json:"holds,omitzero"`
	// CLI is all that is known about a CLI that requests can be handed to, and
	// NextActions what to do about it.
	CLI         *dispatch.Version `json:"cli,omitzero"`
	NextActions []string          `json:"next_actions,omitzero"`
}

func newDoctor(a *app) *cobra.Command {
	var readOnly bool
	cmd := a.withJSON(&cobra.Command{
		Use: "doctor", Short: "Look at this installation and say what is wrong and how to mend it", Args: cobra.NoArgs,
		Long: `Looks at the gate, its files, every agent that is installed here and every CLI that
requests can be handed to, and says what is wrong and how to mend it. An agent's CLI is run through one call that the gate denies,
with a scripted model on this machine in place of its own: what it does counts, not what
its settings say. Run it where you work, because a directory can have settings of its own.`,
		Example: `  gatehouse doctor
  gatehouse doctor --json
  gatehouse doctor --no-canary     read settings alone, run no agent`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := a.examine(cmd, !readOnly)
			if err != nil {
				return err
			}
			bad := false
			for _, f := range findings {
				bad = bad || f.State == "bad"
			}
			if a.json {
				err = printJSON(out(cmd), findings)
			} else {
				printFindings(out(cmd), findings)
			}
			if err == nil && bad {
				return codeError(1)
			}
			return err
		},
	})
	cmd.Flags().BoolVar(&readOnly, "no-canary", false, "read the agents' settings and run no agent")
	return cmd
}

func printFindings(w io.Writer, findings []finding) {
	colours := map[string]string{"ok": green, "warn": yellow, "bad": red}
	for _, f := range findings {
		fmt.Fprintf(w, "%s  %-10s %s\n", paint(w, colours[f.State], fmt.Sprintf("%-4s", f.State)), f.Name, f.Text)
		if f.Repair != "" {
			fmt.Fprintf(w, "      %-10s → %s\n", "", f.Repair)
		}
	}
}

// examine looks at everything. What a client may not see it does not judge.
func (a *app) examine(cmd *cobra.Command, prove bool) ([]finding, error) {
	p, err := place.Reach(a.home)
	if err != nil {
		return nil, err
	}
	findings := []finding{dataDir(p), a.policyFiles()}
	h := &api.Health{}
	err = client.Unix(p.Socket(), "").Do(cmd.Context(), "GET", "/v1/health", nil, h)
	agents, agentsErr := a.examineAgents(cmd, h.Posture, prove)
	if agentsErr != nil {
		return nil, agentsErr
	}
	for _, s := range agents {
		if s.Holds != "" {
			findings = append(findings, s.finding())
		}
	}
	switch {
	case errors.Is(err, client.ErrNoDaemon):
		return append(findings, finding{Name: "daemon", State: "bad", Text: "no gate is running here", Repair: "gatehouse up"}), nil
	case err != nil:
		return append(findings, finding{Name: "daemon", State: "bad", Text: err.Error(), Repair: "look at its log"}), nil
	}
	findings = append(findings, finding{Name: "daemon", State: "ok", Text: "version " + h.Version + " answers on " + p.Socket()})
	if h.Posture == "held" {
		findings = append(findings, finding{Name: "posture", State: "ok", Text: "held: agents cannot reach the gate's files"})
	} else {
		findings = append(findings, finding{
			Name: "posture", State: "warn", Text: "advisory: the gate runs as your own user, so it stops mistakes, not a hostile agent",
			Repair: "gatehouse install --system, as the administrator; docs/threat-model.md says what that changes",
		})
	}
	findings = append(findings, a.examineDispatch(cmd)...)
	if !h.Enrolled {
		findings = append(findings, finding{Name: "approvers", State: "warn", Text: "nobody is enrolled, so nothing can be approved", Repair: "gatehouse approver add NAME > me.key"})
	}
	for _, problem := range h.Problems {
		findings = append(findings, finding{Name: "policy", State: "bad", Text: problem, Repair: "gatehouse policy lint; gatehouse policy status"})
	}
	return findings, nil
}

// dataDir judges who may look into the gate's directory.
func dataDir(p place.Place) finding {
	info, err := os.Stat(p.Home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{Name: "data", State: "warn", Text: p.Home + " is not there yet", Repair: "gatehouse up makes it"}
	case err != nil:
		return finding{Name: "data", State: "bad", Text: err.Error()}
	case info.Mode().Perm()&0o077 != 0:
		return finding{Name: "data", State: "bad", Text: fmt.Sprintf("%s is open to others (%v)", p.Home, info.Mode().Perm()), Repair: "chmod 700 " + p.Home}
	}
	return finding{Name: "data", State: "ok", Text: p.Home}
}

// policyFiles judges the policy files on disk.
func (a *app) policyFiles() finding {
	set, _, err := a.snapshot(nil)
	if err != nil {
		return finding{Name: "files", State: "bad", Text: err.Error(), Repair: "gatehouse policy lint"}
	}
	return finding{Name: "files", State: "ok", Text: fmt.Sprintf("%d policy file(s) load", len(set.layers)+len(set.tools))}
}

// posture asks the gate whether it holds whoever runs this, "" without a gate.
func (a *app) posture(cmd *cobra.Command) string {
	c, err := a.asAgent()
	if err != nil {
		return ""
	}
	h := &api.Health{}
	if err := c.Do(cmd.Context(), "GET", "/v1/health", nil, h); err != nil {
		return ""
	}
	return h.Posture
}
