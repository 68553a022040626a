package dispatch

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Version says which program a CLI is.
type Version struct {
	CLI       string `json:"cli"`
	Installed bool   `json:"installed"`
	Path      string `json:"path,omitzero"`
	SHA256    string `json:"sha256,omitzero"`
	Version   string `json:"version,omitzero"`
	Error     string `json:"error,omitzero"`
	provider.Look
	// Gated says that every tool call of a run is decided, and Held that a run
	// could not reach the gate's own files: it runs as the gate's own user.
	Gated bool `json:"gated"`
	Held  bool `json:"held"`
}

// versions asks the installed CLIs for their versions, each in an empty
// environment and a directory with nothing in it.
func (s *Service) versions(ctx context.Context) (out []Version) {
	for _, cli := range call.CLIs() {
		v := Version{CLI: cli, Gated: s.gated()}
		if files, extra, err := s.template(cli); err == nil {
			v.Look = provider.LookAt(cli, s.opts.UserHome, s.opts.Env, files, extra)
		}
		p, err := s.programs.find(provider.Program(cli), s.opts.Env("PATH"))
		if err != nil {
			v.Error = err.Error()
			out = append(out, v)
			continue
		}
		v.Installed, v.Path, v.SHA256 = true, p.path, p.sum
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		cmd := exec.CommandContext(limited, p.path, "--version")
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + s.opts.Env("PATH"), "HOME=" + filepath.Join(s.opts.Dir, "homes", "none")}
		cmd.WaitDelay = time.Second
		text, err := cmd.Output()
		cancel()
		if v.Version = strings.TrimSpace(string(text)); err != nil {
			v.Error = "it does not say its version"
		}
		out = append(out, v)
	}
	return out
}

// gated says whether the policy has every tool call decided, for whoever asks.
func (s *Service) gated() bool {
	snap, _ := s.opts.Policy(&call.Call{Kind: call.Dispatch})
	return snap != nil && snap.Settings.Dispatch.CLIEffects != policy.EffectsClassic
}
