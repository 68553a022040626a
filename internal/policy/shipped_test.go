package policy_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/policies"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

func TestStarter(t *testing.T) {
	t.Parallel()
	f, err := policy.Parse("starter.toml", policy.Starter())
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, options)
	if err != nil {
		t.Fatal(err)
	}
	if changes := policy.Loosens(policy.Default(), s); len(changes) > 0 {
		t.Errorf("the starting policy loosens the default: %v", changes)
	}
	if diff := cmp.Diff(policy.Default().Settings.Profile, s.Settings.Profile); diff != "" {
		t.Error(diff)
	}
	results := s.RunTests(f, nil)
	if len(results) == 0 {
		t.Error("the starting policy tests nothing")
	}
	for _, r := range results {
		if !r.OK() {
			t.Errorf("%s: %s: %s, want %s: %s%s", r.Source, r.Name, r.Got, r.Want, r.Why, r.Problem)
		}
	}
}

// TestStarterSuggestions takes the comment signs off the suggestions: what is
// suggested must work.
func TestStarterSuggestions(t *testing.T) {
	t.Parallel()
	var out []string
	for line := range strings.Lines(string(policy.Starter())) {
		line = strings.TrimRight(line, "\n")
		text, commented := strings.CutPrefix(line, "# ")
		_, _, assigns := strings.Cut(text, " = ")
		if commented && (assigns && !strings.Contains(text, ":") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "url = ") || strings.HasPrefix(text, "matches = ") || strings.HasPrefix(text, "misses = ")) {
			line = text
		}
		out = append(out, line)
	}
	text := strings.Join(out, "\n")
	if strings.Count(text, "\n#") >= strings.Count(string(policy.Starter()), "\n#") {
		t.Fatal("nothing was uncommented")
	}
	f, err := policy.Parse("starter.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Notify) != 2 || len(f.Capabilities) != 1 || len(f.Operations) != 1 || len(f.Rules) != 4 {
		t.Errorf("%d notices, %d capabilities, %d operations, %d rules", len(f.Notify), len(f.Capabilities), len(f.Operations), len(f.Rules))
	}
}

// asJSON turns a TOML file into what a JSON Schema validates.
func asJSON(t *testing.T, data []byte) any {
	t.Helper()
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schema, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(asJSON(t, policy.Starter())); err != nil {
		t.Errorf("the starting policy: %v", err)
	}
	for _, f := range policies.Profiles() {
		if err := resolved.Validate(asJSON(t, f.Data)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	for _, bad := range []string{
		"", "version = 2", "version = 1\nprofil = \"x\"", "version = 1\nmode = \"x\"", "version = 1\n[risk]\nirreversible = \"NO\"",
		"version = 1\n[[rules]]\nname = \"a\"\nlevel = \"DENY\"", "version = 1\n[operations]\nclear = \"AUTO_APPROVE\"", "version = 1\n[hosts.x]",
		"version = 1\n[limits]\ngrant_life = \"soon\"", "version = 1\nadjustable = [\"all\"]", "version = 1\n[[tests]]\nname = \"t\"\nlevel = \"DENY\"\nclass = \"x\"",
	} {
		if err := resolved.Validate(asJSON(t, []byte(bad))); err == nil {
			t.Errorf("%q validates", bad)
		}
	}
	described(t, "", schema)
}

// described holds that an editor can say something about every key.
func described(t *testing.T, path string, s *jsonschema.Schema) {
	t.Helper()
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("%s.%s has no description", path, name)
		}
		described(t, path+"."+name, p)
	}
	described(t, path+"[]", s.Items)
	if s.AdditionalProperties != nil {
		described(t, path+".*", s.AdditionalProperties)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := layered(t, options,
		layer{scope: policy.ScopeMachine, text: "adjustable = [\"limits\"]\n[operations]\nclear = \"DENY\""},
		layer{scope: policy.ScopeUser, text: "mode = \"observe\"\n[limits]\nasks_per_hour = 90\n[redact]\nfields = [\"pin\"]\n[capabilities.\"data.x\"]\nsentence = \"use x\"\nfields = [\"x\"]"},
		layer{scope: policy.ScopeProject, text: "[[rules]]\nname = \"no-env\"\npath = \"**/.env\"\nreason = \"keys\"\nlevel = \"DENY\""},
	)
	got := s.Explain().String()
	// The hash and the lines of the built-in profile change with its file.
	var kept []string
	for line := range strings.Lines(got) {
		if !strings.Contains(line, "built-in supervised.toml") && !strings.HasPrefix(line, "policy ") {
			kept = append(kept, line)
		}
	}
	golden(t, "explain.txt", strings.Join(kept, ""))
	text, err := json.Marshal(s.Explain())
	if err != nil || !strings.Contains(string(text), `"ignored":[{"file":"user.toml","line":2`) {
		t.Errorf("as JSON: %v\n%s", err, text)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}

func TestRunTests(t *testing.T) {
	t.Parallel()
	f, err := policy.Parse("t.toml", []byte(`version = 1
[[tests]]
name = "native"
operation = "get_element"
level = "AUTO_APPROVE"
[[tests]]
name = "analysed"
command = "ls"
level = "AUTO_APPROVE"
[[tests]]
name = "not as wanted"
command = "touch a"
class = "mutating"
needs = ["fs.write:./a"]
level = "DENY"
[[tests]]
name = "not analysable"
command = "???"
level = "DENY"
`))
	if err != nil {
		t.Fatal(err)
	}
	analyse := func(command string) (*facts.Facts, error) {
		if command == "ls" {
			return &facts.Facts{Class: "safe"}, nil
		}
		return nil, errors.New("no command")
	}
	s := policy.Default()
	var got []string
	for _, r := range s.RunTests(f, analyse) {
		state := "fails"
		if r.OK() {
			state = "passes"
		}
		got = append(got, strings.Join([]string{r.Source, r.Name, state, r.Got.String(), r.Problem}, "|"))
	}
	want := []string{
		"t.toml:2|native|passes|AUTO_APPROVE|", "t.toml:6|analysed|passes|AUTO_APPROVE|",
		"t.toml:10|not as wanted|fails|CONFIRM_SESSION|", "t.toml:16|not analysable|fails|DENY|no command",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if r := s.RunTests(f, nil)[1]; r.OK() || r.Problem == "" || r.Got != call.Deny {
		t.Errorf("without analysis: %+v", r)
	}
}
