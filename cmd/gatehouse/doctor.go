package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// finding is one thing that doctor looked at.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn or bad
	Text   string `json:"text"`
	Repair string `json:"repair,omitzero"`
}

func newDoctor(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "doctor", Short: "Look at this installation and say what is wrong and how to mend it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := a.examine(cmd)
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
func (a *app) examine(cmd *cobra.Command) ([]finding, error) {
	p, err := place.Find(a.home)
	if err != nil {
		return nil, err
	}
	findings := []finding{dataDir(p), a.policyFiles()}
	h := &api.Health{}
	err = client.Unix(p.Socket(), "").Do(cmd.Context(), "GET", "/v1/health", nil, h)
	switch {
	case errors.Is(err, client.ErrNoDaemon):
		return append(findings, finding{"daemon", "bad", "no gate is running here", "gatehouse up"}), nil
	case err != nil:
		return append(findings, finding{"daemon", "bad", err.Error(), "look at its log"}), nil
	}
	findings = append(findings, finding{"daemon", "ok", "version " + h.Version + " answers on " + p.Socket(), ""})
	if h.Posture == "held" {
		findings = append(findings, finding{"posture", "ok", "held: agents cannot reach the gate's files", ""})
	} else {
		findings = append(findings, finding{"posture", "warn", "advisory: the gate runs as your own user, so it stops mistakes, not a hostile agent",
			"run the gate as a user of its own; docs/threat-model.md says what that changes"})
	}
	if !h.Enrolled {
		findings = append(findings, finding{"approvers", "warn", "nobody is enrolled, so nothing can be approved", "gatehouse approver add NAME > me.key"})
	}
	for _, problem := range h.Problems {
		findings = append(findings, finding{"policy", "bad", problem, "gatehouse policy lint; gatehouse policy status"})
	}
	return findings, nil
}

// dataDir judges who may look into the gate's directory.
func dataDir(p place.Place) finding {
	info, err := os.Stat(p.Home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{"data", "warn", p.Home + " is not there yet", "gatehouse up makes it"}
	case err != nil:
		return finding{"data", "bad", err.Error(), ""}
	case info.Mode().Perm()&0o077 != 0:
		return finding{"data", "bad", fmt.Sprintf("%s is open to others (%v)", p.Home, info.Mode().Perm()), "chmod 700 " + p.Home}
	}
	return finding{"data", "ok", p.Home, ""}
}

// policyFiles judges the policy files on disk.
func (a *app) policyFiles() finding {
	layers, err := a.readPolicies(nil)
	if err == nil {
		_, err = compile(layers)
	}
	if err != nil {
		return finding{"files", "bad", err.Error(), "gatehouse policy lint"}
	}
	return finding{"files", "ok", fmt.Sprintf("%d policy file(s) load", len(layers)), ""}
}
