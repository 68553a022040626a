package declare_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, wants := range map[string][]string{
		"gatehouse: 2\n":                                                                                               {"gatehouse: 1"},
		"gatehouse: 1\ntols: []\n":                                                                                     {`line 2: unknown key "tols"`, `did you mean "tools"`},
		"gatehouse: 1\ntools: [{name: a, polcy: {}}]\n":                                                                {`unknown key "polcy"`, `"policy"`},
		"gatehouse: 1\ntools: [{name: a b}]\n":                                                                         {"tool a b", "a name is"},
		"gatehouse: 1\ntools: [{name: a}, {name: a}]\n":                                                                {"declared twice"},
		"gatehouse: 1\ntools: [{name: a, policy: {risk: x}}]\n":                                                        {"no risk"},
		"gatehouse: 1\ntools: [{name: a, policy: {network: everything}}]\n":                                            {"line 2", "no stance"},
		"gatehouse: 1\ntools: [{name: a, policy: {filesystem: {read: all}}}]\n":                                        {"filesystem.read", "/**"},
		"gatehouse: 1\ntools: [{name: a, policy: {filesystem: {write: [\"/a/[\"]}}}]\n":                                {"filesystem.write"},
		"gatehouse: 1\ntools: [{name: a, policy: {environment: [\"A B\"], exec: [\"../sh\"], network: [\"a b\"]}}]\n":  {"environment", "exec", "network"},
		"gatehouse: 1\ntools: [{name: a, arguments: {path: reed}}]\n":                                                  {"no role"},
		"gatehouse: 1\ntools: [{name: a, arguments: {\"a[0]\": read}}]\n":                                              {"a key is like"},
		"gatehouse: 1\ntools: [{name: a, command: [rm]}]\n":                                                            {"must allow exec"},
		"gatehouse: 1\ntools: [{name: a, parts: [bb]}]\n":                                                              {`"bb"`},
		"gatehouse: 1\ntools: [{name: fetch}, {name: b, constraints: {onlyAfter: [fecth]}}]\n":                         {`"fecth"`, `did you mean "fetch"`},
		"gatehouse: 1\ntools: [{name: a, constraints: {forbidden: true, forceAtStep: 1}}]\n":                           {"contradict"},
		"gatehouse: 1\ntools: [{name: a, constraints: {forceAtStep: 1}}, {name: b, constraints: {forceAtStep: 1}}]\n":  {"forced for a already"},
		"gatehouse: 1\ntools: [{name: a, constraints: {onlyAfter: [a]}}]\n":                                            {"after itself"},
		"gatehouse: 1\ntools: [{name: a, constraints: {onlyAfter: [b]}}, {name: b, constraints: {onlyAfter: [a]}}]\n":  {"leads back"},
		"gatehouse: 1\ntools: [{name: a, constraints: {onlyAfter: [b]}}, {name: b, constraints: {forbidden: true}}]\n": {"b, which is forbidden"},
		"gatehouse: 1\ntools: [{name: a, constraints: {onlyAfter: [b], forceAtStep: 1}}, {name: b}]\n":                 {"forced at step 1"},
		"gatehouse: 1\ntools: [{name: a, constraints: {maxInvocations: -1}}]\n":                                        {"negative"},
		"gatehouse: 1\ntools: [{name: a}]\nagents: [{name: x, tools: [a], grants: {allow: [a], confirm: [a]}}]\n":      {"both allowed and confirmed", "confirmWith"},
		"gatehouse: 1\ntools: [{name: a}, {name: b}]\nagents: [{name: x, tools: [a, b], grants: {allow: [a]}}]\n":      {"b is used and not granted"},
		"gatehouse: 1\ntools: [{name: a}]\nagents: [{name: x, tools: [b], approvals: [c]}]\n":                          {`tools names "b"`, `approvals names "c"`},
		"gatehouse: 1\n---\ngatehouse: 1\n":                                                                            {"more than one"},
		"gatehouse: 1\ntools: &a [*a]\n":                                                                               {"not read"},
	} {
		_, err := declare.Parse([]byte(text))
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v lacks %q", text, err, want)
			}
		}
	}
}

func TestZeroValues(t *testing.T) {
	t.Parallel()
	var p declare.Policy
	if p.Declared() || p.Grants() || p.Risk != declare.Unknown {
		t.Error("the zero policy says something")
	}
	if declare.Unknown.Rank() <= declare.Critical.Rank() {
		t.Error("an unknown risk must rank highest")
	}
	if declare.Only().Mode() != declare.ModeNone {
		t.Error("an empty list must be none")
	}
}

// stance draws a stance of a side.
func stance(side declare.Side) *rapid.Generator[declare.Stance] {
	items := map[declare.Side][]string{
		declare.Read: {"/a/**", "/a/b/**", "/a/*", "/**", "./x", "~/y/**"}, declare.Network: {"a.example", "*.example", "*.example:443", "10.0.0.0/8:5432"},
		declare.Environment: {"LANG", "GIT_*", "GIT_DIR"}, declare.Exec: {"git", "make", "/usr/bin/git"},
	}
	list := items[side]
	if side == declare.Write {
		list = items[declare.Read]
	}
	return rapid.Custom(func(t *rapid.T) declare.Stance {
		switch rapid.IntRange(0, 5).Draw(t, "mode") {
		case 0:
			return declare.Stance{}
		case 1:
			return declare.None
		case 2:
			if side == declare.Network || side == declare.Exec {
				return declare.All
			}
		}
		return declare.Only(rapid.SliceOfN(rapid.SampledFrom(list), 1, 3).Draw(t, "items")...)
	})
}

// TestCoversIsAnOrder: reflexive, transitive, and bounded by none and
// unspecified.
func TestCoversIsAnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom(declare.Sides()).Draw(t, "side")
		a, b, c := stance(side).Draw(t, "a"), stance(side).Draw(t, "b"), stance(side).Draw(t, "c")
		if !declare.Covers(side, a, a) {
			t.Errorf("%v does not cover itself", a)
		}
		if !declare.Covers(side, a, declare.None) || !declare.Covers(side, declare.Stance{}, a) {
			t.Errorf("%v is outside the bounds", a)
		}
		if declare.Covers(side, a, b) && declare.Covers(side, b, c) && !declare.Covers(side, a, c) {
			t.Errorf("%v ⊇ %v ⊇ %v, but not the first the last", a, b, c)
		}
	})
}

func TestStanceReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := stance(rapid.SampledFrom(declare.Sides()).Draw(t, "side")).Draw(t, "stance")
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back declare.Stance
		if err := json.Unmarshal(text, &back); err != nil || !back.Equal(s) {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	})
	for _, bad := range []string{`null`, `7`, `"some"`, `{"mode":"none"}`, `[1]`} {
		var s declare.Stance
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s was read as %v", bad, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("gatehouse: 1\ntools: [{name: a, policy: {risk: low, exec: [git]}, arguments: {\"a[].b\": read}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := declare.Parse([]byte(text))
		if err == nil && set.Check() != nil {
			t.Error("a set that was read does not pass its own check")
		}
	})
}
