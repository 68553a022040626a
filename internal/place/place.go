package place

import (
	"errors"
	"os"
	"path/filepath"
)

// Place is where one gate lives.
type Place struct {
	// Home holds everything below.
	Home string
}

// Find returns the place of this user's gate. A home that is given wins over
// GATEHOUSE_HOME, which wins over the user's data directory.
func Find(home string) (Place, error) {
	if home == "" {
		home = os.Getenv("GATEHOUSE_HOME")
	}
	if home == "" {
		base := os.Getenv("XDG_DATA_HOME")
		if base == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return Place{}, errors.New("where is home? set GATEHOUSE_HOME, or HOME")
			}
			base = filepath.Join(user, ".local", "share")
		}
		home = filepath.Join(base, "gatehouse")
	}
	abs, err := filepath.Abs(home)
	return Place{Home: abs}, err
}

// Socket is the unix socket of the daemon.
func (p Place) Socket() string {
	if p.Home == SystemHome {
		return SystemSocket
	}
	return filepath.Join(p.Home, "gatehouse.sock")
}

// Where the gate lives that is a service of its own user. Its data is nobody
// else's business; its socket is for everyone.
const (
	SystemHome   = "/var/lib/gatehouse"
	SystemSocket = "/run/gatehouse/gatehouse.sock"
)

// Reach returns the place of the gate that a client talks to: the one it is
// told of, the user's own if that is there, or else the system's.
func Reach(home string) (Place, error) {
	own, err := Find(home)
	if err != nil || home != "" || os.Getenv("GATEHOUSE_HOME") != "" {
		return own, err
	}
	if _, err := os.Lstat(own.Socket()); err == nil {
		return own, nil
	}
	if _, err := os.Lstat(SystemSocket); err == nil {
		return Place{Home: SystemHome}, nil
	}
	return own, nil
}

// Keys is the directory of the gate's keys.
func (p Place) Keys() string { return filepath.Join(p.Home, "keys") }

// PublicKey is the key that verifies the log's checkpoints; it is no secret.
func (p Place) PublicKey() string { return filepath.Join(p.Home, "log.pub") }

// Checkpoints is a copy of all checkpoints that were signed.
func (p Place) Checkpoints() string { return filepath.Join(p.Home, "checkpoints") }

// LastUp notes how the gate was started last.
func (p Place) LastUp() string { return filepath.Join(p.Home, "up.json") }

// Policy is the user's policy file.
func (p Place) Policy() string { return filepath.Join(p.Home, "policy.toml") }

// Elements is the directory of elements.
func (p Place) Elements() string { return filepath.Join(p.Home, "elements") }

// Knowledge is the directory of the user's own files about programs.
func (p Place) Knowledge() string { return filepath.Join(p.Home, "knowledge") }

// Dispatch is where the gate keeps what agent CLIs that it starts need: their
// homes, the operator's files for them, private clones.
func (p Place) Dispatch() string { return filepath.Join(p.Home, "dispatch") }

// Jobs is where the output of dispatched agents is kept.
func (p Place) Jobs() string { return filepath.Join(p.Home, "jobs") }

// AgentSettings are the files and folders in which agents' hooks are written,
// relative to a home, a project or /etc. Package connect writes them, and no
// agent may.
var AgentSettings = []string{
	".claude/settings.json", ".claude/settings.local.json", "claude-code/managed-settings.json", "claude-code/managed-settings.d",
	".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json", "gemini-cli/settings.json",
	".grok/hooks", ".grok/config.toml", ".vibe/hooks.toml", ".cursor/hooks.json", ".copilot/hooks", ".github/hooks",
	".codeium/windsurf/hooks.json", ".windsurf/hooks.json",
}

// MachinePolicy is the administrator's policy file.
const MachinePolicy = "/etc/gatehouse/policy.toml"

// ProjectPolicy is the name of a project's policy file, and ProjectTools that
// of its declarations of tools, in its root.
const (
	ProjectPolicy = ".gatehouse.toml"
	ProjectTools  = ".gatehouse.tools.yaml"
)

// Tools is the file of declarations of tools that lies beside a policy file.
func Tools(policy string) string { return filepath.Join(filepath.Dir(policy), "tools.yaml") }

// Changes is where runs of this user leave what they changed, until a person
// takes it over. It is the user's own, whoever the gate runs as.
func Changes() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("where is home? set XDG_STATE_HOME, or HOME")
		}
		base = filepath.Join(user, ".local", "state")
	}
	return filepath.Abs(filepath.Join(base, "gatehouse", "changes"))
}

// AgentHome is the home that an agent has when it is run confined.
func AgentHome(agent string) (string, error) {
	changes, err := Changes()
	return filepath.Join(filepath.Dir(changes), "agents", agent), err
}
