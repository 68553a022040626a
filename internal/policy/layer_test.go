package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

func TestDefault(t *testing.T) {
	t.Parallel()
	want := policy.Settings{
		Profile: "supervised", Isolation: "none", RiskConfirmAt: 61, Irreversible: call.ConfirmSingleUse,
		PendingPerSession: 5, PendingPerPrincipal: 20, AsksPerHour: 60,
		RequestLife: 15 * time.Minute, GrantLife: 2 * time.Minute, SessionGrantLife: 12 * time.Hour, TaintLife: 12 * time.Hour,
		RestorePointMiB: 64, RestoreTotalMiB: 1024, RestorePoints: 500, RestoreAge: 14 * 24 * time.Hour,
		Strictness: "standard", RiskTolerance: "moderate", MaxSteps: 10,
		Dispatch: policy.DispatchSettings{
			Profile: "hardened", Policy: "balanced", Over: "deny", CLIEffects: "gated", MaxRunning: 32, MaxRunningPerCLI: 16, MaxQueued: 128,
		},
		Cache:        policy.CacheSettings{TTL: 5 * time.Minute},
		Capabilities: map[call.Capability]policy.CapabilityDef{},
	}
	s := policy.Default()
	if diff := cmp.Diff(want, s.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if s.Hash.IsZero() || len(s.Ignored) > 0 {
		t.Errorf("hash %s, ignored %v", s.Hash, s.Ignored)
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	const (
		session, project, user, machine = policy.ScopeSession, policy.ScopeProject, policy.ScopeUser, policy.ScopeMachine
	)
	asks := func(s *policy.Snapshot) any { return s.Settings.AsksPerHour }
	profile := func(s *policy.Snapshot) any { return s.Settings.Profile }
	observe := func(s *policy.Snapshot) any { return s.Settings.Observe }
	isolation := func(s *policy.Snapshot) any { return s.Settings.Isolation }
	rules := func(s *policy.Snapshot) any { return len(s.Explain().Rules) }
	const allow = "[[rules]]\nname = \"a\"\nreason = \"r\"\nlevel = \"AUTO_APPROVE\"\npath = \"./**\"\n"
	const block = "[[rules]]\nname = \"d\"\nreason = \"r\"\nlevel = \"DENY\"\npath = \"./**\"\n"
	const strict = "profile = \"strict\"\n[profiles.strict]\nbase = \"supervised\"\n[profiles.strict.capabilities]\n\"net.egress\" = \"DENY\"\n"
	const loose = "profile = \"loose\"\n[profiles.loose]\nbase = \"supervised\"\n[profiles.loose.capabilities]\n\"fs.write\" = \"AUTO_APPROVE\"\n\"net.egress\" = \"DENY\"\n"
	tests := []struct {
		name    string
		opts    policy.Options
		layers  []layer
		got     func(*policy.Snapshot) any
		want    any
		ignored []string
	}{
		{"the user owns the defaults", options, []layer{{user, "[limits]\nasks_per_hour = 100", false}}, asks, 100, nil},
		{"unless there is a machine's file", options, []layer{{machine, "", false}, {user, "[limits]\nasks_per_hour = 100", false}}, asks, 60, []string{"user.toml:3:1: limits.asks_per_hour stays as it is (the user layer may not loosen this)"}},
		{"tightening is free", options, []layer{{machine, "", false}, {user, "[limits]\nasks_per_hour = 10", false}, {session, "[limits]\nasks_per_hour = 5", false}}, asks, 5, nil},
		{"adjustable", options, []layer{{machine, "adjustable = [\"limits.asks_per_hour\"]", false}, {user, "[limits]\nasks_per_hour = 100", false}}, asks, 100, nil},
		{"adjustable as a group", options, []layer{{machine, "adjustable = [\"limits\"]", false}, {user, "[limits]\nasks_per_hour = 100", false}}, asks, 100, nil},
		{"adjustable is not handed on by itself", options, []layer{{machine, "adjustable = [\"limits\"]", false}, {user, "", false}, {project, "[limits]\nasks_per_hour = 100", true}}, asks, 60, []string{"project.toml:3:1: limits.asks_per_hour stays as it is (the project layer may not loosen this)"}},
		{"adjustable handed on", options, []layer{{machine, "adjustable = [\"limits\"]", false}, {user, "adjustable = [\"limits.asks_per_hour\"]", false}, {project, "[limits]\nasks_per_hour = 100", true}}, asks, 100, nil},
		{"nobody hands on what they have not", options, []layer{{machine, "", false}, {user, "adjustable = [\"limits\"]", false}, {project, "[limits]\nasks_per_hour = 100", true}}, asks, 60, []string{"project.toml:3:1: limits.asks_per_hour stays as it is (the project layer may not loosen this)", "user.toml:2:1: the user layer may not make limits adjustable"}},
		{"a project is not trusted", options, []layer{{user, "adjustable = [\"limits\"]", false}, {project, "[limits]\nasks_per_hour = 100", false}}, asks, 60, []string{"project.toml:3:1: limits.asks_per_hour stays as it is (a project's file loosens nothing until it is trusted)"}},
		{"a project alone", options, []layer{{project, "mode = \"observe\"", true}}, observe, false, []string{"project.toml:2:1: mode stays as it is (the project layer may not loosen this)"}},
		{"a session alone", options, []layer{{session, "mode = \"observe\"", true}}, observe, false, []string{"session.toml:2:1: mode stays as it is (the session layer may not loosen this)"}},
		{"a user may observe", options, []layer{{user, "mode = \"observe\"", false}}, observe, true, nil},
		{"a project may enforce", options, []layer{{user, "mode = \"observe\"", false}, {project, "mode = \"enforce\"", false}}, observe, false, nil},
		{"a stricter profile", options, []layer{{user, "", false}, {project, strict, false}}, profile, "strict", nil},
		{"a looser profile", options, []layer{{user, "", false}, {project, loose, false}}, profile, "supervised + loose", []string{"project.toml:2:1: the profile loose would loosen fs.write (a project's file loosens nothing until it is trusted)"}},
		{"a looser profile by right", options, []layer{{user, "adjustable = [\"profile\"]", false}, {project, loose, true}}, profile, "loose", nil},
		{"a profile of the layer above", options, []layer{{machine, "adjustable = [\"profile\"]\n" + strings.TrimPrefix(loose, "profile = \"loose\"\n"), false}, {user, "profile = \"loose\"", false}}, profile, "loose", nil},
		{"a name means what its layer says", options, []layer{{user, loose, false}, {project, strings.ReplaceAll(strict, "strict", "loose"), false}}, profile, "loose", nil},
		{"a project cannot make everything stop", options, []layer{{user, "", false}, {project, "profile = \"autonomous\"", false}}, profile, "supervised", []string{"project.toml:2:1: the profile autonomous is left out: agents do not run isolated here (a project's file loosens nothing until it is trusted)"}},
		{"approving takes the right", options, []layer{{user, "", false}, {project, allow, true}}, rules, 0, []string{"project.toml:2:3: the rule \"a\" would approve what is asked about (the project layer may not loosen this)"}},
		{"approving by right", options, []layer{{user, "adjustable = [\"rules\"]", false}, {project, allow, true}}, rules, 1, nil},
		{"objecting is free", options, []layer{{user, allow, false}, {project, block, false}}, rules, 2, nil},
		{"the operator states an isolation", policy.Options{Isolation: "vm"}, []layer{{user, "profile = \"autonomous\"", false}}, isolation, "vm", nil},
		{"above the user's file", policy.Options{Isolation: "none"}, []layer{{user, "isolation = \"vm\"", false}}, isolation, "none", []string{"user.toml:2:1: isolation stays as it is (the user layer may not loosen this)"}},
		{"below the machine's", policy.Options{Isolation: "vm"}, []layer{{machine, "isolation = \"none\"", false}}, isolation, "none", nil},
		{"a host's prompt", options, []layer{{user, "", false}, {project, "[hosts.claude]\nhost_ask = true", true}}, func(s *policy.Snapshot) any { return len(s.Settings.HostAsk) }, 0, []string{"project.toml:3:1: host_ask of claude stays as it is (the project layer may not loosen this)"}},
		{"no host's prompt", options, []layer{{user, "[hosts.claude]\nhost_ask = true", false}, {project, "[hosts.claude]\nhost_ask = false", false}}, func(s *policy.Snapshot) any { return s.Settings.HostAsk["claude"] }, false, nil},
		{"a notice elsewhere", options, []layer{{user, "", false}, {project, "[[notify]]\nkind = \"webhook\"\nurl = \"https://x.example\"", true}}, func(s *policy.Snapshot) any { return len(s.Settings.Notify) }, 0, []string{"project.toml:2:3: notices to https://x.example are not sent (the project layer may not loosen this)"}},
		{"an implication that makes known", options, []layer{{user, "", false}, {project, "[capabilities.\"fs.read\"]\ntools = [\"mcp__*\"]", false}}, func(s *policy.Snapshot) any { return len(s.Settings.Capabilities["fs.read"].Tools) }, 0, []string{"project.toml:2:15: fs.read would make more calls known, and so easier (a project's file loosens nothing until it is trusted)"}},
		{"an implication that tightens", options, []layer{{user, "", false}, {project, "[capabilities.\"secrets.access\"]\npaths = [\"**/key\"]", false}}, func(s *policy.Snapshot) any { return len(s.Settings.Capabilities["secrets.access"].Paths) }, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := layered(t, tt.opts, tt.layers...)
			if got := tt.got(s); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			var ignored []string
			for _, p := range s.Ignored {
				ignored = append(ignored, p.String())
			}
			if diff := cmp.Diff(tt.ignored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	peer := func(name, text string) policy.Layer {
		f, err := policy.Parse(name, []byte("version = 1\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		return policy.Layer{Scope: policy.ScopeUser, File: f}
	}
	s, err := policy.Compile([]policy.Layer{
		peer("a.toml", "mode = \"observe\"\n[limits]\nasks_per_hour = 100"), peer("b.toml", "[limits]\nasks_per_hour = 30\n[risk]\nconfirm_at = 99"),
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Settings; got.AsksPerHour != 30 || !got.Observe || got.RiskConfirmAt != 99 {
		t.Errorf("peers merge to %+v", got)
	}
}

func TestCompileProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		opts       policy.Options
		want       string
	}{
		{"unknown profile", "profile = \"superwised\"", options, `user.toml:2:1: unknown profile "superwised" (did you mean "supervised"?)`},
		{"unknown base", "profile = \"a\"\n[profiles.a]\nbase = \"b\"", options, `user.toml:4:1: unknown profile "b" (did you mean "a"?)`},
		{"a circle", "profile = \"a\"\n[profiles.a]\nbase = \"b\"\n[profiles.b]\nbase = \"a\"", options, `user.toml:6:1: the profile "a" is based on itself`},
		{"no home", "[[rules]]\nname = \"a\"\nreason = \"r\"\nlevel = \"DENY\"\npath = \"~/x\"", policy.Options{}, `user.toml:6:1: path pattern "~/x": "~" needs a home directory`},
		{"operator", "", policy.Options{Isolation: "jail"}, `command line: isolation cannot be "jail" (use one of none, container, vm)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := policy.Parse("user.toml", []byte("version = 1\n"+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, tt.opts)
			if err == nil || s != nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestHash holds that the hash is about what a policy says, not about where.
func TestHash(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"mode = \"enforce\"", "# a comment\n\nmode = \"enforce\""},
		{"", "[risk]\nconfirm_at = 61"},
		{"[redact]\nfields = [\"a\", \"b\"]", "[redact]\nfields = [\"b\", \"a\", \"b\"]"},
	}
	for _, pair := range same {
		if user(t, pair[0]).Hash != user(t, pair[1]).Hash {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
	different := []string{
		"", "mode = \"observe\"", "[risk]\nconfirm_at = 60", "[operations]\ncreate_element = \"DENY\"", "profile = \"autonomous\"",
		"[[rules]]\nname = \"a\"\nreason = \"r\"\nlevel = \"DENY\"\npath = \"./x\"", "[[rules]]\nname = \"a\"\nreason = \"s\"\nlevel = \"DENY\"\npath = \"./x\"",
		"[hosts.claude]\nhost_ask = false", "[[notify]]\nkind = \"desktop\"", "isolation = \"vm\"",
	}
	seen := make(map[call.Digest]string)
	for _, text := range different {
		h := user(t, text).Hash
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have the same hash", text, other)
		}
		seen[h] = text
	}
}
