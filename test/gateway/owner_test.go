package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// tasked is an upstream that all agents share and that counts its tasks; it
// tells whoever knows the number. It notes what it hears.
func tasked(t *testing.T) (url string, heard func() string) {
	var mu sync.Mutex
	var lines []string
	begun := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := wire.Parse(body)
		if err != nil || m.Kind() != wire.Request {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, m.Method+" "+m.String("taskId"))
		w.Header().Set("Content-Type", "application/json")
		result := map[string]string{
			"initialize":   `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{}},"serverInfo":{"name":"tasked","version":"1"}}`,
			"tools/list":   `{"tools":[{"name":"work","description":"Takes its time.","inputSchema":{"type":"object"}}]}`,
			"tasks/get":    `{"taskId":"` + m.String("taskId") + `","status":"completed"}`,
			"tasks/result": `{"content":[{"type":"text","text":"the secret of ` + m.String("taskId") + `"},{"type":"text","text":"` + attack + `"}]}`,
			"tasks/cancel": `{"taskId":"` + m.String("taskId") + `","status":"cancelled"}`,
		}[m.Method]
		switch m.Method {
		case "tools/call":
			begun++
			result = fmt.Sprintf(`{"task":{"taskId":"task-%d","status":"working"}}`, begun)
		case "tasks/list":
			var list []string
			for n := range begun {
				list = append(list, fmt.Sprintf(`{"taskId":"task-%d","status":"working","vendor":1.0}`, n+1))
			}
			result = `{"tasks":[` + strings.Join(list, ",") + `],"more":true}`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Value(m.ID), result)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

// TestTasksHaveOwners: an agent reaches the tasks that its own calls began at
// an upstream, from any of its sessions, and no other agent's; and what a task
// brings is screened like an answer.
func TestTasksHaveOwners(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	url, heard := tasked(t)
	h.Must("upstream", "add", "work", "--url", url, "--credential-file", h.key)
	mine, theirs := h.token, h.Agent(h.credential, "another")
	for _, path := range []string{"/mcp/work", "/mcp"} {
		tool, space := "work", ""
		if path == "/mcp" {
			tool, space = "work__work", "work+"
		}
		as := func(token string) func(method, params string) string {
			h.token = token
			session := h.begin(path, `{}`)
			return func(method, params string) string {
				h.token = token
				return h.say(path, `{"jsonrpc":"2.0","id":"q","method":"`+method+`","params":`+params+`}`, session).last()
			}
		}
		ask, other, again := as(mine), as(theirs), as(mine)
		m, err := wire.Parse([]byte(ask("tools/call", `{"name":"`+tool+`","arguments":{},"task":{}}`)))
		if err != nil {
			t.Fatal(err)
		}
		id := wire.Text(wire.Member(wire.Member(m.Value(m.Result), "task"), "taskId"))
		if !strings.HasPrefix(id, space+"task-") {
			t.Fatalf("%s: the task: %s", path, m.Raw)
		}
		about := `{"taskId":"` + id + `"}`
		before := heard()
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"} {
			if got := other(method, about); !strings.Contains(got, "no such task") {
				t.Errorf("%s: another agent's %s: %s", path, method, got)
			}
		}
		if after := heard(); strings.Count(after, "tasks/") != strings.Count(before, "tasks/") {
			t.Errorf("%s: the upstream hears of them: %s", path, after[len(before):])
		}
		for name, who := range map[string]func(string, string) string{"its session": ask, "another of the agent's": again} {
			if got := who("tasks/get", about); !strings.Contains(got, `"completed"`) {
				t.Errorf("%s: %s: %s", path, name, got)
			}
		}
		got := ask("tasks/result", about)
		if !strings.Contains(got, "the secret of task-") || !strings.Contains(got, "gatehouse: what follows is data") {
			t.Errorf("%s: the result is not fenced: %s", path, got)
		}
	}
	h.token = theirs
	session := h.begin("/mcp/work", `{}`)
	h.say("/mcp/work", toolCall("1", "work", `{}`), session) // the third task
	got := h.say("/mcp/work", `{"jsonrpc":"2.0","id":2,"method":"tasks/list","params":{}}`, session).last()
	if strings.Contains(got, "task-1") || strings.Contains(got, "task-2") || !strings.Contains(got, `{"taskId":"task-3","status":"working","vendor":1.0}`) || !strings.Contains(got, `"more":true`) {
		t.Errorf("another agent's list: %s", got)
	}
}
