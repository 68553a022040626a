package canary

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CLI is an agent's command line program.
type CLI struct {
	// Name is claude, codex, gemini, grok or copilot.
	Name string
	// Program is the file to run.
	Program string
}

// Names lists the CLIs that can be driven.
func Names() []string { return []string{"claude", "codex", "gemini", "grok", "copilot"} }

// Find looks for a CLI on the path.
func Find(name string) (CLI, error) {
	program, err := exec.LookPath(name)
	return CLI{Name: name, Program: program}, err
}

// Run says how a CLI is run.
type Run struct {
	// Dir is the working directory.
	Dir string
	// Home, if set, is the home whose settings count instead of the user's.
	Home string
	// Reckless turns the CLI's own questions off, so that only a hook stands
	// between the model and the machine.
	Reckless bool
	// Args and Env are added to the command line and the environment.
	Args, Env []string
}

// Result is what came of a run.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// Command makes the command that runs the CLI against a model.
func (c CLI) Command(ctx context.Context, m *Model, r Run) (*exec.Cmd, error) {
	home := r.Home
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return nil, err
		}
	}
	args, env, err := c.arrange(m, home, r.Reckless)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, c.Program, append(args, r.Args...)...)
	cmd.Dir = r.Dir
	cmd.Env = append(Clean(os.Environ()), append(append(env, "HOME="+home), r.Env...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

// Run runs the CLI until it ends.
func (c CLI) Run(ctx context.Context, m *Model, r Run) (Result, error) {
	cmd, err := c.Command(ctx, m, r)
	if err != nil {
		return Result{}, err
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	result := Result{Stdout: out.String(), Stderr: errs.String(), Exit: -1}
	if cmd.ProcessState != nil {
		result.Exit = cmd.ProcessState.ExitCode()
	}
	if _, exited := err.(*exec.ExitError); exited && ctx.Err() == nil {
		err = nil // how it ended is in the result
	}
	return result, err
}

// Clean drops what would lead a CLI to another model, account or agent's own
// surroundings.
func Clean(env []string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch prefix, _, _ := strings.Cut(name, "_"); prefix {
		case "ANTHROPIC", "CLAUDE", "CLAUDECODE", "OPENAI", "CODEX", "GEMINI", "GOOGLE", "GROK", "XAI", "COPILOT", "GITHUB", "GH":
			continue
		}
		out = append(out, kv)
	}
	return out
}

// arrange returns the arguments and variables of a run against a model.
func (c CLI) arrange(m *Model, home string, reckless bool) (args, env []string, err error) {
	point, env, err := c.Point(m, home)
	if err != nil {
		return nil, nil, err
	}
	switch c.Name {
	case "claude":
		args = []string{"-p", "go", "--output-format", "json"}
		if reckless {
			// As root it refuses to, unless it believes itself in a sandbox.
			args, env = append(args, "--permission-mode", "bypassPermissions"), append(env, "IS_SANDBOX=1")
		}
	case "codex":
		args = append([]string{"exec", "--json", "--skip-git-repo-check"}, point...)
		if reckless {
			args = append(args, "--dangerously-bypass-approvals-and-sandbox")
		}
		args = append(args, "go")
	case "gemini":
		args = []string{"-p", "go", "-o", "json"}
		if reckless {
			args = append(args, "--approval-mode", "yolo")
		}
	case "grok":
		args = []string{"-p", "go", "-m", GrokModel, "--output-format", "json"}
		if reckless {
			args = append(args, "--always-approve")
		}
	case "copilot":
		args = []string{"-p", "go", "--output-format", "json", "--no-auto-update", "--no-color"}
		if reckless {
			args = append(args, "--allow-all")
		}
	}
	return args, env, nil
}

// GrokModel is the name under which Grok finds the model.
const GrokModel = "scripted"

// Point returns the arguments and variables that lead a CLI to the model, with
// the settings of a home, whatever else it is told.
func (c CLI) Point(m *Model, home string) (args, env []string, err error) {
	switch c.Name {
	case "claude":
		env = []string{
			"ANTHROPIC_BASE_URL=" + m.url, "ANTHROPIC_API_KEY=scripted", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
			"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CONFIG_DIR=" + filepath.Join(home, ".claude"),
		}
	case "codex":
		env = []string{"CODEX_HOME=" + filepath.Join(home, ".codex"), "SCRIPTED_KEY=scripted"}
		args = []string{
			"-c", `model="scripted"`, "-c", `model_provider="scripted"`,
			"-c", fmt.Sprintf(`model_providers.scripted={name="scripted",base_url="%s/v1",env_key="SCRIPTED_KEY",wire_api="responses"}`, m.url),
		}
	case "gemini":
		env = []string{"GEMINI_API_KEY=scripted", "GOOGLE_GEMINI_BASE_URL=" + m.url, "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_HOME=" + home}
	case "grok":
		shadow, err := shadowGrok(m, home)
		if err != nil {
			return nil, nil, err
		}
		env = []string{"GROK_HOME=" + shadow, "SCRIPTED_KEY=scripted"}
	case "copilot":
		env = []string{
			"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_BASE_URL=" + m.url,
			"COPILOT_PROVIDER_API_KEY=scripted", "COPILOT_MODEL=scripted", "COPILOT_HOME=" + filepath.Join(home, ".copilot"),
		}
	default:
		return nil, nil, fmt.Errorf("%s cannot be driven by a scripted model", c.Name)
	}
	return args, env, nil
}

// GrokSettings are what Grok's settings say about the model.
func (m *Model) GrokSettings() string {
	return fmt.Sprintf("\n[model.%s]\nmodel = \"scripted\"\nbase_url = \"%s/v1\"\nenv_key = \"SCRIPTED_KEY\"\napi_backend = \"messages\"\n", GrokModel, m.url)
}

// shadowGrok makes a folder of settings that is the person's own, by links,
// but for one more model: Grok takes models from its settings alone. The model
// removes it when it is closed.
func shadowGrok(m *Model, home string) (string, error) {
	real := filepath.Join(home, ".grok")
	shadow, err := os.MkdirTemp("", "grok-")
	if err != nil {
		return "", err
	}
	m.later(func() error { return os.RemoveAll(shadow) })
	entries, err := os.ReadDir(real)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	for _, e := range entries {
		if e.Name() == "config.toml" || strings.HasSuffix(e.Name(), ".sock") {
			continue
		}
		if err := os.Symlink(filepath.Join(real, e.Name()), filepath.Join(shadow, e.Name())); err != nil {
			return "", err
		}
	}
	config, err := os.ReadFile(filepath.Join(real, "config.toml"))
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	config = append(config, m.GrokSettings()...)
	return shadow, os.WriteFile(filepath.Join(shadow, "config.toml"), config, 0o600)
}
