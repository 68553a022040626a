// Package dispatch_test drives the real agent CLIs as dispatch does: on the
// channels on which they ask before they use a tool, with a scripted model on
// the loopback in place of the model.
//
// The CLIs come from the npm registry: `go run ./test/all` installs each into
// its cache and names the folder in a variable, GATEHOUSE_CLI_CLAUDE and so on.
// Without it a test of a CLI is skipped and says so; under the test command it
// fails. Mistral Vibe is not on that registry; vibe has a program in its place.
package dispatch_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test for every CLI that can be driven.
func each(t *testing.T, fn func(t *testing.T, name string)) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "grok"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fn(t, name)
		})
	}
}

// cli finds an agent's program, or skips the test.
func cli(t *testing.T, name string) canary.CLI {
	t.Helper()
	variable := "GATEHOUSE_CLI_" + strings.ToUpper(name)
	folder := os.Getenv(variable)
	if folder == "" {
		needtest.Missing(t, variable+" names no folder with the CLI "+name)
	}
	program := filepath.Join(folder, "node_modules", ".bin", name)
	if _, err := os.Stat(program); err != nil {
		needtest.Missing(t, "the CLI "+name+" could not be had: "+err.Error())
	}
	return canary.CLI{Name: name, Program: program}
}

// agent is a CLI with a home and a directory of its own.
type agent struct {
	t         *testing.T
	cli       canary.CLI
	home, dir string
	// session is that of the last turn; fork has the next one go on in a copy.
	session string
	fork    bool

	mu    sync.Mutex
	asked []inrun.Tool
	ends  []inrun.Outcome
}

func newAgent(t *testing.T, name string) *agent {
	t.Helper()
	a := &agent{t: t, cli: cli(t, name), home: t.TempDir(), dir: t.TempDir()}
	write(t, filepath.Join(a.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"sessionRetention":{"enabled":false}}}`)
	write(t, filepath.Join(a.home, "policy.toml"), inrun.GeminiPolicy)
	write(t, filepath.Join(a.home, ".grok", "requirements.toml"), made(t, provider.GrokRequirements, ""))
	write(t, filepath.Join(a.home, ".codex", "config.toml"), "")
	write(t, filepath.Join(a.home, "tmp", "here"), "")
	return a
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// made is a file of settings.
func made(t *testing.T, with func(string) (string, error), own string) string {
	t.Helper()
	text, err := with(own)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// exists says whether the agent made a file in its directory.
func (a *agent) exists(name string) bool {
	_, err := os.Stat(filepath.Join(a.dir, name))
	return err == nil
}

// how returns the arguments and the conversation of the CLI's channel.
func (a *agent) how(ask inrun.Ask) (args []string, drive inrun.Drive) {
	const prompt = "go"
	switch a.cli.Name {
	case "claude":
		args, drive = inrun.ClaudeArgs(), inrun.Claude([]byte(prompt), ask)
		if a.session != "" {
			args = append(args, "--resume", a.session)
		}
		if a.fork {
			args = append(args, "--fork-session")
		}
	case "codex":
		args = inrun.CodexArgs(a.dir)
		drive = inrun.Codex(inrun.CodexStart{Prompt: prompt, Dir: a.dir, Sandbox: "workspace-write", Session: a.session, Fork: a.fork}, ask)
	case "gemini":
		args = inrun.GeminiArgs(filepath.Join(a.home, "policy.toml"))
		if err := inrun.GeminiKeep(a.home, a.session); a.session != "" && err != nil {
			a.t.Fatal(err)
		}
		drive = inrun.ACP(inrun.ACPStart{Host: "gemini", Prompt: prompt, Dir: a.dir, Session: a.session}, ask)
	case "grok":
		args = inrun.GrokArgs(canary.GrokModel)
		drive = inrun.ACP(inrun.ACPStart{Host: "grok", Prompt: prompt, Dir: a.dir, Session: a.session}, ask)
	}
	return args, drive
}

// turn runs one turn through a script and returns what the model was told, and
// the log.
func (a *agent) turn(verdict func(inrun.Tool) inrun.Verdict, steps ...canary.Step) (told []string, log string, err error) {
	a.t.Helper()
	m, err := canary.Start(steps...)
	if err != nil {
		a.t.Fatal(err)
	}
	defer m.Close()
	args, drive := a.how(func(_ context.Context, t inrun.Tool) inrun.Verdict {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asked = append(a.asked, t)
		v := verdict(t)
		v.Ended = func(o inrun.Outcome) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.ends = append(a.ends, o)
		}
		return v
	})
	point, env, err := a.cli.Point(m, a.home)
	if err != nil {
		a.t.Fatal(err)
	}
	switch a.cli.Name {
	case "codex":
		args = append(args, point...)
	case "grok": // sessions are kept in its home, so it is the same for every turn
		home := filepath.Join(a.home, ".grok")
		write(a.t, filepath.Join(home, "config.toml"), made(a.t, provider.GrokConfig, m.GrokSettings()))
		env = append(env, "GROK_HOME="+home)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, a.cli.Program, args...)
	cmd.Dir = a.dir
	cmd.Env = append(canary.Clean(os.Environ()), append(env, "HOME="+a.home, "TMPDIR="+filepath.Join(a.home, "tmp"))...)
	// Gemini CLI starts itself again as a child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var errs, lines bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	if err = drive(ctx, in, out, &lines); err != nil {
		cancel()
	}
	_, _ = io.Copy(io.Discard, out) // until it ends
	_ = cmd.Wait()                  // it was told to end, by its input or by the context
	a.t.Logf("%s: %v\n%s\n%s\nthe model was told: %q %q\nit was offered %q", a.cli.Name, err, lines.String(), errs.String(), m.Results(), cut(m.Prompts()), m.Offered())
	a.note(lines.String())
	return append(m.Results(), m.Prompts()...), lines.String(), err
}

// note takes the session from the log.
func (a *agent) note(log string) {
	for line := range strings.Lines(log) {
		var l struct {
			Session string `json:"session"`
			Claude  string `json:"session_id"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Session+l.Claude != "" {
			a.session = l.Session + l.Claude
		}
	}
}

func yes(inrun.Tool) inrun.Verdict { return inrun.Verdict{Answer: inrun.Run} }

func no(inrun.Tool) inrun.Verdict { return inrun.Verdict{Why: "the test forbids it"} }

func said(told []string, words string) bool { return strings.Contains(strings.Join(told, "\n"), words) }

// cut shortens what hosts tell their models at every start.
func cut(prompts []string) (out []string) {
	for _, p := range prompts {
		out = append(out, p[:min(len(p), 200)])
	}
	return out
}
