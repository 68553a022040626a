package policy_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// decideTask decides a request as the gate does, without a machine to look at.
func decideTask(t *testing.T, s *policy.Snapshot, cli, agent, dir, args string) call.Decision {
	t.Helper()
	c := &call.Call{
		Kind: call.Dispatch, Surface: "api", Operation: call.RequestOperation(cli), Args: []byte(args), Dir: dir,
		Principal: call.Principal{Agent: agent, Session: "s"},
	}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	set := &s.Settings.Dispatch
	f := facts.Extract(c, nil, &facts.Options{ScoreProfile: set.Profile, Weights: set.Weigh()})
	return s.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil)
}

func compileDispatch(t *testing.T, opts policy.Options, layers ...policy.Layer) *policy.Snapshot {
	t.Helper()
	s, err := policy.Compile(layers, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fileOf(t *testing.T, text string) *policy.File {
	t.Helper()
	f, err := policy.Parse("test.toml", []byte("version = 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const (
	seedApproved = `{"prompt":"Refactor auth module","approvalStrategy":"mcp_managed","approvalPolicy":"strict"}`
	seedDenied   = `{"prompt":"Delete all test fixtures","fullAuto":true,"dangerouslyBypassApprovalsAndSandbox":true,"approvalStrategy":"mcp_managed","approvalPolicy":"strict"}`
)

// TestDispatchSeedExamples: the seed's two examples, under both profiles.
func TestDispatchSeedExamples(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"classic", "hardened"} {
		s := compileDispatch(t, policy.Options{}, policy.Layer{Scope: policy.ScopeUser, File: fileOf(t, "[dispatch]\nprofile = \""+profile+"\"\n")})
		if d := decideTask(t, s, "claude", "a", "", seedApproved); d.Level != call.AutoApprove {
			t.Errorf("%s: the approved example is %v: %s", profile, d.Level, d.Why())
		}
		d := decideTask(t, s, "codex", "a", "", seedDenied)
		if d.Level != call.Deny || !strings.Contains(d.Why(), "score is 10") {
			t.Errorf("%s: the denied example is %v: %s", profile, d.Level, d.Why())
		}
	}
}

// TestDispatchCallersOnlyTighten: attack row 23. legacy is scored like
// everything else, and a caller's permissive loosens nothing.
func TestDispatchCallersOnlyTighten(t *testing.T) {
	t.Parallel()
	s := compileDispatch(t, policy.Options{})
	for _, c := range []struct {
		args string
		want call.Level
	}{
		{`{"prompt":"delete the token","fullAuto":true}`, call.AutoApprove},                                   // 5 under balanced
		{`{"prompt":"delete it","dangerouslySkipPermissions":true}`, call.Deny},                               // 6
		{`{"prompt":"delete it","dangerouslySkipPermissions":true,"approvalPolicy":"permissive"}`, call.Deny}, // the wish is looser
		{`{"prompt":"delete it","dangerouslySkipPermissions":true,"approvalStrategy":"legacy"}`, call.Deny},   // legacy skips nothing
		{`{"prompt":"delete it","approvalPolicy":"strict"}`, call.Deny},                                       // the wish is stricter
		{`{"prompt":"hello","approvalStrategy":"mcp_managed","approvalPolicy":"strict"}`, call.AutoApprove},   // managed is no bypass
		{`{"prompt":"hello","approvalMode":"yolo","approvalPolicy":"strict"}`, call.Deny},                     // 3
		{`{"prompt":"hello","alwaysApprove":true,"approvalPolicy":"strict"}`, call.Deny},                      // 3
		{`{"prompt":"hello","permissionMode":"bypassPermissions","approvalPolicy":"strict"}`, call.Deny},      // 3
		{`{"prompt":"hello","sandboxMode":"danger-full-access","approvalPolicy":"strict"}`, call.Deny},        // 3
		{`{"prompt":"hello","unknownField":1}`, call.Deny},                                                    // not ours
		{`{"prompt":"hello","promptParts":{"task":"x"}}`, call.Deny},                                          // both
		{`{}`, call.Deny},
		{`{"prompt":"hello","model":"-x"}`, call.Deny}, // would be read as a flag
	} {
		if d := decideTask(t, s, "claude", "a", "", c.args); d.Level != c.want {
			t.Errorf("%s: %v, want %v: %s", c.args, d.Level, c.want, d.Why())
		}
	}
	if d := decideTask(t, s, "nobody", "a", "", seedApproved); d.Level != call.Deny {
		t.Errorf("a CLI that does not exist: %v", d.Level)
	}
}

// TestDispatchBounds: the operator's floor and ceiling by CLI, agent and
// workspace, and a person asked instead of a denial.
func TestDispatchBounds(t *testing.T) {
	t.Parallel()
	s := compileDispatch(t, policy.Options{DispatchPolicy: "permissive"}, policy.Layer{Scope: policy.ScopeUser, File: fileOf(t, `
[[dispatch.bounds]]
cli = "codex"
ceiling = "strict"
[[dispatch.bounds]]
principal = "ci-*"
over = "ask"
[[dispatch.bounds]]
workspace = "/srv/prod"
ceiling = "balanced"
`)})
	for _, c := range []struct {
		cli, agent, dir, args, policy string
		over                          call.Level
	}{
		{"claude", "a", "/home", "", "permissive", call.Deny},
		{"codex", "a", "/home", "", "strict", call.Deny},
		{"claude", "ci-1", "/home", "", "permissive", call.ConfirmSingleUse},
		{"claude", "a", "/srv/prod/x", "", "balanced", call.Deny},
		{"claude", "a", "/srv/production", "", "permissive", call.Deny},
		{"claude", "a", "/srv/prod", "strict", "strict", call.Deny},
	} {
		p, over := s.Settings.Dispatch.Threshold(c.cli, c.agent, c.dir, c.args)
		if p != c.policy || over != c.over {
			t.Errorf("%+v: %s, %v", c, p, over)
		}
	}
	if d := decideTask(t, s, "claude", "ci-1", "/home", seedDenied); d.Level != call.ConfirmSingleUse {
		t.Errorf("over the threshold of one who is asked about: %v", d.Level)
	}
}

// TestDispatchLayers: a project's file tightens and loosens nothing, and what
// loosens is found.
func TestDispatchLayers(t *testing.T) {
	t.Parallel()
	base := compileDispatch(t, policy.Options{})
	for _, c := range []struct {
		text    string
		ignored bool
	}{
		{"[dispatch]\npolicy = \"strict\"\n", false},
		{"[dispatch]\npolicy = \"permissive\"\n", true},
		{"[dispatch]\nprofile = \"classic\"\n", true},
		{"[dispatch]\nover = \"ask\"\n", true},
		{"[dispatch]\ncli_effects = \"classic\"\n", true},
		{"[dispatch]\nconfine = true\n", false},
		{"[dispatch.weights]\nkeywords = 0\n", true},
		{"[dispatch.weights]\nkeywords = 7\n", false},
		{"[dispatch.servers]\nexa = 9\n", false},
		{"[[dispatch.bounds]]\nceiling = \"strict\"\n", false},
		{"[[dispatch.bounds]]\nover = \"ask\"\n", true},
	} {
		low := compileDispatch(t, policy.Options{}, policy.Layer{Scope: policy.ScopeProject, File: fileOf(t, c.text)})
		if got := len(low.Ignored) > 0; got != c.ignored {
			t.Errorf("%q in a project: ignored %v", c.text, low.Ignored)
		}
		if got := policy.Loosens(base, low); len(got) > 0 {
			t.Errorf("%q in a project loosens: %v", c.text, got)
		}
		high := compileDispatch(t, policy.Options{}, policy.Layer{Scope: policy.ScopeUser, File: fileOf(t, c.text)})
		if got := len(policy.Loosens(base, high)) > 0; got != c.ignored {
			t.Errorf("%q by the user: loosens %v", c.text, policy.Loosens(base, high))
		}
	}
}
