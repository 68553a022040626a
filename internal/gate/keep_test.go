package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// shelf is a keeper that notes what it is asked.
type shelf struct {
	*script
	broken bool
}

func (s shelf) Preview(*call.Call, *facts.Facts) []string { _ = s.step("preview"); return nil }
func (s shelf) Asked(string)                              { _ = s.step("asked") }
func (s shelf) Keep(*call.Call, *facts.Facts) (gate.Kept, error) {
	_ = s.step("keep")
	if s.broken {
		return gate.Kept{}, errors.New("the disk is full")
	}
	return gate.Kept{Point: "p_1"}, nil
}

// Facts says that every external call changes a file, and reads if its name
// says so.
func (s shelf) Facts(_ context.Context, c *call.Call, _ *policy.Snapshot) (*facts.Facts, *element.Change) {
	f := &facts.Facts{Class: "mutating", Touches: []string{"/w/a"}, Needs: []call.Need{{Capability: call.FSWrite, Scope: "/w/a"}}}
	if c.Operation == "reads" {
		f = &facts.Facts{Class: "safe", Touches: []string{"/w/a"}}
	}
	return f, nil
}

// TestKeepBeforeTheAnswer: a copy is made after the allow is durable and before
// anyone hears of it; a question ends the batch; a copy that cannot be made
// ends the call.
func TestKeepBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	snap := policy.Default()
	tests := []struct {
		operation string
		broken    bool
		verdict   gate.Verdict
		want      string
	}{
		{"reads", false, gate.Allowed, "read begin standing open append commit keep begin append commit"},
		{"reads", true, gate.Denied, "read begin standing open append commit keep begin close append commit"},
		{"writes", false, gate.Pending, "read preview begin standing grants edited file append commit notice asked"},
	}
	for _, tt := range tests {
		s := &script{}
		s.inside.Policy = snap.Hash
		k := shelf{s, tt.broken}
		g := gate.New(gate.Options{
			Policy:   func(*call.Call) (*policy.Snapshot, call.Digest) { return snap, snap.Hash },
			Observer: k, State: s, Asker: s, Keeper: k,
			Describe: func(*call.Call, *call.Decision, *facts.Facts) []byte { return nil },
			NewID:    func() string { return "c_1" },
		})
		c := &call.Call{Kind: call.External, Surface: "api", Principal: someone, Operation: tt.operation}
		ans := g.Submit(t.Context(), gate.Submission{Call: c})
		if ans.Verdict != tt.verdict || (ans.Restore != "") != (tt.verdict == gate.Allowed) {
			t.Errorf("%s: %s, restore point %q: %s", tt.operation, ans.Verdict, ans.Restore, ans.Message)
		}
		if got := strings.Join(s.asked, " "); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.operation, got, tt.want)
		}
	}
}
