package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// autoCalls are calls on the way to AUTO_APPROVE.
func autoCalls(tb testing.TB) map[string]*policy.Input {
	tb.Helper()
	input := func(c call.Call, f facts.Facts) *policy.Input {
		c.Surface, c.Principal = "test", call.Principal{Agent: "a", Session: "s"}
		if err := c.Normalize(); err != nil {
			tb.Fatal(err)
		}
		return &policy.Input{Call: &c, Facts: &f, Digest: c.Digest()}
	}
	return map[string]*policy.Input{
		"native read": input(call.Call{Kind: call.Native, Operation: "get_element", ElementType: "skill"}, facts.Facts{}),
		"safe command": input(call.Call{Kind: call.External, Operation: "Bash", Dir: "/w"}, facts.Facts{
			Workspace: "/w", Class: "safe", Commands: []string{"git log", "head"},
			Needs: []call.Need{
				{Capability: call.ProcExec, Scope: "/usr/bin/git log"}, {Capability: call.ProcExec, Scope: "/usr/bin/head"},
				{Capability: call.FSRead, Scope: "./.git/**", Inside: true}, {Capability: call.FSRead, Scope: "/w/src/a.go", Inside: true},
			},
		}),
		"file read": input(call.Call{Kind: call.External, Operation: "Read", Dir: "/w"}, facts.Facts{
			Workspace: "/w", Needs: []call.Need{{Capability: call.FSRead, Scope: "./src/a.go", Inside: true}},
		}),
	}
}

// TestDecideAllocatesNothing holds for the built-in policy and for one with
// rules and scopes that are compared with the call.
func TestDecideAllocatesNothing(t *testing.T) {
	// Not parallel: allocations are counted for the whole process.
	f, err := policy.Parse("starter.toml", policy.Starter())
	if err != nil {
		t.Fatal(err)
	}
	f.Profile = "mine"
	starter, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, options)
	if err != nil {
		t.Fatal(err)
	}
	for policyName, s := range map[string]*policy.Snapshot{"default": policy.Default(), "starter": starter} {
		for name, in := range autoCalls(t) {
			buf := new(policy.Buffer)
			if d := s.Decide(in, buf); d.Level != call.AutoApprove {
				t.Errorf("%s under %s: %s: %s", name, policyName, d.Level, d.Why())
			}
			if n := testing.AllocsPerRun(100, func() { s.Decide(in, buf) }); n != 0 {
				t.Errorf("%s under %s allocates %v times", name, policyName, n)
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	s := policy.Default()
	for name, in := range autoCalls(b) {
		b.Run(name, func(b *testing.B) {
			buf := new(policy.Buffer)
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(in, buf)
			}
		})
	}
}

// BenchmarkElements compares a thousand active elements, half of which name
// the operation, with ten.
func BenchmarkElements(b *testing.B) {
	set := func(n int) *element.Set {
		var elements []element.Element
		for i := range n {
			e := element.Element{Type: "skill", Name: fmt.Sprintf("s%04d", i)}
			if i%2 == 0 {
				e.Lists.Allow = []string{"create_element"}
			}
			elements = append(elements, e)
		}
		return element.Compile(elements)
	}
	s, buf := policy.Default(), new(policy.Buffer)
	c := call.Call{Kind: call.Native, Operation: "create_element", Surface: "test", Principal: call.Principal{Agent: "a", Session: "s"}}
	if err := c.Normalize(); err != nil {
		b.Fatal(err)
	}
	perCall := make(map[int]float64)
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := &policy.Input{Call: &c, Facts: new(facts.Facts), Digest: c.Digest(), Elements: set(n)}
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(in, buf)
			}
			perCall[n] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if few := perCall[10]; n > 10 && few > 0 {
				b.ReportMetric(perCall[n]/few, "ratio-to-10")
			}
		})
	}
}

// BenchmarkTwentyElements compares a decision with twenty active elements,
// each with lists and patterns, with one that meets none. The two take turns,
// so that whatever else the machine does is in both.
func BenchmarkTwentyElements(b *testing.B) {
	var elements []element.Element
	for i := range 20 {
		elements = append(elements, element.Element{
			Type: "skill", Name: fmt.Sprintf("s%02d", i),
			Lists: element.Lists{Allow: []string{"get_*"}, Confirm: []string{"edit_element"}, Deny: []string{"delete_element"}},
			External: element.External{
				Deny:    []string{fmt.Sprintf("Bash:rm%d *", i), fmt.Sprintf("Write:/etc/%d/*", i), fmt.Sprintf("Bash:*--force%d*", i)},
				Confirm: []string{fmt.Sprintf("Bash:git push%d*", i), fmt.Sprintf("Read:/secret/%d*", i)},
			},
		})
	}
	set, s := element.Compile(elements), policy.Default()
	for name, in := range autoCalls(b) {
		b.Run(name, func(b *testing.B) {
			with := *in
			with.Elements = set
			buf := new(policy.Buffer)
			if d := s.Decide(&with, buf); d.Level != call.AutoApprove {
				b.Fatalf("%s: %s", d.Level, d.Why())
			}
			var none, some time.Duration
			const turn = 200
			n := 0
			for b.Loop() {
				start := time.Now()
				for range turn {
					s.Decide(in, buf)
				}
				middle := time.Now()
				for range turn {
					s.Decide(&with, buf)
				}
				none, some = none+middle.Sub(start), some+time.Since(middle)
				n += turn
			}
			b.ReportMetric(float64(some.Nanoseconds())/float64(n), "ns/decision")
			b.ReportMetric(float64(some)/float64(none), "ratio-to-none")
		})
	}
}
