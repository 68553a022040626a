package dispatch_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestDoctorCoversCLIs: doctor tells of each CLI whether it is installed, its
// version, login and isolation, whether its tool calls are decided, and what to
// do where Vibe does not keep its sessions.
func TestDoctorCoversCLIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "mistral", vibeStandIn(t))
	file := filepath.Join(h.Home, "dispatch", "cli", "mistral", ".vibe", "config.toml")
	write(t, file, "[session_logging]\nenabled = false\n")
	out, _ := h.command("doctor", "--json", "--no-canary")
	var findings []struct {
		Name, State, Holds string
		Next               []string `json:"next_actions"`
		CLI                *struct {
			CLI, Version, Login, Isolation, Channel string
			Logging                                 string `json:"sessionLogging"`
			Installed, Gated, Held                  bool
		} `json:"cli"`
	}
	if err := json.Unmarshal([]byte(out), &findings, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := map[string]bool{}
	for _, f := range findings {
		if f.CLI == nil {
			continue
		}
		seen[f.CLI.CLI] = true
		if f.CLI.Channel == "" || f.CLI.Isolation == "" || !f.CLI.Gated || f.CLI.Held {
			t.Errorf("%+v", f.CLI)
		}
		if f.CLI.CLI != "mistral" {
			continue
		}
		if !f.CLI.Installed || !strings.Contains(f.CLI.Version, "vibe") || f.CLI.Logging != "off" || f.Holds != "advisory" || f.State != "warn" {
			t.Errorf("%+v %+v", f, f.CLI)
		}
		if len(f.Next) != 1 || !strings.Contains(f.Next[0], "session_logging") {
			t.Errorf("next_actions: %q", f.Next)
		}
	}
	if len(seen) != 5 {
		t.Errorf("doctor tells of %v\n%s", seen, out)
	}
}
