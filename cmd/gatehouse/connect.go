package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/connect/rules"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

func newConnect(a *app) *cobra.Command {
	var project, user, machine, undo, dry, deferring, takeOver bool
	var root string
	cmd := &cobra.Command{
		Use:   "connect [AGENT]",
		Short: "Put the gate in front of an agent, by its own hooks; alone, list what is here and how well it is held",
		Long: `Writes the gate's hook into the settings of an agent: ` + strings.Join(connect.Names(), ", ") + `.
What is there is kept, and a copy of it beside; connecting twice changes nothing.
Rules that you already have there are shown as rules of the gate for you to take over.`,
		Example: `  gatehouse connect                     what is installed here, and how well each is held
  gatehouse connect claude              for all your projects
  gatehouse connect claude --project    for this directory
  sudo gatehouse connect claude --machine
  gatehouse connect claude --undo
  gatehouse connect codex --dry-run     show what would be written`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listAgents(cmd)
			}
			where, err := connectPlace(project, user, machine, root)
			if err != nil {
				return err
			}
			var h *connect.Hook
			if !undo {
				if h, err = a.hook(); err != nil {
					return err
				}
				h.Defer = deferring
			}
			plan, err := connect.Make(args[0], where, h)
			if err != nil {
				return usageError{err}
			}
			found := &rules.Found{}
			if !undo {
				if found, err = rules.Read(args[0], where); err != nil {
					return fmt.Errorf("the rules you have in %s cannot be read: %w", connect.Title(args[0]), err)
				}
			}
			if err := a.connect(cmd, plan, found, where, dry, undo); err != nil || undo {
				return err
			}
			return a.importRules(cmd, args[0], found, where, takeOver && !dry)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&project, "project", false, "for the working directory, on this machine alone")
	f.BoolVar(&user, "user", false, "for all your projects (the default)")
	f.BoolVar(&machine, "machine", false, "in the administrator's settings, where the agent has such")
	f.BoolVar(&undo, "undo", false, "take the gate out again")
	f.BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	f.BoolVar(&deferring, "defer", false, "Claude Code, headless runs only: end the run while a question waits, to be resumed")
	f.BoolVar(&takeOver, "import", false, "write the rules you have there into your policy; what they loosen waits for an approver")
	f.StringVar(&root, "root", "", "directory to put in front of the machine's paths, for images")
	cmd.MarkFlagsMutuallyExclusive("project", "user", "machine")
	return a.withJSON(cmd)
}

// connectPlace is where the settings lie.
func connectPlace(project, _, machine bool, root string) (connect.Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return connect.Place{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return connect.Place{}, err
	}
	p := connect.Place{Scope: connect.User, Home: home, Dir: dir, Root: root}
	switch {
	case project:
		p.Scope = connect.Project
	case machine:
		p.Scope = connect.Machine
	}
	return p, nil
}

// hook is the command line that agents are told to run.
func (a *app) hook() (*connect.Hook, error) {
	p, err := place.Reach(a.home)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return nil, err
	}
	if strings.Contains(exe, "go-build") {
		return nil, usageError{errors.New("this gatehouse was built by `go run` and will be gone: build it first (go build -o DIR ./cmd/gatehouse ./cmd/gatehouse-hook)")}
	}
	h := &connect.Hook{Program: []string{exe, "hook"}, Socket: p.Socket(), Owner: os.Geteuid()}
	if small := filepath.Join(filepath.Dir(exe), "gatehouse-hook"); executable(small) {
		h.Program = []string{small}
	}
	if h.Owner, err = ownerOf(p.Home); err != nil {
		h.Owner = os.Geteuid() // there is no gate yet; it will be ours
	}
	if p.Home != place.SystemHome && h.Owner == os.Geteuid() { // the gate is ours to start
		if h.Home, err = os.UserHomeDir(); err != nil {
			return nil, err
		}
		h.Start = exe
	}
	return h, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// connect carries a plan out, or shows it.
func (a *app) connect(cmd *cobra.Command, plan *connect.Plan, found *rules.Found, where connect.Place, dry, undo bool) error {
	w := out(cmd)
	if !dry {
		if err := plan.Apply(); err != nil {
			return err
		}
		if plan.Agent == "codex" && !undo {
			plan.Notes = append(plan.Notes, trustCodex(cmd.Context(), where))
		}
	}
	if a.json {
		return printJSON(w, struct {
			*connect.Plan
			*rules.Found
		}{plan, found})
	}
	verb := map[bool]string{false: "wrote", true: "would write"}[dry]
	for _, c := range plan.Changes {
		if c.New == nil {
			fmt.Fprintf(w, "%s  %s (removed)\n", verb, c.Path)
			continue
		}
		fmt.Fprintf(w, "%s  %s\n", verb, c.Path)
		if dry {
			fmt.Fprintf(w, "\n%s\n", c.New)
		}
	}
	if len(plan.Changes) == 0 {
		fmt.Fprintf(w, "%s is as it should be; nothing to write\n", connect.Title(plan.Agent))
	}
	for _, n := range plan.Notes {
		fmt.Fprintf(w, "note   %s\n", n)
	}
	if !undo && !dry {
		fmt.Fprintf(w, "next   gatehouse doctor proves that it holds\n")
	}
	return nil
}

// trustCodex has Codex trust the hooks that were just written, and says what
// came of it.
func trustCodex(ctx context.Context, where connect.Place) string {
	program, err := exec.LookPath("codex")
	if err != nil {
		return "Codex is not on the path, so it was not told to trust the hooks; it skips them until you say /hooks there"
	}
	n, err := connect.Trust(ctx, program, where)
	if err != nil {
		return fmt.Sprintf("Codex could not be told to trust the hooks (%v); it skips them until you say /hooks there", err)
	}
	return fmt.Sprintf("Codex trusts the gate's %d hooks", n)
}

// importRules shows the rules that a person has in an agent's settings as a
// change of their policy, or of the project's, and makes it if so told. What it
// loosens takes effect when an approver accepts it, like any change of the file.
func (a *app) importRules(cmd *cobra.Command, agent string, found *rules.Found, where connect.Place, write bool) error {
	if len(found.Rules)+len(found.Skipped) == 0 || a.json && !write {
		return nil
	}
	p, err := place.Reach(a.home)
	if err != nil {
		return err
	}
	path, then := p.Policy(), "`gatehouse policy accept`"
	if where.Scope == connect.Project {
		path = filepath.Join(where.Dir, place.ProjectPolicy)
		then = "`gatehouse policy trust`, and for `rules` among what your own policy lists as adjustable"
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	made, err := rules.Write(old, agent, found.Rules)
	if err != nil {
		return err
	}
	same := string(made) == string(old) || len(found.Rules) == 0
	if !a.json {
		showRules(out(cmd), agent, path, then, old, made, found, same, write)
	}
	if same || !write {
		return nil
	}
	if err := a.tightenFirst(cmd.Context(), p, path, agent, old, found.Rules); err != nil {
		return err
	}
	return os.WriteFile(path, made, 0o600)
}

// tightenFirst writes the rules that deny or ask by themselves and lets a gate
// that runs take them in, so that they do not wait together with what loosens.
func (a *app) tightenFirst(ctx context.Context, p place.Place, path, agent string, old []byte, all []rules.Rule) error {
	gate, before := client.Unix(p.Socket(), ""), &api.Health{}
	objections := slices.DeleteFunc(slices.Clone(all), func(r rules.Rule) bool { return !r.Objects() })
	if len(objections) == 0 || len(objections) == len(all) || gate.Do(ctx, "GET", "/v1/health", nil, before) != nil {
		return nil // nothing to part, or nobody to wait for
	}
	made, err := rules.Write(old, agent, objections)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, made, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takenIn)
	defer cancel()
	for now := before; ctx.Err() == nil && now.Policy == before.Policy; time.Sleep(takenIn / 50) {
		now = &api.Health{}
		if err := gate.Do(ctx, "GET", "/v1/health", nil, now); err != nil {
			return nil // the gate went away; it reads the whole file when it is back
		}
	}
	return nil
}

// takenIn is how long a gate may take to read a changed file.
const takenIn = 3 * time.Second

// showRules shows what would be taken over, and what not.
func showRules(w io.Writer, agent, path, then string, old, made []byte, found *rules.Found, same, write bool) {
	switch {
	case len(found.Rules) == 0:
		fmt.Fprintf(w, "rules  %s has no rules that can be taken over\n", connect.Title(agent))
	case same:
		fmt.Fprintf(w, "rules  yours are in %s already\n", path)
	default:
		fmt.Fprintf(w, "rules  %s has rules of yours; as a change of %s:\n\n", connect.Title(agent), path)
		for line := range strings.Lines(strings.TrimPrefix(string(made), string(old))) {
			fmt.Fprintf(w, "  +%s", line)
		}
	}
	for _, s := range found.Skipped {
		fmt.Fprintf(w, "  # left out: %s (%s)\n", s.From, s.Why)
	}
	switch {
	case same:
	case !write:
		fmt.Fprintf(w, "\n       gatehouse connect %s --import writes it; what it loosens waits for %s\n", agent, then)
	default:
		fmt.Fprintf(w, "\nwrote  %s (what it loosens waits for %s)\n", path, then)
	}
}
