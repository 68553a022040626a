package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// agentNeeds is what an agent's program needs to do its work, besides the
// workspace and a home of its own.
type agentNeeds struct {
	set  map[string]string
	args []string // put before the person's own
	// machine says that it takes its hook from the machine's settings.
	machine bool
	// settings, below its home, are what could switch the hook off. They stay as
	// they are while the agent runs.
	settings []string
	// covered are files of a repository that could switch the hook off, and what
	// the agent sees in their place.
	covered map[string]string
}

var agentsToRun = map[string]agentNeeds{
	"claude": {
		machine: true,
		set:     map[string]string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
	},
	"codex": {
		machine: true,
		// A sandbox inside a sandbox cannot be made, by design; this one holds.
		args: []string{"-c", `sandbox_mode="danger-full-access"`},
	},
	"gemini": {
		// The machine's settings it takes from root alone, and nobody is root
		// inside. A repository's count before a person's.
		settings: []string{".gemini/settings.json", ".gemini/.env"}, covered: map[string]string{".gemini/settings.json": "{}", ".gemini/.env": ""},
	},
	"grok": {
		settings: []string{".grok/config.toml", ".grok/hooks", ".claude", ".cursor"},
	},
}

// hookSocket is where the hook finds the gate, inside.
const hookSocket = "/run/gatehouse.sock"

// agentSpec adds to a spec what it takes to run an agent's program: the program
// and the hook to read, a home of its own and the workspace to write, its model
// to reach, and settings that put the hook before every tool.
func (a *app) agentSpec(name string, s *sandbox.Spec, args []string, g *runGate) error {
	needs, ok := agentsToRun[name]
	if !ok {
		return usageError{fmt.Errorf("%q is no agent that can be run; there are claude, codex, gemini and grok", name)}
	}
	if g == nil {
		return errors.New("an agent is run under a gate, and none is running here: start it with `gatehouse up`")
	}
	program, err := exec.LookPath(connect.Program(name))
	if err != nil {
		return err
	}
	hook, err := hookProgram()
	if err != nil {
		return err
	}
	home, err := place.AgentHome(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	dir, err := workingDir(s.Dir)
	if err != nil {
		return err
	}
	s.Command = append(append([]string{program}, needs.args...), args...)
	s.Read = append(append(s.Read, dir, hook), provider.Tree(program)...)
	s.Write, s.Private = append(s.Write, dir), append(s.Private, home)
	needs.fill(name, s, home)
	s.Channel = &sandbox.Channel{Path: hookSocket, Serve: func(l net.Listener) { g.relay(l, name) }}
	owner, err := sandbox.RunsAs(*s)
	if err != nil {
		return err
	}
	return agentSettings(name, dir, s, home, &connect.Hook{Program: []string{hook}, Socket: hookSocket, Owner: owner})
}

// fill adds hosts and variables.
func (n agentNeeds) fill(name string, s *sandbox.Spec, home string) {
	if s.Env.Pass == nil {
		s.Env.Pass = []string{"PATH", "LANG", "TERM", "TMPDIR", "USER", "COLORTERM"}
	}
	var env []string
	for _, v := range append(provider.Variables(name), "GEMINI_CLI_TRUST_WORKSPACE") {
		s.Env.Pass = append(s.Env.Pass, v)
		env = append(env, v+"="+os.Getenv(v))
	}
	s.Net.Mode = max(s.Net.Mode, sandbox.NetHosts)
	s.Net.Allow = append(s.Net.Allow, provider.Hosts(name, env, nil)...)
	set := map[string]string{"HOME": home}
	for k, v := range n.set {
		set[k] = v
	}
	for k, v := range s.Env.Set {
		set[k] = v
	}
	s.Env.Set = set
}

// cover lists what lies in a directory and above it, up to a repository's top,
// and is covered.
func (n agentNeeds) cover(dir string) map[string]string {
	files := map[string]string{}
	for {
		for path, text := range n.covered {
			if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
				files[filepath.Join(dir, path)] = text
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == "/" {
			return files
		}
		dir = filepath.Dir(dir)
	}
}

// agentSettings puts the hook into the agent's settings: into the machine's,
// which neither the agent nor the repository can switch off, where that is known
// to work; else into its home, where they cannot be changed.
func agentSettings(name, dir string, s *sandbox.Spec, home string, h *connect.Hook) error {
	if !agentsToRun[name].machine {
		plan, err := connect.Make(name, connect.Place{Scope: connect.User, Home: home, Dir: s.Dir}, h)
		if err != nil {
			return err
		}
		for _, c := range plan.Changes {
			s.Protected = append(s.Protected, c.Path)
		}
		for _, path := range agentsToRun[name].settings {
			s.Protected = append(s.Protected, filepath.Join(home, path))
		}
		s.Files = agentsToRun[name].cover(dir)
		return plan.Apply()
	}
	root, err := os.MkdirTemp("", "gatehouse-agent-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	plan, err := connect.Make(name, connect.Place{Scope: connect.Machine, Home: home, Dir: s.Dir, Root: root}, h)
	if err != nil {
		return err
	}
	s.Files = map[string]string{}
	for _, c := range plan.Changes {
		s.Files[strings.TrimPrefix(c.Path, root)] = string(c.New)
	}
	return nil
}

// hookProgram is the hook that lies beside this program.
func hookProgram() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	hook := filepath.Join(filepath.Dir(exe), "gatehouse-hook")
	if !executable(hook) {
		return "", fmt.Errorf("gatehouse-hook does not lie beside %s: build or install it there", exe)
	}
	return hook, nil
}

// relay takes what the hooks of the confined agent say to the gate, and nothing
// else: no other path of the gate's socket is reachable from inside.
func (g *runGate) relay(l net.Listener, agent string) {
	path := "/v1/hook/" + agent
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != path || r.URL.RawQuery != "" {
			http.Error(w, "only hooks speak here", http.StatusForbidden)
			return
		}
		header := http.Header{"Gatehouse-Run": {g.id}}
		for _, name := range []string{"Content-Type", "Gatehouse-Wait", "Gatehouse-Defer"} {
			if v := r.Header.Values(name); len(v) > 0 {
				header[name] = v
			}
		}
		resp, err := g.client.Raw(r.Context(), http.MethodPost, path, header, r.Body)
		if err != nil {
			http.Error(w, "the gate does not answer", http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for _, name := range []string{"Content-Type", "Content-Length", "Gatehouse-Answer"} {
			w.Header()[name] = slices.Clone(resp.Header.Values(name))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // a hook that hung up has blocked its call already
	})}
	_ = server.Serve(l) // it ends with the run, which closes the listener
	_ = server.Shutdown(context.Background())
}
