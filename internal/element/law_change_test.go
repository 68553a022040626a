package element_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

var externalPatterns = []string{
	"Bash:git *", "Bash:git push*", "Bash:make*", "Bash:*", "Bash:rm *", "Edit:./src/*", "Write:*", "Read:/etc/*", "WebFetch:*", "WebFetch:*example.com*", "mcp__*", "Bash", "*",
}

func drawExternal(t *rapid.T) element.Element {
	e := drawElement(t)
	list := rapid.SliceOfN(rapid.SampledFrom(externalPatterns), 0, 2)
	e.External = element.External{
		Deny: list.Draw(t, "denyPatterns"), Confirm: list.Draw(t, "confirmPatterns"), Allow: list.Draw(t, "allowPatterns"), Only: list.Draw(t, "only"),
		Require: rapid.SliceOfN(rapid.SampledFrom([]string{"moderate", "dangerous"}), 0, 1).Draw(t, "require"),
		Scope:   rapid.SampledFrom([]string{"", "", "single", "tool_session"}).Draw(t, "scope"), Life: rapid.SampledFrom([]int{0, 0, 30, 600}).Draw(t, "life"),
	}
	return e
}

// sample is a call of a host's tool with its facts.
type sample struct {
	call  *call.Call
	facts *facts.Facts
	reads bool
}

var samples = func() []sample {
	var out []sample
	for _, s := range []struct{ tool, args string }{
		{"Bash", `{"command":"git status"}`}, {"Bash", `{"command":"git push origin"}`}, {"Bash", `{"command":"make; rm -rf x"}`}, {"Bash", `{"command":"make all"}`},
		{"Bash", `{"command":"$X push"}`}, {"Bash", `{"command":"curl https://example.com/x"}`}, {"Bash", `{"command":"cat /etc/shadow > src/x"}`}, {"Bash", `{"command":"if"}`},
		{"Edit", `{"file_path":"src/a.go"}`}, {"Write", `{"file_path":"/etc/passwd"}`}, {"Read", `{"file_path":"/etc/hosts"}`}, {"Read", `{"file_path":"a"}`},
		{"WebFetch", `{"url":"https://example.com/"}`}, {"mcp__a__b", `{"x":1}`}, {"TodoWrite", `{}`},
	} {
		c := &call.Call{Kind: call.External, Operation: s.tool, Args: []byte(s.args), Dir: "/w"}
		if err := c.Normalize(); err != nil {
			panic(err)
		}
		out = append(out, sample{c, facts.Extract(c, nil, &facts.Options{}), s.tool == "Read"})
	}
	return out
}()

func externalLevel(s *element.Set, x *sample) call.Level {
	level := call.AutoApprove
	for _, v := range s.External(x.call, x.facts, x.reads) {
		level = call.Join(level, v.Level)
	}
	return level
}

// lasting says whether an answer for the session would meet all the votes.
func lasting(votes []call.Vote) bool {
	return !slices.ContainsFunc(votes, func(v call.Vote) bool { return v.Level != call.ConfirmSession })
}

func drawSet(t *rapid.T, label string) []element.Element {
	return rapid.SliceOfNDistinct(rapid.Custom(drawExternal), 0, 4, func(e element.Element) string { return e.ID() }).Draw(t, label)
}

// TestExternalOrderNeverMatters is I2 for patterns.
func TestExternalOrderNeverMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		elements := drawSet(t, "elements")
		a, b := element.Compile(elements), element.Compile(rapid.Permutation(elements).Draw(t, "shuffled"))
		for i := range samples {
			x := &samples[i]
			if diff := cmp.Diff(a.External(x.call, x.facts, x.reads), b.External(x.call, x.facts, x.reads)); diff != "" {
				t.Fatalf("%s %s: %s", x.call.Operation, x.call.Args, diff)
			}
			if a.AllowsExternal(x.call, x.facts) != b.AllowsExternal(x.call, x.facts) {
				t.Fatalf("%s %s: allowed in one order only", x.call.Operation, x.call.Args)
			}
		}
	})
}

// TestAddingLowersByAllowAlone is I3: an element without an allow lowers
// nothing, native or external, and speaks for nothing.
func TestAddingLowersByAllowAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		elements := drawSet(t, "elements")
		extra := drawExternal(t)
		extra.Name, extra.Lists.Allow, extra.External.Allow = "extra", nil, nil
		before, after := element.Compile(elements), element.Compile(append(elements[:len(elements):len(elements)], extra))
		for _, op := range call.Operations() {
			for _, typ := range []string{"", "skill", "agent"} {
				if a, b := before.Resolve(op.Name, typ, true).Level, after.Resolve(op.Name, typ, true).Level; a.StricterThan(b) {
					t.Fatalf("%s of %q goes from %s to %s", op.Name, typ, a, b)
				}
			}
		}
		for i := range samples {
			x := &samples[i]
			if a, b := externalLevel(before, x), externalLevel(after, x); a.StricterThan(b) {
				t.Fatalf("%s %s goes from %s to %s", x.call.Operation, x.call.Args, a, b)
			}
			if after.AllowsExternal(x.call, x.facts) && !before.AllowsExternal(x.call, x.facts) {
				t.Fatalf("%s %s is allowed", x.call.Operation, x.call.Args)
			}
		}
	})
}

// TestLoosensIsSound: a change that is said to loosen nothing lowers no level,
// leaves every question in place and lets elements speak for nothing new.
// Whatever it calls loosening needs no proof.
func TestLoosensIsSound(t *testing.T) {
	t.Parallel()
	free := 0
	rapid.Check(t, func(t *rapid.T) {
		before := drawSet(t, "before")
		var after []element.Element
		if rapid.Bool().Draw(t, "a small change") && len(before) > 0 {
			e := drawExternal(t)
			after = element.Apply(before, &element.Change{Add: []element.Element{e}})
			if rapid.Bool().Draw(t, "remove") {
				after = element.Apply(after, &element.Change{Remove: []string{before[0].ID()}})
			}
		} else {
			after = drawSet(t, "after")
		}
		if element.Loosens(before, after) != nil {
			return
		}
		free++
		a, b := element.Compile(before), element.Compile(after)
		for _, op := range call.Operations() {
			for _, typ := range append(call.ElementTypes(), "") {
				if x, y := a.Resolve(op.Name, typ, true), b.Resolve(op.Name, typ, true); x.Level.StricterThan(y.Level) {
					t.Fatalf("%s of %q goes from %s to %s", op.Name, typ, x.Level, y.Level)
				}
			}
		}
		if u, v := a.Terms(), b.Terms(); u.Once && !v.Once || u.Life > 0 && v.Bound(u.Life+1) > u.Life {
			t.Fatalf("answers count for longer: %+v, then %+v", u, v)
		}
		for i := range samples {
			x := &samples[i]
			if u, v := externalLevel(a, x), externalLevel(b, x); u.StricterThan(v) {
				t.Fatalf("%s %s goes from %s to %s", x.call.Operation, x.call.Args, u, v)
			}
			if asks := b.External(x.call, x.facts, x.reads); lasting(asks) && !lasting(a.External(x.call, x.facts, x.reads)) {
				t.Fatalf("%s %s: the elements' questions can be answered for the session now: %v", x.call.Operation, x.call.Args, asks)
			}
			if b.AllowsExternal(x.call, x.facts) && !a.AllowsExternal(x.call, x.facts) {
				t.Fatalf("%s %s is allowed now", x.call.Operation, x.call.Args)
			}
		}
	})
	t.Logf("%d changes loosened nothing", free)
	if free == 0 {
		t.Error("no change was free: the test says nothing")
	}
}

// TestLoosensNothingAndSomething: the ordinary changes.
func TestLoosensNothingAndSomething(t *testing.T) {
	t.Parallel()
	one := func(l element.Lists, x element.External) []element.Element {
		return []element.Element{{Type: "skill", Name: "s", Lists: l, External: x}}
	}
	tests := []struct {
		name          string
		before, after []element.Element
		loosens       bool
	}{
		{"nothing", nil, nil, false},
		{"an element without a policy", nil, one(element.Lists{}, element.External{}), false},
		{"a deny comes", nil, one(element.Lists{Deny: []string{"clear"}}, element.External{}), false},
		{"a deny goes", one(element.Lists{Deny: []string{"clear"}}, element.External{}), nil, true},
		{"a confirm goes that asked nothing new", one(element.Lists{Confirm: []string{"create_element"}}, element.External{}), nil, true},
		{"an allow comes", nil, one(element.Lists{Allow: []string{"create_element"}}, element.External{}), true},
		{"an allow of a read comes", nil, one(element.Lists{Allow: []string{"get_element"}}, element.External{}), false},
		{"an allow of a pinned operation comes", nil, one(element.Lists{Allow: []string{"delete_element"}}, element.External{}), false},
		{"an allow goes", one(element.Lists{Allow: []string{"create_element"}}, element.External{}), nil, false},
		{"a wider deny pattern", one(element.Lists{}, element.External{Deny: []string{"Bash:git push*"}}), one(element.Lists{}, element.External{Deny: []string{"Bash:git *"}}), false},
		{"a narrower deny pattern", one(element.Lists{}, element.External{Deny: []string{"Bash:git *"}}), one(element.Lists{}, element.External{Deny: []string{"Bash:git push*"}}), true},
		{"a deny pattern becomes a question", one(element.Lists{}, element.External{Deny: []string{"Bash:git *"}}), one(element.Lists{}, element.External{Confirm: []string{"Bash:git *"}}), true},
		{"the list of what may be used goes", one(element.Lists{}, element.External{Allow: []string{"Bash:make*"}}), nil, true},
		{"a shorter list of tools", one(element.Lists{}, element.External{Only: []string{"Read", "Edit"}}), one(element.Lists{}, element.External{Only: []string{"Read"}}), false},
		{"a bound on answers comes", nil, one(element.Lists{}, element.External{Scope: "single", Life: 60}), false},
		{"a bound on answers goes", one(element.Lists{}, element.External{Life: 60}), nil, true},
		{"a shorter life", one(element.Lists{}, element.External{Life: 60}), one(element.Lists{}, element.External{Life: 30}), false},
		{"a longer life", one(element.Lists{}, element.External{Life: 60}), one(element.Lists{}, element.External{Life: 61}), true},
		{"single calls no more", one(element.Lists{}, element.External{Scope: "single"}), one(element.Lists{}, element.External{Scope: "tool_session"}), true},
		{"a question may be answered for the session", one(element.Lists{}, element.External{Require: []string{"moderate"}}), one(element.Lists{}, element.External{Require: []string{"moderate"}, Scope: "tool_session"}), true},
		{"and may no more", one(element.Lists{}, element.External{Require: []string{"moderate"}, Scope: "tool_session"}), one(element.Lists{}, element.External{Require: []string{"moderate"}}), false},
		{"out of quarantine", []element.Element{{Type: "skill", Name: "s", Quarantine: "x"}}, one(element.Lists{}, element.External{}), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if ways := element.Loosens(tt.before, tt.after); (len(ways) > 0) != tt.loosens {
				t.Errorf("loosens: %q", ways)
			}
		})
	}
}

// TestChangeApplies: an ensemble takes its members along.
func TestChangeApplies(t *testing.T) {
	t.Parallel()
	list := []element.Element{{Type: "ensemble", Name: "e"}, {Type: "skill", Name: "m", Of: "ensemble/e"}, {Type: "skill", Name: "m"}}
	var ids []string
	for _, e := range element.Apply(list, &element.Change{Remove: []string{"ensemble/e"}}) {
		ids = append(ids, e.ID())
	}
	if got := fmt.Sprint(ids); got != "[skill/m]" {
		t.Error(got)
	}
}

// TestIndexMissesNothing: wherever a pattern fits, the index says so.
func TestIndexMissesNothing(t *testing.T) {
	t.Parallel()
	alphabet := []string{"a", "/", "./", "*", "?", " ", "git", "src", "http", ".com", ":"}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 5).Draw(t, "parts"), "")
		})
		var patterns []string
		for range rapid.IntRange(1, 6).Draw(t, "patterns") {
			tool := rapid.SampledFrom([]string{"Bash", "Read", "Write", "WebFetch", "mcp_a", "*", "B*"}).Draw(t, "tool")
			patterns = append(patterns, tool+":"+word.Draw(t, "pattern"))
		}
		s := element.Compile([]element.Element{{Type: "skill", Name: "s", External: element.External{Deny: patterns}}})
		f := &facts.Facts{Workspace: rapid.SampledFrom([]string{"", "/a", "/a/src"}).Draw(t, "workspace"), Partial: rapid.Bool().Draw(t, "partial")}
		for range rapid.IntRange(0, 3).Draw(t, "commands") {
			f.Commands = append(f.Commands, word.Draw(t, "raw"))
			f.Simple = append(f.Simple, facts.Simple{Text: word.Draw(t, "text"), Sub: rapid.SampledFrom([]string{"", "git a"}).Draw(t, "sub"), Whole: rapid.Bool().Draw(t, "whole")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "needs") {
			scope := rapid.SampledFrom([]string{"", word.Draw(t, "scope"), "./src/a", "./src/**", "/a/**", "/a"}).Draw(t, "which")
			f.Needs = append(f.Needs, call.Need{Capability: rapid.SampledFrom(call.Capabilities()).Draw(t, "capability"), Scope: scope})
		}
		c := &call.Call{Kind: call.External, Operation: rapid.SampledFrom([]string{call.OpShell, call.OpFileRead, call.OpWebFetch, "mcp_a", "x"}).Draw(t, "operation")}
		if s.Fits(c, f) && !s.Hit(c, f) {
			t.Fatalf("%q fit %+v of %s, and the index misses it", patterns, f, c.Operation)
		}
	})
}

// TestPatternReachesTrees: what removes a directory removes what is in it.
func TestPatternReachesTrees(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, command string
		want             call.Level
	}{
		{"Write:/etc/*", "rm -rf /etc", call.Deny},
		{"Write:/etc/ssh/*", "rm -rf /etc", call.ConfirmSingleUse},
		{"Write:/etc/*", "rm -rf /srv", call.AutoApprove},
		{"Write:./src/*", "rm -r src/a", call.Deny},
		{"Write:/w/src/*", "rm -r src/a", call.Deny},
		{"Edit:src/*", "sed -i s/a/b/ src/a", call.Deny},
	}
	for _, tt := range tests {
		c := &call.Call{Kind: call.External, Operation: "Bash", Args: []byte(fmt.Sprintf(`{"command":%q}`, tt.command)), Dir: "/w"}
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		s := element.Compile([]element.Element{{Type: "skill", Name: "s", External: element.External{Deny: []string{tt.pattern}}}})
		x := &sample{c, facts.Extract(c, nil, &facts.Options{}), false}
		if got := externalLevel(s, x); got != tt.want {
			t.Errorf("%s on %q: %s, want %s (needs %v)", tt.pattern, tt.command, got, tt.want, x.facts.Needs)
		}
	}
}
