package dispatch_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// policyText denies one harmless command, so that nothing but the gate can be
// the reason that it did not run.
const policyText = `version = 1
[[rules]]
name = "never"
command = "touch never*"
level = "DENY"
reason = "the test forbids it"
matches = ["touch never.txt"]
misses = ["touch other.txt"]
`

// house is a gate that hands requests to one CLI, with a scripted model.
type house struct {
	*gatetest.Gate
	t          *testing.T
	name, dir  string
	bin        string // where the CLI is
	model      *canary.Model
	credential string
}

func newHouse(t *testing.T, name, program string) *house {
	t.Helper()
	return newHouseWith(t, name, program, policyText)
}

// newHouseWith starts a gate with another policy.
func newHouseWith(t *testing.T, name, program, policy string) *house {
	t.Helper()
	m, err := canary.Start()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, name: name, dir: t.TempDir(), bin: filepath.Dir(program), model: m}
	h.Gate = gatetest.New(t)
	t.Cleanup(func() { m.Close() })
	user := t.TempDir()
	h.Env = []string{
		"HOME=" + user, "PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=scripted",
		"IS_SANDBOX=1", // else Claude Code does not run unasked for root
		"GEMINI_API_KEY=scripted", "GOOGLE_GEMINI_BASE_URL=" + m.URL(),
	}
	// What an operator says about models lies in the gate's own folder.
	own := filepath.Join(h.Home, "dispatch", "cli")
	write(t, own+"/codex/.codex/config.toml", "model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \""+
		m.URL()+"/v1\"\nenv_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n")
	write(t, own+"/grok/.grok/config.toml", "[models]\ndefault = \""+canary.GrokModel+"\"\n"+m.GrokSettings())
	write(t, own+"/mistral/.vibe/config.toml", "active_model = \"scripted\"\n[[providers]]\nname = \"scripted\"\napi_base = \""+m.URL()+
		"/v1\"\napi_key_env_var = \"SCRIPTED_KEY\"\n")
	write(t, own+"/mistral.env", "SCRIPTED_KEY=scripted\n")
	write(t, own+"/codex.env", "SCRIPTED_KEY=scripted\n")
	write(t, own+"/grok.env", "SCRIPTED_KEY=scripted\n")
	write(t, filepath.Join(h.Home, "policy.toml"), policy)
	h.Up()
	h.credential, _ = h.Enrol("ann")
	return h
}

// answer is what the tests look at in an answer.
type answer struct {
	Success  bool   `json:"success"`
	Status   string `json:"status"`
	Response string `json:"response"`
	Error    string `json:"error"`
	Approval struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Score  int    `json:"score"`
	} `json:"approval"`
	Job struct {
		ID       string `json:"id"`
		Status   string `json:"status"`
		Confined bool   `json:"confined"`
	} `json:"job"`
	Posture struct {
		Approval string `json:"approval"`
		Sandbox  string `json:"sandbox"`
		Confined bool   `json:"confined"`
	} `json:"posture"`
	SessionID     string `json:"sessionId"`
	CorrelationID string `json:"correlationId"`
	Result        struct {
		Denials []any  `json:"permissionDenials"`
		Stop    string `json:"stopReason"`
		Usage   struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
		} `json:"usage"`
	} `json:"result"`
}

// command runs a command of the binary in the directory.
func (h *house) command(args ...string) (out string, code int) {
	h.t.Helper()
	cmd := exec.Command(gatetest.Binary(h.t), append(args, "--data", h.Home)...)
	cmd.Dir = h.dir
	text, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		h.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// ask hands a request to the CLI through `gatehouse ask`.
func (h *house) ask(prompt string, flags ...string) answer {
	h.t.Helper()
	if h.name == "codex" {
		flags = append(flags, "--full-auto") // else its own sandbox lets nothing be written
	}
	out, code := h.command(append([]string{"ask", h.name, prompt, "--json"}, flags...)...)
	h.t.Logf("gatehouse ask %s %q %q: exit %d\n%s\nthe model was told %q", h.name, prompt, flags, code, out, h.model.Results())
	var a answer
	if i := strings.IndexByte(out, '{'); i < 0 || json.Unmarshal([]byte(out[i:]), &a) != nil {
		h.t.Fatalf("that is no answer: %s", out)
	}
	return a
}

func (h *house) exists(name string) bool {
	_, err := os.Stat(filepath.Join(h.dir, name))
	return err == nil
}

// present keeps a person's channel open while the test runs.
func (h *house) present() { present(h.t, h.Gate, h.credential) }

func present(t *testing.T, g *gatetest.Gate, credential string) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	joined, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		first := true
		_ = g.Client(credential).Watch(ctx, func() error { // it ends when the test does
			if first {
				close(joined)
			}
			first = false
			return nil
		})
	}()
	t.Cleanup(func() { leave(); <-left })
	<-joined
}

// pending waits for the run's question. The test fails if the run ends without
// one.
func (h *house) pending(ended <-chan answer) admin.Request {
	h.t.Helper()
	for {
		list := &api.ApprovalList{}
		if err := h.Client(h.credential).Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, list); err != nil {
			h.t.Fatal(err)
		}
		if len(list.Requests) > 0 {
			return list.Requests[0]
		}
		select {
		case a := <-ended:
			h.t.Fatalf("the run ended without a question: %+v", a)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// yes approves a request, once.
func (h *house) yes(r admin.Request) {
	h.t.Helper()
	if err := h.Client(h.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil); err != nil {
		h.t.Fatal(err)
	}
}

// approve says yes to the run's question.
func (h *house) approve(ended <-chan answer) { h.yes(h.pending(ended)) }

// records lists the log's records of a kind.
func (h *house) records(kind string) []admin.Record {
	h.t.Helper()
	page := &api.LogPage{}
	if err := h.Client(h.credential).Do(context.Background(), "GET", "/v1/log?limit=200&kind="+kind, nil, page); err != nil {
		h.t.Fatal(err)
	}
	return page.Records
}
