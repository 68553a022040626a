package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/transcript"
)

// How well an agent is held.
const (
	held     = "held"
	advisory = "advisory"
	notHeld  = "not held"
)

// agentState is what is known about one agent on this machine.
type agentState struct {
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Program string          `json:"program,omitzero"`
	Found   []connect.Found `json:"connected,omitzero"`
	// Holds is held, advisory or not held; empty for what is not installed.
	Holds string `json:"holds,omitzero"`
	// Proven says that a call through the CLI was seen to be stopped.
	Proven bool   `json:"proven"`
	Text   string `json:"text"`
	Repair string `json:"repair,omitzero"`
	// Unseen are calls in its transcripts that the log does not know.
	Unseen []unseen `json:"unseen,omitzero"`
}

// selfDenial is what the gate says to a call that reaches the gate itself.
const selfDenial = "it reaches the gate itself"

// examineAgents looks at every agent. Where the CLI is there and can be driven,
// a call through it shows whether the gate stands in its way; else its settings
// are all there is to go by.
func (a *app) examineAgents(cmd *cobra.Command, posture string, prove bool) ([]agentState, error) {
	where, err := connectPlace(false, true, false, "")
	if err != nil {
		return nil, err
	}
	var states []agentState
	for _, name := range connect.Names() {
		s := agentState{Name: name, Title: connect.Title(name), Found: connect.Inspect(name, where)}
		s.Program, _ = exec.LookPath(connect.Program(name)) // "" where it is not installed
		switch {
		case s.Program == "" && len(s.Found) == 0:
			s.Text = "not installed here"
		case len(s.Found) == 0:
			s.Holds, s.Text, s.Repair = notHeld, "its calls do not come to the gate", "gatehouse connect "+name
		case s.Found[0].Missing != "":
			s.Holds, s.Text = notHeld, "the hook "+s.Found[0].Missing+" is not there, and an agent that cannot start its hook goes on without it"
			s.Repair = "gatehouse connect " + name
		default:
			a.judgeAgent(cmd, &s, where, posture, prove)
			a.beat(cmd, &s, where.Home)
		}
		states = append(states, s)
	}
	return states, nil
}

// judgeAgent judges an agent whose settings have the hook in them.
func (a *app) judgeAgent(cmd *cobra.Command, s *agentState, where connect.Place, posture string, prove bool) {
	s.Holds, s.Text = advisory, "connected by "+s.Found[0].Path
	if prove && s.Program != "" && slices.Contains(canary.Names(), s.Name) {
		if !a.proveAgent(cmd, s, where) {
			return
		}
	} else {
		s.Text += "; not proven: that takes the CLI and a model that this program can play"
	}
	if posture == held && s.Proven && !slices.ContainsFunc(s.Found, func(f connect.Found) bool { return !f.Writable }) {
		s.Text += "; the settings can be changed by you, and so by the agent"
		if s.Name == "claude" || s.Name == "gemini" {
			s.Repair = "as the administrator: gatehouse connect " + s.Name + " --machine"
		}
		return
	}
	if posture == held && s.Proven && noHook[s.Name] == "" {
		s.Holds = held
	}
}

// proveAgent drives the CLI through a call that the gate denies, and says
// whether that was seen.
func (a *app) proveAgent(cmd *cobra.Command, s *agentState, where connect.Place) bool {
	proof, err := canary.CLI{Name: s.Name, Program: s.Program}.Prove(cmd.Context(), where.Dir, where.Home, s.Found[0].Socket, selfDenial)
	switch {
	case err != nil:
		s.Holds, s.Text, s.Repair = notHeld, "the canary call could not be made: "+err.Error(), "run "+s.Program+" by hand and see"
	case proof.Ran:
		s.Holds, s.Text = notHeld, "a call ran that the gate denies: it did not ask, or did not listen"
		s.Repair = "look for settings of this directory that switch hooks off, for another hook's answer, and for a hook that fails; then gatehouse connect " + s.Name
	case !proof.Reached:
		s.Holds, s.Text, s.Repair = notHeld, "the canary call never came to the gate: "+firstLine(proof.Said), "gatehouse up; gatehouse connect "+s.Name
	default:
		s.Proven = true
		s.Text = "a call through " + s.Program + " was stopped by the gate"
		if without := noHook[s.Name]; without != "" {
			s.Text += "; " + without
		}
		return true
	}
	return false
}

// noHook says what an agent does without asking a hook, whatever its settings.
var noHook = map[string]string{
	"codex": "what it types into a program that runs already (write_stdin) comes to no hook",
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return "the CLI said nothing"
	}
	return line
}

// listAgents says what is installed here and how well it is held.
func (a *app) listAgents(cmd *cobra.Command) error {
	states, err := a.examineAgents(cmd, a.posture(cmd), true)
	if err != nil {
		return err
	}
	if a.json {
		return printJSON(out(cmd), states)
	}
	printAgents(out(cmd), states)
	return nil
}

func printAgents(w io.Writer, states []agentState) {
	colours := map[string]string{held: green, advisory: yellow, notHeld: red}
	for _, s := range states {
		fmt.Fprintf(w, "%-15s %s  %s\n", s.Title, paint(w, colours[s.Holds], fmt.Sprintf("%-8s", s.Holds)), s.Text)
		if s.Repair != "" {
			fmt.Fprintf(w, "%-15s %-8s  → %s\n", "", "", s.Repair)
		}
	}
}

// finding makes a state one of doctor's findings.
func (s *agentState) finding() finding {
	f := finding{Name: s.Name, State: "bad", Text: s.Holds + ": " + s.Text, Repair: s.Repair, Holds: s.Holds}
	switch s.Holds {
	case held:
		f.State = "ok"
	case advisory:
		f.State = "warn"
	}
	return f
}

// heartbeat compares what an agent wrote down with what came to the gate, and
// says what of it never did.
func (a *app) heartbeat(cmd *cobra.Command, s *agentState, home string) error {
	since := time.Now().Add(-24 * time.Hour)
	if info, err := os.Stat(s.Found[0].Path); err == nil && info.ModTime().After(since) {
		since = info.ModTime() // before it was connected nothing could come
	}
	sessions, err := transcript.Sessions(s.Name, home, since)
	if err != nil || len(sessions) == 0 {
		return err
	}
	c := client.Unix(s.Found[0].Socket, "")
	for _, t := range sessions {
		in := &api.SeenRequest{Session: t.Ref}
		tools := map[string]string{}
		for _, made := range t.Calls {
			if call.FoldTool(made.Tool) != call.OpNote { // its notes to itself do nothing
				in.IDs = append(in.IDs, made.ID)
				tools[made.ID] = made.Tool
			}
		}
		out := &api.SeenResponse{}
		if err := c.Do(cmd.Context(), "POST", "/v1/hook/"+s.Name+"/seen", in, out); err != nil {
			return err
		}
		for _, id := range out.Missing {
			s.Unseen = append(s.Unseen, unseen{Session: t.Ref, ID: id, Tool: tools[id], Transcript: t.File})
		}
	}
	return nil
}

// unseen is a call that an agent made and the gate never heard of.
type unseen struct {
	Session    string `json:"session"`
	ID         string `json:"id"`
	Tool       string `json:"tool"`
	Transcript string `json:"transcript"`
}

// beat adds the heartbeat to what is known about an agent.
func (a *app) beat(cmd *cobra.Command, s *agentState, home string) {
	if err := a.heartbeat(cmd, s, home); err != nil {
		s.Text += "; its transcripts could not be compared with the log: " + err.Error()
		return
	}
	if n := len(s.Unseen); n > 0 {
		s.Holds = notHeld
		s.Text = fmt.Sprintf("%d call(s) of the last day never came to the gate, the last by %s in %s", n, s.Unseen[n-1].Tool, s.Unseen[n-1].Transcript)
		s.Repair = "see what that session ran with; a tool without a hook is named in docs/agents.md"
	}
}
