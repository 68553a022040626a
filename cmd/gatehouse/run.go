package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/confine"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// runFlags is what the command line of run says.
type runFlags struct {
	read, write, protect, hosts, env []string
	cwd, backend, policy             string
	agent, tool                      string
	call                             string // the call that this run is, if it was asked for already
	public, inherit                  bool
	unconfined, explain              bool
	overlay, clone, ask              bool
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [options] -- COMMAND [ARGUMENTS]",
		Short: "Run a command with no more than it needs: its files, its hosts, its variables",
		Long: `Runs a command confined by the kernel. Without options it reads the working directory
and what a program needs to start, writes nothing, has no network and a small
environment. What no back-end on this machine can hold is refused, not widened.

With --overlay the command may change the working directory as it likes, and with
--clone a private copy of the repository around it; either way nothing reaches
the directory itself until you take it over with gatehouse changes.`,
		Example: `  gatehouse run -- go vet ./...
  gatehouse run --write . -- make build
  gatehouse run --write . --net api.example.com:443 -- ./fetch
  gatehouse run --overlay -- ./rewrite-everything
  gatehouse run --clone -- sh -c 'go fix ./... && git commit -qam "go fix"'
  gatehouse run --agent claude -- -p "fix the failing test"
  gatehouse run --policy build.toml --explain -- make
  gatehouse run --explain --write ./out -- ./generate`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && f.agent == "" {
				return usageError{errors.New("name the command to run after --")}
			}
			if !f.explain {
				if err := a.answerFor(cmd.Context(), args); err != nil {
					return err
				}
			}
			return a.run(cmd.Context(), &f, args)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *runFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SetInterspersed(false)
	fs.StringSliceVar(&f.read, "read", nil, "path or glob it may read (default: the working directory)")
	fs.StringSliceVar(&f.write, "write", nil, "path it may write")
	fs.StringSliceVar(&f.protect, "protect", nil, "path or name that stays unchanged inside what it may write")
	fs.StringSliceVar(&f.hosts, "net", nil, "host or host:port it may reach")
	fs.BoolVar(&f.public, "net-public", false, "it may reach any public host, never this machine's own network")
	fs.BoolVar(&f.ask, "ask", false, "hosts that are not declared are asked about when it wants them, three times at most")
	fs.StringSliceVar(&f.env, "env", nil, "variable it gets (default: PATH, HOME, LANG, TERM, TMPDIR, USER)")
	fs.BoolVar(&f.inherit, "inherit-env", false, "it gets all variables but those that load code")
	fs.StringVar(&f.policy, "policy", "", "file that says what it may do: a session policy, or tools' declarations in YAML; flags add to it")
	fs.StringVar(&f.tool, "tool", "", "the tool in the policy file whose policy it is")
	fs.StringVar(&f.cwd, "cwd", "", "working directory")
	fs.StringVar(&f.backend, "backend", "", "force a back-end: bubblewrap, landlock, firejail, podman, docker, wasm")
	fs.StringVar(&f.agent, "agent", "", "run an agent, confined and held by the gate: claude, codex, gemini or grok")
	fs.BoolVar(&f.overlay, "overlay", false, "keep every change to the working directory in a layer, for gatehouse changes")
	fs.BoolVar(&f.clone, "clone", false, "work in a private clone of the repository, for gatehouse changes")
	fs.BoolVar(&f.unconfined, "unconfined", false, "run without a sandbox where none will do; loud, and never by itself")
	fs.BoolVar(&f.explain, "explain", false, "print what would be enforced by what, and run nothing")
	fs.StringVar(&f.call, "call", "", "the call, let through by the gate, that this run is")
	cmd.MarkFlagsMutuallyExclusive("overlay", "clone", "agent")
	cobra.CheckErr(fs.MarkHidden("call")) // written by the gate's own hooks, not by people
}

// spec is what the policy file and the flags say a command may do.
func (f *runFlags) spec(args []string) (sandbox.Spec, error) {
	program := ""
	if len(args) > 0 {
		program = args[0]
	}
	s, err := f.fromPolicy(program)
	if err != nil {
		return s, err
	}
	s.Command, s.Dir, s.Backend, s.AllowUnconfined = args, f.cwd, sandbox.Backend(f.backend), f.unconfined
	s.Read, s.Write = append(s.Read, f.read...), append(s.Write, f.write...)
	s.Protected = append(s.Protected, f.protect...)
	s.Env.Inherit = s.Env.Inherit || f.inherit
	if f.public {
		s.Net.Mode = sandbox.NetPublic
	}
	if f.ask {
		s.Net.Mode = max(s.Net.Mode, sandbox.NetHosts)
	}
	if len(f.hosts) > 0 {
		s.Net.Mode, s.Net.Allow = max(s.Net.Mode, sandbox.NetHosts), append(s.Net.Allow, f.hosts...)
	}
	if len(f.env) > 0 {
		s.Env.Pass = append(s.Env.Pass, f.env...)
	}
	return s, nil
}

// fromPolicy reads what the policy file lets a program do.
func (f *runFlags) fromPolicy(program string) (sandbox.Spec, error) {
	if f.policy == "" {
		return sandbox.Spec{}, nil
	}
	dir, err := workingDir(f.cwd)
	if err != nil {
		return sandbox.Spec{}, err
	}
	home, _ := os.UserHomeDir() // without one, patterns that need it are refused
	access, err := f.access(home)
	if err != nil {
		return sandbox.Spec{}, err
	}
	f.ask = f.ask || access.Ask
	return access.Spec(confine.Place{Dir: dir, Home: home, Program: program, Environ: os.Environ()})
}

// access reads a tool's declaration, if the file is YAML, or a session policy.
func (f *runFlags) access(home string) (confine.Access, error) {
	if isYAML(f.policy) {
		return f.toolAccess()
	}
	set, err := readLayers([]layerFile{{policy.ScopeUser, f.policy, false}})
	if err != nil {
		return confine.Access{}, err
	}
	snap, err := policy.Compile(set.layers, policy.Options{Home: home, Launcher: true})
	if err != nil {
		return confine.Access{}, err
	}
	e := snap.Explain()
	return confine.FromPolicy(&e)
}

func (f *runFlags) toolAccess() (confine.Access, error) {
	text, err := os.ReadFile(f.policy)
	if err != nil {
		return confine.Access{}, err
	}
	set, err := declare.Parse(text)
	if err != nil {
		return confine.Access{}, fmt.Errorf("%s: %w", f.policy, err)
	}
	var names []string
	for _, t := range set.Tools {
		if t.Name == f.tool || f.tool == "" && len(set.Tools) == 1 {
			return confine.FromTool(t.Policy), nil
		}
		names = append(names, t.Name)
	}
	return confine.Access{}, usageError{fmt.Errorf("say with --tool whose policy it is: %s", strings.Join(names, ", "))}
}

func (a *app) run(ctx context.Context, f *runFlags, args []string) error {
	s, err := f.spec(args)
	if err != nil {
		return err
	}
	sh, err := shelf()
	if err != nil {
		return err
	}
	// What waits for a person is not for a run to rewrite.
	s.Protected = append(s.Protected, sh.Dir)
	g, err := a.runGate(ctx, f.call)
	if err == nil && f.agent != "" {
		err = a.agentSpec(f.agent, &s, args, g)
	}
	switch {
	case err != nil:
		return err
	case g != nil:
		g.attach(&s, f.ask)
	case s.Net.Mode == sandbox.NetHosts && len(s.Net.Allow) == 0:
		s.Net.Mode = sandbox.NetNone // nobody is there to ask
	}
	if f.explain {
		code, _ := sandbox.Main(ctx, sandbox.Options{Spec: s, Explain: true}, os.Stdin, os.Stdout, os.Stderr)
		return exitWith(code)
	}
	do := func(s sandbox.Spec) (int, *sandbox.Result) {
		code, r := sandbox.Main(ctx, sandbox.Options{Spec: s, Interactive: true}, os.Stdin, os.Stdout, os.Stderr)
		if err := g.end(r); err != nil {
			fmt.Fprintln(os.Stderr, "gatehouse:", err)
		}
		return code, r
	}
	switch {
	case f.overlay:
		return runOverlay(sh, s, do)
	case f.clone:
		return runClone(ctx, sh, s, do)
	}
	code, _ := do(s)
	return exitWith(code)
}

// runner runs a command for the person at the terminal, on record if there is
// a gate.
type runner func(sandbox.Spec) (int, *sandbox.Result)

func exitWith(code int) error {
	if code != 0 {
		return codeError(code)
	}
	return nil
}

// runOverlay runs with every change to the working directory in a layer, and
// says how to look at it.
func runOverlay(sh changes.Shelf, s sandbox.Spec, do runner) error {
	root, err := workingDir(s.Dir)
	if err != nil {
		return err
	}
	layer, err := sh.Begin()
	if err != nil {
		return err
	}
	about := changes.About{Command: s.Command, At: time.Now().UTC()}
	s.Dir, s.Overlay = root, sandbox.Overlay{Root: root, Layer: layer}
	code, r := do(s)
	if r == nil {
		return errors.Join(sh.Drop(layer), exitWith(code))
	}
	set, err := sh.Keep(layer, root, about)
	if err != nil {
		return fmt.Errorf("the changes could not be sealed and stay in %s: %w", layer, err)
	}
	if len(set.Changes) == 0 {
		fmt.Fprintf(os.Stderr, "gatehouse: nothing was changed\n")
	} else {
		review(set.Hash[:16], fmt.Sprintf("%d changes to %s wait", len(set.Changes), root))
	}
	return exitWith(code)
}

// runClone runs in a private clone of the repository around the working
// directory.
func runClone(ctx context.Context, sh changes.Shelf, s sandbox.Spec, do runner) error {
	from, err := workingDir(s.Dir)
	if err != nil {
		return err
	}
	dir, err := sh.Begin()
	if err != nil {
		return err
	}
	c, err := changes.NewClone(ctx, from, dir)
	if err != nil {
		return errors.Join(err, sh.Drop(dir))
	}
	about := changes.About{Command: s.Command, At: time.Now().UTC()}
	// The clone is all the run's own: nobody works in it later, and what git
	// does with it afterwards it does in a sandbox. It lies on the shelf, which
	// no other run may change.
	s.Dir, s.Private, s.Protected = c.Repo(), []string{c.Repo()}, nil
	if s.Env.Set == nil {
		s.Env.Set = map[string]string{}
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		s.Env.Set["GIT_"+who+"_NAME"], s.Env.Set["GIT_"+who+"_EMAIL"] = "gatehouse run", "run@gatehouse.invalid"
	}
	code, r := do(s)
	if r == nil {
		return errors.Join(sh.Drop(dir), exitWith(code))
	}
	if err := errors.Join(c.Seal(ctx, about), sh.KeepClone(c)); err != nil {
		return fmt.Errorf("the clone could not be sealed and stays in %s: %w", c.Dir, err)
	}
	if len(c.Refs) == 0 && c.Loose == 0 {
		fmt.Fprintf(os.Stderr, "gatehouse: nothing was changed\n")
		return exitWith(code)
	}
	what := fmt.Sprintf("%d branches of a private clone of %s wait", len(c.Refs), from)
	if c.Loose > 0 {
		what += fmt.Sprintf(" (and %d files that were not committed)", c.Loose)
	}
	review(c.Hash[:16], what)
	return exitWith(code)
}

// review says what to do with changes that wait.
func review(id, what string) {
	lines := []string{
		what + "; nothing has left the sandbox", "look at them:   gatehouse changes show " + id,
		"take them over: gatehouse changes accept " + id, "drop them:      gatehouse changes discard " + id,
	}
	fmt.Fprintf(os.Stderr, "gatehouse: %s\n", strings.Join(lines, "\n  "))
}

func workingDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return os.Getwd()
}
