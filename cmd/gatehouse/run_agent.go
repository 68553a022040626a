package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// agentNeeds is what an agent's program needs to do its work, besides the
// workspace and a home of its own.
type agentNeeds struct {
	hosts []string // where its model is
	env   []string // what it reads of the person's environment
	base  []string // variables that say where else its model is
	set   map[string]string
	args  []string // put before the person's own
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
		hosts: []string{"api.anthropic.com:443"}, env: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN"},
		base:    []string{"ANTHROPIC_BASE_URL"},
		machine: true,
		set:     map[string]string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
	},
	"codex": {
		hosts: []string{"api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"}, env: []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"},
		machine: true,
		// A sandbox inside a sandbox cannot be made, by design; this one holds.
		args: []string{"-c", `sandbox_mode="danger-full-access"`},
	},
	"gemini": {
		hosts: []string{"generativelanguage.googleapis.com:443", "cloudcode-pa.googleapis.com:443", "oauth2.googleapis.com:443"},
		env:   []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_CLI_TRUST_WORKSPACE"}, base: []string{"GOOGLE_GEMINI_BASE_URL"},
		// The machine's settings it takes from root alone, and nobody is root
		// inside. A repository's count before a person's.
		settings: []string{".gemini/settings.json", ".gemini/.env"}, covered: map[string]string{".gemini/settings.json": "{}", ".gemini/.env": ""},
	},
	"grok": {
		hosts: []string{"api.x.ai:443", "cli-chat-proxy.grok.com:443", "auth.x.ai:443"}, env: []string{"XAI_API_KEY", "GROK_API_KEY"},
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
	s.Read = append(s.Read, dir, programTree(program), hook)
	s.Write, s.Private = append(s.Write, dir), append(s.Private, home)
	needs.fill(s, home)
	s.Channel = &sandbox.Channel{Path: hookSocket, Serve: func(l net.Listener) { g.relay(l, name) }}
	owner, err := sandbox.RunsAs(*s)
	if err != nil {
		return err
	}
	return agentSettings(name, dir, s, home, &connect.Hook{Program: []string{hook}, Socket: hookSocket, Owner: owner})
}

// fill adds hosts and variables.
func (n agentNeeds) fill(s *sandbox.Spec, home string) {
	s.Net.Mode = max(s.Net.Mode, sandbox.NetHosts)
	hosts := n.hosts
	if s.Env.Pass == nil {
		s.Env.Pass = []string{"PATH", "LANG", "TERM", "TMPDIR", "USER", "COLORTERM"}
	}
	s.Env.Pass = append(append(s.Env.Pass, n.env...), n.base...)
	for _, name := range n.base {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.Host == "" {
			continue
		}
		host := u.Host
		if u.Port() == "" {
			host += map[string]string{"http": ":80"}[u.Scheme]
		}
		hosts = []string{host} // the person says where the model is, and that is where it is
	}
	s.Net.Allow = append(s.Net.Allow, hosts...)
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

// programTree is the directory that a program was installed with: the tree of
// packages around it, or the file itself.
func programTree(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return program
	}
	if i := strings.LastIndex(real, "/node_modules/"); i >= 0 {
		return real[:i] + "/node_modules"
	}
	return real
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
