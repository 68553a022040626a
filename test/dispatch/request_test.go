package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// standIn is a program in the place of Claude Code and Codex. It counts its
// runs, keeps its arguments, environment and prompt, and answers what a file
// says, one line per run.
const standIn = `#!/bin/sh
printf 'run\n' >> "$STANDIN/runs"
printf '%s\n' "$@" > "$STANDIN/args"
env > "$STANDIN/env"
pwd > "$STANDIN/pwd"
cat > "$STANDIN/prompt"
n=$(wc -l < "$STANDIN/runs")
text=$(sed -n "${n}p" "$STANDIN/answers" 2>/dev/null)
[ -f "$STANDIN/slow" ] && { sleep 600 & wait; }
printf '{"type":"system","subtype":"init","session_id":"0b0c5a9e-6c1f-4a63-9d5c-0a2f3c9b7e11","model":"m"}\n'
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"%s","stop_reason":"end_turn","session_id":"0b0c5a9e-6c1f-4a63-9d5c-0a2f3c9b7e11","total_cost_usd":0.25,"usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":3}}\n' "${text:-got it}"
[ -f "$STANDIN/exit" ] && { echo it went wrong >&2; exit "$(cat "$STANDIN/exit")"; }
exit 0
`

// desk is a gate with a stand-in, and somebody who asks.
type desk struct {
	*gatetest.Gate
	t              *testing.T
	standIn, dir   string
	credential     string
	file           string // with the credential
	agent, another string // tokens
}

// newDesk starts a gate. The CLI runs with the flags of the public skill, so
// that a script can stand in for it.
func newDesk(t *testing.T, policy string, env ...string) *desk {
	t.Helper()
	d := &desk{Gate: gatetest.New(t), t: t, standIn: t.TempDir(), dir: t.TempDir()}
	bin := t.TempDir()
	for _, name := range []string{"claude", "codex"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(d.Home, "dispatch", "cli", name+".env"), "STANDIN="+d.standIn+"\n")
	}
	d.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CANARY=secret", "HOME=" + t.TempDir()}, env...)
	write(t, filepath.Join(d.Home, "policy.toml"), "version = 1\n[dispatch]\ncli_effects = \"classic\"\n"+policy)
	d.Up()
	d.credential, d.file = d.Enrol("ann")
	d.agent, d.another = d.Agent(d.credential, "coder"), d.Agent(d.credential, "other")
	return d
}

// use calls a tool over the API and reads its answer.
func (d *desk) use(token, name string, args, answer any) error {
	d.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		d.t.Fatal(err)
	}
	got := &api.ToolResponse{}
	if err := d.Client(token).Do(context.Background(), "POST", "/v1/tools/"+name, &api.ToolRequest{Args: raw, Dir: d.dir}, got); err != nil {
		return err
	}
	return json.Unmarshal(got.Answer, answer)
}

// ask makes a request that is carried out, or denied.
func (d *desk) ask(token, tool string, args map[string]any) *dispatch.Answer {
	d.t.Helper()
	a := &dispatch.Answer{}
	if err := d.use(token, tool, args, a); err != nil {
		d.t.Fatalf("%s %v: %v", tool, args, err)
	}
	return a
}

// present keeps a person's channel open while the test runs.
func (d *desk) present() { present(d.t, d.Gate, d.credential) }

func (d *desk) runs() int {
	text, _ := os.ReadFile(filepath.Join(d.standIn, "runs")) // none yet is none
	return strings.Count(string(text), "run")
}

func (d *desk) saw(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.standIn, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

type args = map[string]any

// TestSeedExamples: the seed's two examples and its asynchronous one, through
// the binary. A denied request starts nothing, waited for or not.
func TestSeedExamples(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	a := d.ask(d.agent, "claude_request", args{"prompt": "Refactor auth module", "approvalStrategy": "mcp_managed", "approvalPolicy": "strict"})
	if !a.Success || a.Response != "got it" || a.Approval.Status != "approved" || a.Approval.Score != 0 || a.Approval.Policy != "strict" ||
		!strings.HasPrefix(a.Approval.ID, "appr-") || a.Approval.Reasons == nil || len(a.Approval.Reasons) != 0 {
		t.Errorf("the approved example: %+v %+v", a, a.Approval)
	}
	if got := d.saw("args"); !strings.Contains(got, "bypassPermissions") || strings.Contains(got, "Refactor") {
		t.Errorf("its arguments: %s", got)
	}
	if got := d.saw("prompt"); got != "Refactor auth module" {
		t.Errorf("its prompt: %q", got)
	}
	if got := d.saw("env"); strings.Contains(got, "CANARY") || !strings.Contains(got, "CLAUDE_CONFIG_DIR="+d.Home) {
		t.Errorf("its environment: %s", got)
	}
	denied := args{"prompt": "Delete all test fixtures", "fullAuto": true, "dangerouslyBypassApprovalsAndSandbox": true, "approvalStrategy": "mcp_managed", "approvalPolicy": "strict"}
	for _, tool := range []string{"codex_request", "codex_request_async"} {
		a = d.ask(d.agent, tool, denied)
		if a.Success || a.Status != "denied" || a.Approval.Status != "denied" || a.Approval.Score != 10 || a.Job != nil || len(a.Approval.Reasons) != 4 {
			t.Errorf("%s: the denied example: %+v %+v", tool, a, a.Approval)
		}
	}
	if d.runs() != 1 {
		t.Errorf("%d runs: a denied request started something", d.runs())
	}
	a = d.ask(d.agent, "claude_request_async", args{"prompt": "Audit auth module for vulnerabilities. End with APPROVED or NOT APPROVED with findings.", "approvalPolicy": "strict"})
	if a.Status != "deferred" && a.Status != "completed" || a.Job == nil || a.Approval.Score != 0 {
		t.Fatalf("the asynchronous example: %+v", a)
	}
	if a.Status == "deferred" && a.PollAfterMS != 60000 {
		t.Errorf("pollAfterMs is %d", a.PollAfterMS)
	}
	var page struct {
		Approvals []flight.Record `json:"approvals"`
	}
	if err := d.use(d.agent, "approval_list", args{"limit": 50}, &page); err != nil || len(page.Approvals) != 4 {
		t.Fatalf("approval_list: %d rows, %v", len(page.Approvals), err)
	}
	for _, r := range page.Approvals[1:3] {
		if r.Status != "denied" || !r.BypassRequested || !r.FullAuto || r.CLI != "codex" || r.PromptPreview != "Delete all test fixtures" || len(r.PromptSHA256) != 64 || r.RequestedMCPServers[0] != "sqry" {
			t.Errorf("a row: %+v", r)
		}
	}
	if err := d.use(d.another, "approval_list", args{}, &page); err != nil || len(page.Approvals) != 0 {
		t.Errorf("another agent sees %d rows, %v", len(page.Approvals), err)
	}
}

// TestDeduplication: attack row 22. An equal request of the same agent is
// answered by the job there is, and says so; every request is decided first;
// another agent, another state of the files, or forceRefresh run anew.
func TestDeduplication(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	same := args{"prompt": "Review the parser"}
	first := d.ask(d.agent, "claude_request", same)
	second := d.ask(d.agent, "claude_request", same)
	if first.Deduplicated || !second.Deduplicated || second.OriginalJobID != first.Job.ID || second.ApprovalOf != first.Approval.ID || second.Approval.ID == first.Approval.ID {
		t.Errorf("an equal request: %+v then %+v", first, second)
	}
	if other := d.ask(d.another, "claude_request", same); other.Deduplicated {
		t.Error("another agent got somebody else's answer")
	}
	if strict := d.ask(d.agent, "claude_request", args{"prompt": "Review the parser", "approvalPolicy": "strict"}); strict.Deduplicated {
		t.Error("other approval parameters are another request")
	}
	if fresh := d.ask(d.agent, "claude_request", args{"prompt": "Review the parser", "forceRefresh": true}); fresh.Deduplicated {
		t.Error("forceRefresh did not run anew")
	}
	write(t, filepath.Join(d.dir, "parser.go"), "package parser\n")
	if fixed := d.ask(d.agent, "claude_request", same); fixed.Deduplicated {
		t.Error("a review after a fix is the old review")
	}
	// A policy that was tightened is asked first, whatever there is.
	write(t, filepath.Join(d.Home, "policy.toml"), "version = 1\n[dispatch]\ncli_effects = \"classic\"\npolicy = \"strict\"\n[dispatch.weights]\nno_tools = 9\n")
	before := d.runs()
	for {
		a := d.ask(d.agent, "claude_request", args{"prompt": "Write docs", "allowedTools": []string{}})
		if a.Status == "denied" {
			break
		}
		time.Sleep(50 * time.Millisecond) // until the file is read
	}
	if d.runs() > before+1 {
		t.Logf("%d runs before the policy was read", d.runs()-before)
	}
}

// TestExitCodeCounts: a CLI that ends with an error has failed, whatever it
// printed, and its exit code and its words are there.
func TestExitCodeCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	write(t, filepath.Join(d.standIn, "exit"), "3")
	a := d.ask(d.agent, "claude_request", args{"prompt": "fail"})
	if a.Success || a.Status != "failed" || a.Job.ExitCode != 3 || a.Job.Category != "cli_error" || !strings.Contains(a.Error, "exit code 3") {
		t.Errorf("%+v %+v", a, a.Job)
	}
	var out dispatch.JobOutput
	if err := d.use(d.agent, "llm_job_result", args{"jobId": a.Job.ID}, &out); err != nil || !strings.Contains(out.Stderr.Text, "it went wrong") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestOthersJobs: nobody sees or ends another's job.
func TestOthersJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	write(t, filepath.Join(d.standIn, "slow"), "")
	a := d.ask(d.agent, "claude_request_async", args{"prompt": "take your time"})
	if a.Job == nil {
		t.Fatalf("%+v", a)
	}
	for _, tool := range []string{"llm_job_status", "llm_job_watch", "llm_job_result", "llm_job_cancel"} {
		var got map[string]any
		if err := d.use(d.another, tool, args{"jobId": a.Job.ID}, &got); err == nil || !strings.Contains(err.Error(), "no such job") {
			t.Errorf("%s of another's job: %v %v", tool, got, err)
		}
	}
	var ended dispatch.JobStatus
	if err := d.use(d.agent, "llm_job_cancel", args{"jobId": a.Job.ID}, &ended); err != nil || ended.Job.State != "cancelled" {
		t.Errorf("cancel: %+v, %v", ended.Job, err)
	}
	if out, _, code := d.Run("jobs", "list", "--json"); code != 0 || strings.Contains(out, a.Job.ID) {
		t.Errorf("the terminal's own jobs: %d %s", code, out)
	}
}

// TestSessionsResume: a session is begun by name and gone on with by name, and
// the answer says what holds it now and what held it before.
func TestSessionsResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	var made dispatch.Session
	if err := d.use(d.agent, "session_create", args{"cli": "claude", "description": "docs"}, &made); err != nil {
		t.Fatal(err)
	}
	d.ask(d.agent, "claude_request", args{"prompt": "begin", "sessionId": made.ID})
	if got := d.saw("args"); !strings.Contains(got, "--session-id\n"+made.ID) {
		t.Errorf("the first time: %s", got)
	}
	a := d.ask(d.agent, "claude_request", args{"prompt": "go on", "resumeLatest": true})
	if got := d.saw("args"); !strings.Contains(got, "--resume\n") || strings.Contains(got, "--session-id") {
		t.Errorf("the second time: %s", got)
	}
	if a.Posture == nil || !a.Posture.Resumed || a.SourcePosture == nil || a.SourcePosture.Approval != "default" {
		t.Errorf("the postures: %+v, %+v", a.Posture, a.SourcePosture)
	}
	var got dispatch.Session
	if err := d.use(d.agent, "session_get", args{"sessionId": made.ID}, &got); err != nil || !got.Begun || got.CacheState == nil || got.CacheState.CacheReadTokens != 6 {
		t.Errorf("session_get: %+v %+v, %v", got, got.CacheState, err)
	}
	if err := d.use(d.another, "session_get", args{"sessionId": made.ID}, &got); err == nil {
		t.Error("another agent sees the session")
	}
	if err := d.use(d.another, "codex_request", args{"prompt": "x", "sessionId": made.ID}, &got); err == nil {
		t.Error("another agent goes on with the session")
	}
	var list struct{ Sessions []dispatch.Session }
	if err := d.use(d.agent, "session_set_active", args{"cli": "claude", "sessionId": made.ID}, &got); err != nil {
		t.Error(err)
	}
	if err := d.use(d.agent, "session_list", args{}, &list); err != nil || len(list.Sessions) != 1 || !list.Sessions[0].Active {
		t.Errorf("session_list: %+v, %v", list, err)
	}
	if err := d.use(d.agent, "session_delete", args{"sessionId": made.ID}, &got); err != nil {
		t.Error(err)
	}
	if err := d.use(d.agent, "session_clear", args{}, &got); err != nil {
		t.Error(err)
	}
}

// TestOverTheThresholdAPerson: where the operator says so, a person is asked
// instead of a denial, and the identical request picks up the answer.
func TestOverTheThresholdAPerson(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "over = \"ask\"\n")
	over := args{"prompt": "delete the old credential", "approvalPolicy": "strict"}
	a := d.ask(d.agent, "claude_request_async", over)
	if a.Status != "pending" || a.Request == "" || a.Approval.Status != "asked" || d.runs() != 0 {
		t.Fatalf("%+v %+v", a, a.Approval)
	}
	list := &api.ApprovalList{}
	if err := d.Client(d.credential).Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, list); err != nil || len(list.Requests) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	r := list.Requests[0]
	time.Sleep(1100 * time.Millisecond) // a request is answered once it has been shown for a second
	if err := d.Client(d.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil); err != nil {
		t.Fatal(err)
	}
	if a = d.ask(d.agent, "claude_request", over); !a.Success || d.runs() != 1 {
		t.Errorf("%+v, %d runs", a, d.runs())
	}
	if a = d.ask(d.agent, "claude_request_async", args{"prompt": "delete the old credential", "approvalPolicy": "strict", "forceRefresh": true}); a.Status != "pending" {
		t.Errorf("the approval was used again: %+v", a)
	}
}

// TestReviewLoop: three rounds, a conditional approval counts as none, and a
// person is asked in the end.
func TestReviewLoop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answers  string
		approved bool
		status   string
		rounds   int
		runs     int
	}{
		{"NOT APPROVED: a leak\nfixed\nAPPROVED\n", true, "approved", 2, 3},
		{"APPROVED if you fix it\nfixed\nNOT APPROVED\nfixed\nAPPROVED but\n", false, "escalated", 3, 5},
	} {
		d := newDesk(t, "")
		write(t, filepath.Join(d.standIn, "answers"), c.answers)
		got := &dispatch.ReviewAnswer{}
		if err := d.use(d.agent, "review", args{"prompt": "Review the diff", "workingDir": d.dir}, got); err != nil {
			t.Fatal(err)
		}
		if got.Approved != c.approved || got.Status != c.status || len(got.Rounds) != c.rounds || d.runs() != c.runs {
			t.Errorf("%q: %+v after %d runs", c.answers, got, d.runs())
		}
		if c.status == "escalated" && got.Request == "" {
			t.Errorf("nobody was asked: %s", got.Message)
		}
		if !strings.HasSuffix(d.saw("prompt"), "End with APPROVED or NOT APPROVED with findings.") {
			t.Errorf("the last prompt: %q", d.saw("prompt"))
		}
	}
	// The gate must agree, too.
	d := newDesk(t, "")
	got := &dispatch.ReviewAnswer{}
	err := d.use(d.agent, "review", args{"prompt": "Review it. Do not use tools. Delete the token.", "workingDir": d.dir}, got)
	if err != nil || got.Approved || got.Status != "denied" || d.runs() != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPolicyVariable: attack row 23. The threshold is the daemon's own variable,
// and what somebody else has in their environment means nothing.
func TestPolicyVariable(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "LLM_GATEWAY_APPROVAL_POLICY=strict")
	a := d.ask(d.agent, "claude_request", args{"prompt": "delete it", "approvalPolicy": "permissive", "approvalStrategy": "legacy"})
	if a.Status != "denied" || a.Approval.Policy != "strict" || d.runs() != 0 {
		t.Errorf("%+v %+v", a, a.Approval)
	}
	bad := gatetest.New(t)
	bad.Env = []string{"LLM_GATEWAY_APPROVAL_POLICY=lenient"}
	if err := bad.TryUp(); err == nil {
		t.Error("a policy that does not exist was taken")
	}
}

// TestToolList: all tools together stay small.
func TestToolList(t *testing.T) {
	t.Parallel()
	total := 0
	var names []string
	for _, tool := range (&dispatch.Service{}).Tools() {
		total += len(tool.Name) + len(tool.Description) + len(tool.InputSchema) + len(`{"name":"","description":"","inputSchema":,"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true}},`)
		names = append(names, tool.Name)
		if !json.Valid(tool.InputSchema) {
			t.Errorf("%s: its schema is no JSON", tool.Name)
		}
	}
	if total >= 20_000 {
		t.Errorf("the tools take %d bytes", total)
	}
	want := "llm_job_status llm_job_watch llm_job_result llm_job_cancel llm_request_result session_create session_list session_get session_delete session_set_active session_clear list_models approval_list cli_versions"
	for _, cli := range call.CLIs() {
		want += fmt.Sprintf(" %s_request %s_request_async", cli, cli)
	}
	for name := range strings.FieldsSeq(want) {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			t.Errorf("there is no tool %s", name)
		}
	}
	t.Logf("%d tools, %d bytes", len(names), total)
}

// TestWorktree: attack row 40. The CLI works in a private clone that shares no
// file with the repository.
func TestWorktree(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	for _, words := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@a.example", "commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command(needtest.OneOf(t, "git"), words...)
		cmd.Dir = d.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	a := d.ask(d.agent, "claude_request", args{"prompt": "work apart", "worktree": true})
	if !a.Success || a.Worktree == "" || strings.HasPrefix(a.Worktree, d.dir) {
		t.Fatalf("%+v", a)
	}
	if got := strings.TrimSpace(d.saw("pwd")); got != a.Worktree {
		t.Errorf("it worked in %s, not in %s", got, a.Worktree)
	}
	if info, err := os.Lstat(filepath.Join(a.Worktree, ".git")); err != nil || !info.IsDir() {
		t.Errorf("the clone shares its .git: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(a.Worktree, ".git/objects/info/alternates")); err == nil {
		t.Error("the clone leans on its source")
	}
}

// TestConfined: the CLI runs in the sandbox when the request says so, and cannot
// write outside of its directory.
func TestConfined(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	write(t, filepath.Join(d.dir, "here"), "")
	a := &dispatch.Answer{}
	err := d.use(d.agent, "claude_request", args{"prompt": "stay inside", "sandbox": true}, a)
	if err != nil {
		if strings.Contains(err.Error(), "no back-end") {
			needtest.Missing(t, err.Error())
		}
		t.Fatal(err)
	}
	if a.Job == nil || !a.Job.Confined {
		t.Fatalf("%+v", a)
	}
	if d.runs() != 0 {
		t.Error("the stand-in wrote its notes outside of its directory")
	}
}

// TestBlocksFollow: attack row 10. An agent that is stopped starts nothing, and
// what it has running ends.
func TestBlocksFollow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	write(t, filepath.Join(d.standIn, "slow"), "")
	a := d.ask(d.agent, "claude_request_async", args{"prompt": "take your time"})
	if a.Job == nil {
		t.Fatalf("%+v", a)
	}
	if err := d.Client(d.credential).Do(context.Background(), "POST", "/v1/kill", &api.KillRequest{On: true, Reason: "stop"}, nil); err != nil {
		t.Fatal(err)
	}
	var st dispatch.JobStatus
	for seq := int64(0); ; seq = st.Job.Seq {
		if err := d.use(d.agent, "llm_job_watch", args{"jobId": a.Job.ID, "afterProgressSeq": seq, "waitMs": 5000}, &st); err != nil {
			t.Fatal(err)
		}
		if st.Job.State.Over() {
			break
		}
	}
	if b := d.ask(d.agent, "claude_request", args{"prompt": "and now"}); b.Status != "denied" || b.Job != nil {
		t.Errorf("under the kill switch: %+v", b)
	}
}
