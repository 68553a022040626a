package dispatch_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
)

// bearer adds a token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overMCP is an MCP session of an agent with the gate.
func overMCP(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return session
}

// called calls a tool and reads its answer.
func called(t *testing.T, s *sdk.ClientSession, tool string, in args, out any) (isError bool) {
	t.Helper()
	got, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	raw, err := json.Marshal(got.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Fatalf("%s: %s, %v", tool, raw, err)
	}
	return got.IsError
}

// TestCLIsOverMCP drives the real CLIs through the MCP tools, as an agent does: a
// request with an allowed call, one with a denied call, and a job that is watched
// and read.
func TestCLIsOverMCP(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		h := newHouse(t, name, cli(t, name).Program)
		write(t, h.dir+"/a.txt", "what a.txt holds\n")
		s := overMCP(t, h.URL, h.Agent(h.credential, "coder"))
		request := func(prompt string) args {
			return args{"prompt": prompt, "workingDir": h.dir, "approvalStrategy": "mcp_managed", "approvalPolicy": "strict"}
		}
		h.model.Play(canary.Step{Command: "cat a.txt"})
		var a dispatch.Answer
		if called(t, s, name+"_request", request("Say what is in a.txt"), &a) || a.Status != "completed" || a.Approval.Score != 0 || !strings.Contains(a.Response, "The script is over.") ||
			!said(h.model.Results(), "what a.txt holds") {
			t.Errorf("%+v, the model was told %q", a, h.model.Results())
		}
		h.model.Play(canary.Step{Command: "touch never.txt"})
		var denied dispatch.Answer
		called(t, s, name+"_request", request("Make never.txt"), &denied)
		if h.exists("never.txt") || denied.Result == nil || len(denied.Result.Denials) == 0 {
			t.Errorf("%+v", denied)
		}
		h.model.Play(canary.Step{Command: "cat a.txt"})
		var job dispatch.Answer
		if called(t, s, name+"_request_async", request("Say it again"), &job) || job.Status != "deferred" || job.PollAfterMS != 60_000 || job.Job == nil {
			t.Fatalf("%+v", job)
		}
		var st dispatch.JobStatus
		for seq, phases := int64(0), []string{}; ; seq = st.Job.Seq {
			if called(t, s, "llm_job_watch", args{"jobId": job.Job.ID, "afterProgressSeq": seq, "waitMs": 30_000}, &st) {
				t.Fatalf("%+v", st)
			}
			for _, e := range st.Progress {
				phases = append(phases, e.Phase)
			}
			if st.Job.State.Over() {
				if st.Job.State != "completed" || !slices.Contains(phases, "completed") {
					t.Errorf("%+v after %q", st.Job, phases)
				}
				break
			}
		}
		var out dispatch.JobOutput
		if called(t, s, "llm_job_result", args{"jobId": job.Job.ID}, &out) || out.Result == nil || !strings.Contains(out.Result.Text, "The script is over.") {
			t.Errorf("%+v", out)
		}
	})
}

// TestClaudeCallsGrok: the real Claude Code, with the gate as its MCP server, hands
// a request to the real Grok, whose calls are decided as those of an agent below
// whoever the token stands for.
func TestClaudeCallsGrok(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "grok", cli(t, "grok").Program)
	claude := cli(t, "claude")
	write(t, h.dir+"/a.txt", "what a.txt holds\n")
	h.model.Play(canary.Step{Command: "cat a.txt"}, canary.Step{Command: "touch never.txt"})
	config := filepath.Join(t.TempDir(), "mcp.json")
	write(t, config, `{"mcpServers":{"gate":{"type":"http","url":"`+h.URL+`/mcp","headers":{"Authorization":"Bearer `+h.Agent(h.credential, "coder")+`"}}}}`)
	input, err := json.Marshal(args{"prompt": "Say what is in a.txt", "workingDir": h.dir, "correlationId": "through-claude"})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := canary.Start(canary.Step{Tool: "mcp__gate__grok_request", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	home := t.TempDir()
	cmd := exec.Command(claude.Program, "-p", "go", "--mcp-config", config, "--strict-mcp-config", "--allowed-tools", "mcp__gate__grok_request", "--output-format", "json")
	cmd.Dir = home
	cmd.Env = append(canary.Clean(os.Environ()), "HOME="+home, "ANTHROPIC_BASE_URL="+caller.URL(), "ANTHROPIC_API_KEY=scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	out, err := cmd.CombinedOutput()
	if told := strings.Join(caller.Results(), "\n"); err != nil || !strings.Contains(told, "The script is over.") || !strings.Contains(told, `"status":"approved"`) {
		t.Errorf("%v %s, Claude's model was told %q", err, out, told)
	}
	if h.exists("never.txt") || !said(h.model.Results(), "what a.txt holds") {
		t.Errorf("Grok's model was told %q", h.model.Results())
	}
	found := 0
	for _, r := range h.records("call") {
		if r.Surface == "inrun:grok" && strings.HasPrefix(r.Principal, "coder") {
			found++
		}
	}
	if found < 2 {
		t.Errorf("%d calls of the run are on record under its asker", found)
	}
}

// TestToolsOverMCP: the tools are on the MCP front beside the gate's own, all of
// them together under 20 KB, and a request goes the same way there.
func TestToolsOverMCP(t *testing.T) {
	d := newDesk(t, "")
	session := overMCP(t, d.URL, d.agent)
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) >= 20_000 {
		t.Errorf("tools/list takes %d bytes", len(text))
	}
	t.Logf("%d tools, %d bytes", len(list.Tools), len(text))
	for _, c := range []struct {
		tool    string
		args    args
		isError bool
		status  string
		score   int
	}{
		{"claude_request", args{"prompt": "Refactor auth module", "approvalPolicy": "strict"}, false, "approved", 0},
		{"codex_request", args{"prompt": "Delete all test fixtures", "fullAuto": true, "dangerouslyBypassApprovalsAndSandbox": true, "approvalPolicy": "strict"}, true, "denied", 10},
	} {
		got, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		a := &dispatch.Answer{}
		if err := json.Unmarshal(raw, a); err != nil || a.Approval == nil {
			t.Fatalf("%s: %s, %v", c.tool, raw, err)
		}
		if got.IsError != c.isError || a.Approval.Status != c.status || a.Approval.Score != c.score {
			t.Errorf("%s: %+v", c.tool, a.Approval)
		}
	}
	got, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "gemini_request", Arguments: args{"prompt": "x", "disallowedTools": []string{"Write"}}})
	if err != nil || !got.IsError {
		t.Errorf("disallowedTools on Gemini: %+v, %v", got, err)
	}
}
