package provider

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Look is how a CLI stands with its user, found out by reading.
type Look struct {
	// Login says where its login comes from: the name of a variable, a file, or
	// "" for none.
	Login string `json:"login"`
	// SessionLogging is on or off, "" where a CLI always keeps its sessions.
	SessionLogging string `json:"sessionLogging,omitzero"`
	// Isolation says whose settings count.
	Isolation string `json:"isolation"`
	// Channel is how its tool calls are asked about.
	Channel string `json:"channel"`
	// NextActions are for the operator to do.
	NextActions []string `json:"next_actions,omitzero"`
}

// LookAt finds out how a CLI stands. Files are what the operator has put into
// its home, extra the variables.
func LookAt(cli, userHome string, env func(string) string, files map[string]string, extra []string) Look {
	a := adapters[cli]
	l := Look{Channel: a.channel, Isolation: "a home of the gate's own; neither the user's settings nor a repository's count"}
	for _, name := range a.env {
		secret := strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN")
		if secret && (env(name) != "" || has(extra, name)) {
			l.Login = name
		}
	}
	for _, file := range a.login {
		if _, err := os.Stat(filepath.Join(userHome, file[0])); l.Login == "" && userHome != "" && err == nil {
			l.Login = "~/" + file[0]
		}
	}
	if l.Login == "" && len(extra) > 0 {
		l.Login = "the operator's " + cli + ".env"
	}
	if l.Login == "" {
		l.NextActions = append(l.NextActions, "log in with "+Program(cli)+" as the gate's user, or give the gate "+strings.Join(secrets(a.env), " or "))
	}
	if cli == "mistral" {
		vibeLogging(&l, userHome, files)
	}
	return l
}

func has(env []string, name string) bool {
	for _, kv := range env {
		if strings.HasPrefix(kv, name+"=") {
			return true
		}
	}
	return false
}

func secrets(names []string) (out []string) {
	for _, n := range names {
		if strings.HasSuffix(n, "_KEY") || strings.HasSuffix(n, "_TOKEN") {
			out = append(out, n)
		}
	}
	return out
}

// vibeLogging finds out whether Vibe keeps its sessions, which it does unless it
// is told not to. Without them none can be gone on with, and no tokens are known.
func vibeLogging(l *Look, userHome string, files map[string]string) {
	l.SessionLogging = "on"
	own, err := os.ReadFile(filepath.Join(userHome, ".vibe", "config.toml"))
	if err != nil {
		own = nil // there is none, and then the default counts
	}
	for _, c := range []struct{ name, text string }{{"the operator's .vibe/config.toml", files[".vibe/config.toml"]}, {"~/.vibe/config.toml", string(own)}} {
		var config struct {
			Logging struct {
				Enabled *bool `toml:"enabled"`
			} `toml:"session_logging"`
		}
		if toml.Unmarshal([]byte(c.text), &config) == nil && config.Logging.Enabled != nil && !*config.Logging.Enabled {
			l.SessionLogging = "off"
			l.NextActions = append(l.NextActions, "set [session_logging] enabled = true in "+c.name+": without it no session can be resumed and no tokens are counted")
		}
	}
}
