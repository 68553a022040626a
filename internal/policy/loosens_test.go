package policy_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// TestI10LooseningIsComputed is the promise of Loosens: where it reports
// nothing, no call whatsoever is decided less strictly than before.
func TestI10LooseningIsComputed(t *testing.T) {
	t.Parallel()
	proven := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawPools(t)
		f := p.file(t)
		f.Isolation = "container" // else the autonomous profile denies everything
		f.Profile = rapid.SampledFrom([]string{"supervised", "autonomous", "mine", "mine", "mine"}).Draw(t, "in use")
		old := compile(t, []policy.Layer{{Scope: policy.ScopeUser, File: f}})
		for range 5 {
			edited := compile(t, []policy.Layer{{Scope: policy.ScopeUser, File: p.edit(t, f)}})
			if len(policy.Loosens(old, edited)) > 0 {
				continue
			}
			proven++
			for range 3 {
				asStrict(t, old, edited, drawInput(t))
			}
			sweep(t, func(in *policy.Input) { asStrict(t, old, edited, in) })
		}
	})
	if proven < 10 {
		t.Errorf("only %d pairs were compared; the generator no longer makes files that are close", proven)
	}
}

// TestI10Layers is the same over whole stacks of layers.
func TestI10Layers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		old := compile(t, layers)
		if len(layers) == 0 {
			t.Skip("nothing to edit")
		}
		edited := append([]policy.Layer(nil), layers...)
		l := &edited[rapid.IntRange(0, len(edited)-1).Draw(t, "layer")]
		l.File = allPools.edit(t, l.File)
		new := compile(t, edited)
		if len(policy.Loosens(old, new)) > 0 {
			return
		}
		for range 10 {
			asStrict(t, old, new, drawInput(t))
		}
	})
}

// asStrict decides one call under both policies.
func asStrict(t *rapid.T, old, new *policy.Snapshot, in *policy.Input) {
	a, b := old.Decide(in, nil), new.Decide(in, nil)
	if a.Level.StricterThan(b.Level) {
		t.Fatalf("nothing loosens, yet %s becomes %s\nbefore: %s\nafter: %s", a.Level, b.Level, a.Why(), b.Why())
	}
	if len(a.Requires) > len(b.Requires) {
		t.Fatal("nothing loosens, yet a guarantee is gone")
	}
}

// TestLoosensIsReflexive: a policy never loosens itself, however it is laid
// out; else every reload would be staged.
func TestLoosensIsReflexive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t)
		s := compile(t, layers)
		again := compile(t, rapid.Permutation(layers).Draw(t, "layers"))
		if changes := policy.Loosens(s, again); len(changes) > 0 {
			t.Fatalf("a policy loosens itself: %v", changes)
		}
	})
}

const ruleText = "[[rules]]\nname = \"r\"\nreason = \"because\"\n"
const mineText = "profile = \"mine\"\n[profiles.mine]\nbase = \"supervised\"\n[profiles.mine.capabilities]\n"

var loosenTests = []struct {
	name     string
	old, new string
	want     string // what is loosened, "" for nothing
}{
	{"nothing changes", "", "", ""},
	{"stricter risk", "", "[risk]\nconfirm_at = 10", ""},
	{"looser risk", "", "[risk]\nconfirm_at = 80", "risk.confirm_at"},
	{"denying later", "[risk]\ndeny_at = 70", "[risk]\ndeny_at = 90", "risk.deny_at"},
	{"denying never", "[risk]\ndeny_at = 70", "[risk]\ndeny_at = 0", "risk.deny_at"},
	{"irreversible", "", "[risk]\nirreversible = \"CONFIRM_SESSION\"", "risk.irreversible"},
	{"stricter", "", "[danger]\nstrictness = \"maximum\"", ""},
	{"less strict", "[danger]\nstrictness = \"elevated\"", "[danger]\nstrictness = \"minimal\"", "danger.strictness"},
	{"more tolerant", "", "[autonomy]\nrisk_tolerance = \"aggressive\"", "autonomy.risk_tolerance"},
	{"less tolerant", "", "[autonomy]\nrisk_tolerance = \"conservative\"\nmax_steps = 3", ""},
	{"more steps", "", "[autonomy]\nmax_steps = 11", "autonomy.max_steps"},
	{"observing", "", "mode = \"observe\"", "mode"},
	{"a longer life", "", "[limits]\ngrant_life = \"1h\"", "limits.grant_life"},
	{"a shorter life", "", "[limits]\ngrant_life = \"1s\"", ""},
	{"stating an isolation", "", "isolation = \"vm\"", "isolation"},
	{"unattended", "", "attendance = \"unattended\"", ""},
	{"attended again", "attendance = \"unattended\"", "", "attendance"},
	{"the host may ask", "", "[hosts.claude]\nhost_ask = true", "hosts.claude.host_ask"},
	{"the host may not ask", "", "[hosts.claude]\nhost_ask = false", ""},
	{"storing a field again", "[redact]\nfields = [\"pin\"]", "", "redact.fields"},
	{"a notice more", "", "[[notify]]\nkind = \"desktop\"", "notify"},
	{"an operation freed", "[operations]\n\"*_element\" = \"DENY\"", "[operations]\ncreate_element = \"DENY\"", "operations.import_element"},
	{"an operation by another name", "[operations]\nsearch = \"DENY\"", "[operations]\n\"search_elements\" = \"DENY\"", ""},
	{"a rule more", "", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", ""},
	{"a rule less", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", "", "rules.r"},
	{"a wider rule", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", ruleText + "command = \"r*\"\nlevel = \"DENY\"", ""},
	{"a narrower rule", ruleText + "command = \"r*\"\nlevel = \"DENY\"", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", "rules.r"},
	{"a weaker rule", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", ruleText + "command = \"rm *\"\nlevel = \"CONFIRM_SESSION\"", "rules.r"},
	{"the same tree in other words", ruleText + "path = \"/{a,b}/**\"\nlevel = \"DENY\"", ruleText + "path = \"/{b,a}/**\"\nlevel = \"DENY\"", ""},
	{"a wider tree", ruleText + "path = \"./src/**\"\nlevel = \"DENY\"", ruleText + "path = \"./**\"\nlevel = \"DENY\"", ""},
	{"the same place by another spelling", ruleText + "path = \"/[e]tc/passwd\"\nlevel = \"DENY\"", ruleText + "path = \"/etc/**\"\nlevel = \"DENY\"", "rules.r"},
	{"a tree out of a glob", mineText + "\"fs.write:/e*/**\" = \"AUTO_APPROVE\"", mineText + "\"fs.write:/etc/**\" = \"AUTO_APPROVE\"", "fs.write:/etc/**"},
	{"an approval in place of a denial", ruleText + "command = \"rm *\"\nlevel = \"DENY\"", ruleText + "command = \"rm *\"\nlevel = \"AUTO_APPROVE\"", "rules.r"},
	{"a wider host", ruleText + "host = \"a.example.com:443\"\nlevel = \"DENY\"", ruleText + "host = \"*.example.com:*\"\nlevel = \"DENY\"", ""},
	{"another host", ruleText + "host = \"a.example.com\"\nlevel = \"DENY\"", ruleText + "host = \"b.example.com\"\nlevel = \"DENY\"", "rules.r"},
	{"a longer taint", "", "[limits]\ntaint_life = \"24h\"", ""},
	{"a shorter taint", "", "[limits]\ntaint_life = \"1h\"", "limits.taint_life"},
	{"more restore points", "", "[limits]\nrestore_points = 600\nrestore_total_mib = 2048", ""},
	{"fewer restore points", "", "[limits]\nrestore_points = 10", "limits.restore_points"},
	{"smaller restore points", "", "[limits]\nrestore_point_mib = 1", "limits.restore_point_mib"},
	{"restore points for a shorter time", "", "[limits]\nrestore_age = \"1h\"", "limits.restore_age"},
	{"an approval more", "", ruleText + "path = \"./src/**\"\nlevel = \"AUTO_APPROVE\"", "rules.r"},
	{"an approval less", ruleText + "path = \"./src/**\"\nlevel = \"AUTO_APPROVE\"", "", ""},
	{"a narrower approval", ruleText + "path = \"./**\"\nlevel = \"AUTO_APPROVE\"", ruleText + "path = \"./src/**\"\nlevel = \"AUTO_APPROVE\"", ""},
	{"a wider approval", ruleText + "path = \"./src/**\"\nlevel = \"AUTO_APPROVE\"", ruleText + "path = \"./**\"\nlevel = \"AUTO_APPROVE\"", "rules.r"},
	{"approving to the letter", ruleText + "command = \"make *\"\nlevel = \"AUTO_APPROVE\"", ruleText + "command = \"make all\"\nlevel = \"AUTO_APPROVE\"", "rules.r"},
	{"a stricter profile", "", mineText + "\"net.egress\" = \"DENY\"", ""},
	{"back to the stricter one", mineText + "\"fs.write:./src/**\" = \"AUTO_APPROVE\"", "", ""},
	{"a scope freed", "", mineText + "\"fs.write:./src/**\" = \"AUTO_APPROVE\"", "fs.write:./src/**"},
	{"a wider scope freed", mineText + "\"fs.write:./src/**\" = \"AUTO_APPROVE\"", mineText + "\"fs.write:./**\" = \"AUTO_APPROVE\"", "fs.write:./**"},
	{"a narrower scope freed", mineText + "\"fs.write:./**\" = \"AUTO_APPROVE\"", mineText + "\"fs.write:./src/**\" = \"AUTO_APPROVE\"", ""},
	{"a scope closed", "", mineText + "\"fs.read:~/.ssh/**\" = \"DENY\"", ""},
	{"a scope no longer closed", mineText + "\"fs.read:~/.ssh/**\" = \"DENY\"", "", "fs.read:~/.ssh/**"},
	{"a program no longer asked about", mineText + "\"proc.exec:git\" = \"CONFIRM_SINGLE_USE\"", "", "proc.exec:git"},
	{"a command class", "", "profile = \"mine\"\n[profiles.mine]\nbase = \"supervised\"\n[profiles.mine.classes]\nunknown = \"CONFIRM_SESSION\"", "classes.unknown"},
	{"autonomous without isolation", "", "profile = \"autonomous\"", ""},
	{"autonomous with isolation", "isolation = \"vm\"", "isolation = \"vm\"\nprofile = \"autonomous\"", "fs.write:./**"},
	{"out of confinement", "isolation = \"vm\"\nprofile = \"autonomous\"", "isolation = \"vm\"\n" + "profile = \"mine\"\n[profiles.mine]\nbase = \"supervised\"\n[profiles.mine.capabilities]\n\"net.egress\" = \"DENY\"\n[profiles.mine.classes]\nnetwork = \"DENY\"", "requires_isolation"},
	{"a further implication", "", "[capabilities.\"secrets.access\"]\npaths = [\"**/.env\"]", ""},
	{"an implication that makes known", "", "[capabilities.\"fs.read\"]\ntools = [\"mcp__*\"]", "capabilities.fs.read"},
	{"an implication less", "[capabilities.\"secrets.access\"]\npaths = [\"**/.env\"]", "", "capabilities.secrets.access"},
}

func TestLoosens(t *testing.T) {
	t.Parallel()
	for _, tt := range loosenTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changes := policy.Loosens(user(t, tt.old), user(t, tt.new))
			var settings []string
			for _, c := range changes {
				settings = append(settings, c.Setting)
			}
			switch {
			case tt.want == "" && len(changes) > 0:
				t.Errorf("loosens %v", changes)
			case tt.want != "" && !strings.Contains(strings.Join(settings, " "), tt.want):
				t.Errorf("loosens %v, want %s", changes, tt.want)
			}
		})
	}
	if got := policy.Loosens(nil, policy.Default()); len(got) != 1 {
		t.Errorf("from nothing to something loosens %v", got)
	}
	if got := policy.Loosens(policy.Default(), nil); len(got) != 0 {
		t.Errorf("from something to nothing loosens %v", got)
	}
}

// user compiles a user's file; the version is added.
func user(t *testing.T, text string) *policy.Snapshot {
	t.Helper()
	return layered(t, options, layer{scope: policy.ScopeUser, text: text})
}

// layer is a layer as a test writes it.
type layer struct {
	scope   policy.Scope
	text    string
	trusted bool
}

func layered(t *testing.T, opts policy.Options, layers ...layer) *policy.Snapshot {
	t.Helper()
	var all []policy.Layer
	for _, l := range layers {
		f, err := policy.Parse(l.scope.String()+".toml", []byte("version = 1\n"+l.text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, policy.Layer{Scope: l.scope, File: f, Trusted: l.trusted})
	}
	s, err := policy.Compile(all, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
