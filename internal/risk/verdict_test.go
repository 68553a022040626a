package risk_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// TestReadVerdict: only an unconditional APPROVED as the last line approves.
func TestReadVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		want   risk.Verdict
	}{
		{"All good.\n\nAPPROVED", risk.Approved},
		{"All good.\n\n**APPROVED**\n", risk.Approved},
		{"Verdict: APPROVED.", risk.Approved},
		{"NOT APPROVED\n- a finding", risk.NotApproved},
		{"- a finding\nNOT APPROVED: see above", risk.NotApproved},
		{"**NOT APPROVED**", risk.NotApproved},
		{"CHANGES_REQUIRED", risk.NotApproved},
		{"APPROVED with conditions", risk.Conditional},
		{"APPROVED if the tests pass", risk.Conditional},
		{"APPROVED, provided that X", risk.Conditional},
		{"CONDITIONALLY APPROVED", risk.Conditional},
		{"APPROVED\n\nBut first fix the leak.", risk.Conditional},
		{"NOT APPROVED\nlater:\nAPPROVED", risk.Conditional},
		{"I would have approved it.", risk.NoVerdict},
		{"approved", risk.NoVerdict},
		{"", risk.NoVerdict},
		{"\u0410PPROVED", risk.NoVerdict}, // a Cyrillic А
		{"NOT\u00a0APPROVED", risk.Conditional},
		{"NOT APPROVED\u200b", risk.NotApproved},
		{"End with APPROVED or NOT APPROVED with findings.", risk.Conditional},
		{"APPROVED\x00", risk.Conditional},
		{"APPROVED_UNCONDITIONALLY", risk.Conditional},
	} {
		got := risk.ReadVerdict(c.answer)
		if got.Verdict != c.want {
			t.Errorf("%q: %v, want %v", c.answer, got.Verdict, c.want)
		}
		if (got.Findings == "") != (c.want == risk.Approved || strings.TrimSpace(c.answer) == "") {
			t.Errorf("%q: findings %q", c.answer, got.Findings)
		}
	}
}

// TestAskVerdict: every review prompt ends with the required line, once.
func TestAskVerdict(t *testing.T) {
	t.Parallel()
	once := risk.AskVerdict("Review the diff.\n")
	if !strings.HasSuffix(once, risk.VerdictLine) || risk.AskVerdict(once) != once {
		t.Errorf("%q", once)
	}
}

// FuzzReadVerdict: whatever is approved is the bare word on the last line.
func FuzzReadVerdict(f *testing.F) {
	for _, s := range []string{"APPROVED", "NOT APPROVED", "x\nAPPROVED.", "APPROVED but", "**Verdict: APPROVED**"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		got := risk.ReadVerdict(answer)
		if got.Verdict != risk.Approved {
			return
		}
		lines := strings.Split(strings.TrimSpace(answer), "\n")
		last := strings.ToLower(lines[len(lines)-1])
		if !strings.Contains(last, "approved") || strings.Contains(last, "not") || strings.Contains(last, "if") {
			t.Fatalf("%q is no approval", answer)
		}
	})
}

// FuzzDispatch: no prompt breaks the scorer, and hardened never scores lower.
func FuzzDispatch(f *testing.F) {
	for _, s := range []string{"Review this. Do not run tools.", "`a.` B", "```\nrm -rf /\n```", "d\u0435lete", "don't `use` the shell"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		r := &risk.Dispatch{Prompt: prompt, AllowedTools: []string{}}
		if c, h := risk.OfDispatch(r, risk.Classic, nil), risk.OfDispatch(r, risk.Hardened, nil); h.Value < c.Value {
			t.Fatalf("hardened %d, classic %d", h.Value, c.Value)
		}
	})
}
