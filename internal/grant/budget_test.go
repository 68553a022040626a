package grant_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// under is a scope for tests: a prefix that ends in a slash holds all below.
func under(wide, narrow call.Need) bool {
	return wide.Scope == narrow.Scope || strings.HasSuffix(wide.Scope, "/") && strings.HasPrefix(narrow.Scope, wide.Scope)
}

func budget(lines ...grant.Line) *grant.Budget {
	need := call.Need{Capability: call.FSWrite, Scope: "./src/"}
	v := asks(call.ConfirmSession, &need)
	return &grant.Budget{ID: "b", Principal: call.Principal{Agent: "a", Session: "s"}, Votes: []string{v.Key()}, Lines: lines}
}

func asks(level call.Level, n *call.Need) call.Vote {
	return call.Vote{Stage: call.StageSession, Source: "p", Rule: "fs.write", Level: level, Need: n}
}

// TestBudgetDischargesCapabilityVotesOnly is the last half of attack 21.
func TestBudgetDischargesCapabilityVotesOnly(t *testing.T) {
	t.Parallel()
	src := call.Need{Capability: call.FSWrite, Scope: "./src/a"}
	other := call.Need{Capability: call.FSWrite, Scope: "./other"}
	caller := call.Call{Kind: call.External, Principal: call.Principal{Agent: "a", Session: "s"}}
	sub := caller
	sub.Principal.Path = "helper"
	risk := call.Vote{Stage: call.StageRisk, Source: "risk", Rule: "confirm_at", Level: call.ConfirmSession, Need: &src}
	unseen := asks(call.ConfirmSession, &src)
	unseen.Source = "another file"
	tests := []struct {
		name string
		c    call.Call
		d    call.Decision
		v    call.Vote
		want bool
	}{
		{"within", caller, call.Decision{Level: call.ConfirmSession}, asks(call.ConfirmSession, &src), true},
		{"outside", caller, call.Decision{Level: call.ConfirmSession}, asks(call.ConfirmSession, &other), false},
		{"asks for every use", caller, call.Decision{Level: call.ConfirmSingleUse}, asks(call.ConfirmSingleUse, &src), false},
		{"not about a capability", caller, call.Decision{Level: call.ConfirmSession}, risk, false},
		{"a vote nobody was shown", caller, call.Decision{Level: call.ConfirmSession}, unseen, false},
		{"without a scope", caller, call.Decision{Level: call.ConfirmSession}, asks(call.ConfirmSession, &call.Need{Capability: call.FSWrite}), false},
		{"pinned", caller, call.Decision{Level: call.ConfirmSession, Pinned: true}, asks(call.ConfirmSession, &src), false},
		{"code", caller, call.Decision{Level: call.ConfirmSession, TakesCode: true}, asks(call.ConfirmSession, &src), false},
		{"denied", caller, call.Decision{Level: call.Deny}, asks(call.ConfirmSession, &src), false},
		{"a sub-agent with its parent's budget", sub, call.Decision{Level: call.ConfirmSession}, asks(call.ConfirmSession, &src), false},
	}
	for _, tt := range tests {
		b := budget(grant.Line{Need: call.Need{Capability: call.FSWrite, Scope: "./src/"}, Total: 1})
		drawn, open := b.Draw(&tt.c, &tt.d, []call.Vote{tt.v}, under)
		if (drawn == 1) != tt.want || (len(open) == 0) != tt.want || (b.Lines[0].Left() == 0) != tt.want {
			t.Errorf("%s: drawn %d, open %d, left %d", tt.name, drawn, len(open), b.Lines[0].Left())
		}
	}
	b := budget(grant.Line{Need: call.Need{Capability: call.FSWrite, Scope: "./src/"}, Total: 1})
	two := []call.Vote{asks(call.ConfirmSession, &src), asks(call.ConfirmSession, &src)}
	if drawn, open := b.Draw(&caller, &call.Decision{Level: call.ConfirmSession}, two, under); drawn != 1 || len(open) != 1 {
		t.Errorf("one left and two asked: drawn %d, open %d", drawn, len(open))
	}
}

// TestBudgetTreeAddsUp: however a budget is handed on, drawn from and taken
// back, no more than its total is drawn, and in the end what was drawn is what
// the plan's own budget says.
func TestBudgetTreeAddsUp(t *testing.T) {
	t.Parallel()
	need := call.Need{Capability: call.FSWrite, Scope: "./src/"}
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 12).Draw(t, "total")
		all := []*grant.Budget{budget(grant.Line{Need: need, Total: total})}
		open := []bool{true}
		drawn := 0
		narrow := call.Need{Capability: call.FSWrite, Scope: "./src/a"}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
			b := all[i]
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				c := &call.Call{Kind: call.External, Principal: b.Principal}
				n, _ := b.Draw(c, &call.Decision{Level: call.ConfirmSession}, []call.Vote{asks(call.ConfirmSession, &narrow)}, under)
				drawn += n
			case 1:
				if !open[i] {
					continue
				}
				path := strings.TrimPrefix(b.Principal.Path+"/x", "/")
				sub, err := b.Delegate(b.ID+"x", path, []grant.Line{{Need: need, Total: rapid.IntRange(1, 4).Draw(t, "n")}}, under)
				if err == nil {
					sub.ID += strings.Repeat("y", len(all))
					all, open = append(all, sub), append(open, true)
				}
			case 2:
				for j, up := range all {
					if up.ID == b.Parent && open[i] && i > 0 && b.Lines[0].Reserved == 0 {
						if err := all[j].Return(b); err != nil {
							t.Fatal(err)
						}
						open[i] = false
					}
				}
			}
			for _, b := range all {
				if l := b.Lines[0]; l.Left() < 0 || l.Used < 0 || l.Reserved < 0 {
					t.Fatalf("%s has %+v", b.ID, l)
				}
			}
		}
		if drawn > total {
			t.Fatalf("%d were drawn from %d", drawn, total)
		}
		for i := len(all) - 1; i > 0; i-- {
			for _, up := range all {
				if open[i] && up.ID == all[i].Parent {
					if err := up.Return(all[i]); err != nil {
						t.Fatal(err)
					}
					open[i] = false
				}
			}
		}
		if l := all[0].Lines[0]; l.Used != drawn || l.Reserved != 0 {
			t.Fatalf("in the end the plan's budget says %+v, and %d were drawn", l, drawn)
		}
	})
}

// TestDelegatingGivesASubsetOnly: wider, more, sideways and upwards are
// refused, and a refusal reserves nothing.
func TestDelegatingGivesASubsetOnly(t *testing.T) {
	t.Parallel()
	line := func(scope string, n int) []grant.Line {
		return []grant.Line{{Need: call.Need{Capability: call.FSWrite, Scope: scope}, Total: n}}
	}
	tests := []struct {
		name, from, path string
		lines            []grant.Line
		ok               bool
	}{
		{"a part", "", "sub", line("./src/a", 2), true},
		{"all", "", "sub", line("./src/", 3), true},
		{"more", "", "sub", line("./src/", 4), false},
		{"none", "", "sub", line("./src/", 0), false},
		{"less than none", "", "sub", line("./src/", -1), false},
		{"wider", "", "sub", line("./", 1), false},
		{"elsewhere", "", "sub", line("/etc/", 1), false},
		{"another capability", "", "sub", []grant.Line{{Need: call.Need{Capability: call.NetEgress, Scope: "./src/"}, Total: 1}}, false},
		{"nothing", "", "sub", nil, false},
		{"to itself", "", "", line("./src/", 1), false},
		{"deeper", "sub", "sub/x", line("./src/", 1), true},
		{"sideways", "sub", "other", line("./src/", 1), false},
		{"a name that begins alike", "sub", "subway", line("./src/", 1), false},
		{"around", "sub", "sub/../other", line("./src/", 1), false},
	}
	for _, tt := range tests {
		b := budget(grant.Line{Need: call.Need{Capability: call.FSWrite, Scope: "./src/"}, Total: 3})
		b.Principal.Path = tt.from
		sub, err := b.Delegate("c", tt.path, tt.lines, under)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && b.Lines[0].Reserved != 0 {
			t.Errorf("%s: a refusal reserved %d", tt.name, b.Lines[0].Reserved)
		}
		if err == nil && (sub.Principal.Path != tt.path || sub.Principal.Session != "s") {
			t.Errorf("%s: it is for %s", tt.name, sub.Principal)
		}
	}
}
