package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
)

// examineDispatch looks at the CLIs that requests can be handed to, as the gate
// sees them: it is the gate that would start them. One that is not installed is
// not looked at.
func (a *app) examineDispatch(cmd *cobra.Command) []finding {
	var got struct {
		CLIs []dispatch.Version `json:"clis"`
	}
	if err := a.tool(cmd, "cli_versions", struct{}{}, &got); err != nil {
		return []finding{{Name: "dispatch", State: "warn", Text: "the gate does not say which CLIs it can hand requests to: " + err.Error()}}
	}
	var out []finding
	for i := range got.CLIs {
		v := &got.CLIs[i]
		f := finding{Name: "ask " + v.CLI, State: "ok", CLI: v, NextActions: v.NextActions, Holds: "advisory"}
		switch {
		case !v.Installed:
			f.Text, f.Holds = "not installed: requests to it are refused", ""
		case v.Error != "":
			f.State, f.Text = "warn", v.Path+": "+v.Error
		default:
			f.Text = fmt.Sprintf("%s; %s", v.Version, described(v))
		}
		if v.Installed && len(v.NextActions) > 0 {
			f.State, f.Repair = "warn", strings.Join(v.NextActions, "; ")
		}
		if v.Installed && !v.Gated {
			f.State, f.Holds = "warn", "not held"
		}
		out = append(out, f)
	}
	return out
}

// described says in words how a CLI is run.
func described(v *dispatch.Version) string {
	calls := "every tool call is decided (" + v.Channel + ")"
	if !v.Gated {
		calls = "its tool calls are not decided: the policy says cli_effects = \"classic\""
	}
	login := "no login"
	if v.Login != "" {
		login = "login " + v.Login
	}
	if v.SessionLogging != "" {
		login += ", session logging " + v.SessionLogging
	}
	return login + "; " + calls
}
