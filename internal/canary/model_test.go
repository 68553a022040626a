package canary_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWires: on each wire the model makes its call, and when it sees the result
// it ends.
func TestWires(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, path, first, then, call string }{
		{
			"messages", "/v1/messages",
			`{"stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"go"}]}`,
			`{"stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"done"}]}]}`,
			`"name":"Bash"`,
		},
		{
			"responses", "/v1/responses",
			`{"tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"message"}]}`,
			`{"tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"function_call_output","output":"done"}]}`,
			`"name":"exec_command"`,
		},
		{
			"chat", "/v1/chat/completions",
			`{"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":"go"}]}`,
			`{"tools":[{"type":"function","function":{"name":"bash"}}],"messages":[{"role":"user","content":"go"},{"role":"tool","content":"done"}]}`,
			`"name":"bash"`,
		},
		{
			"gemini", "/v1beta/models/x:streamGenerateContent",
			`{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"parts":[{"text":"go"}]}]}`,
			`{"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":[{"parts":[{"functionResponse":{"response":"done"}}]}]}`,
			`"name":"run_shell_command"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := canary.Start(canary.Step{Command: "ls -l"})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			first := post(t, m.URL()+tt.path, tt.first)
			if !strings.Contains(first, tt.call) || !strings.Contains(first, "ls -l") {
				t.Errorf("the first turn: %s", first)
			}
			then := post(t, m.URL()+tt.path, tt.then)
			if strings.Contains(then, "ls -l") || !strings.Contains(then, "The script is over.") {
				t.Errorf("the second turn: %s", then)
			}
			got := strings.Trim(strings.Join(m.Results(), ","), `"`)
			if diff := cmp.Diff("done", got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestToolNotOffered: a call whose tool is not there is not made.
func TestToolNotOffered(t *testing.T) {
	t.Parallel()
	m, err := canary.Start(canary.Step{Command: "ls"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := post(t, m.URL()+"/v1/messages", `{"tools":[{"name":"Read"}],"messages":[]}`); strings.Contains(got, "tool_use") {
		t.Error(got)
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", resp.Status, err, text)
	}
	return string(text)
}
