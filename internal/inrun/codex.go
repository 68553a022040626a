package inrun

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CodexArgs make Codex talk on this channel and keep to tools that ask. The
// directory it works in is none that it trusts: a repository's rules could
// otherwise let commands run unasked.
func CodexArgs(dir string) []string {
	quoted, _ := json.Marshal(dir) // a string always can
	args := []string{"app-server", "-c", `web_search="disabled"`, "-c", "projects={" + string(quoted) + `={trust_level="untrusted"}}`}
	for _, feature := range []string{"view_image", "image_generation", "multi_agent", "apps", "plugins", "browser_use", "computer_use", "memories"} {
		args = append(args, "--disable", feature)
	}
	return args
}

// Codex speaks with `codex app-server`. The approval policy is "untrusted" and
// the reviewer the client, so that every command and every patch is asked about
// and nobody else answers. The channel carries a bare no; the words for the
// model are steered into its turn.
func Codex(start CodexStart, ask Ask) Drive {
	return func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
		c := &codex{start: start, changes: make(map[string]jsontext.Value)}
		c.rpc = &rpc{conversation: newConversation(ask, in, log), asked: c.asked, told: c.told, waiting: make(map[int]func(jsontext.Value) error)}
		return c.hold(ctx, out, c.begin, c.take)
	}
}

type codex struct {
	*rpc
	start   CodexStart
	thread  string
	changes map[string]jsontext.Value // the changes of a patch, by the item's id
}

func (c *codex) begin() error {
	info := object{"name": "gatehouse", "title": "Gatehouse", "version": "1"}
	return c.request("initialize", object{"clientInfo": info}, func(jsontext.Value) error {
		if err := c.send(object{"method": "initialized"}); err != nil {
			return err
		}
		params := object{"cwd": c.start.Dir, "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": c.start.Sandbox}
		if c.start.Model != "" {
			params["model"] = c.start.Model
		}
		method := "thread/start"
		if c.start.Session != "" {
			method, params["threadId"], params["excludeTurns"] = "thread/resume", c.start.Session, true
			if c.start.Fork {
				method = "thread/fork"
			}
		}
		return c.request(method, params, c.started)
	})
}

// started checks that the thread asks, and gives it the prompt.
func (c *codex) started(result jsontext.Value) error {
	var r struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
		Model    string         `json:"model"`
		Approval jsontext.Value `json:"approvalPolicy"`
		Reviewer string         `json:"approvalsReviewer"`
		Sandbox  struct {
			Type string `json:"type"`
		} `json:"sandbox"`
	}
	if err := json.Unmarshal(result, &r, lenient); err != nil || r.Thread.ID == "" {
		return fmt.Errorf("%w: no thread was started", ErrGarbage)
	}
	var approval string
	if json.Unmarshal(r.Approval, &approval) != nil || approval != "untrusted" || r.Reviewer != "user" {
		return fmt.Errorf("the agent does not ask about its commands: its approval policy is %.60s, reviewed by %.60q", r.Approval, r.Reviewer)
	}
	c.thread = r.Thread.ID
	c.tell(Line{Type: "session", Session: c.thread, Model: r.Model, Sandbox: r.Sandbox.Type, Approval: approval})
	input := []object{{"type": "text", "text": c.start.Prompt}}
	return c.request("turn/start", object{"threadId": c.thread, "input": input}, func(jsontext.Value) error { return nil })
}

const commandApproval = "item/commandExecution/requestApproval"

// asked takes a request of the server. Only commands and patches can be let
// run; whatever else it asks for is refused: input for a command that runs
// already, more rights for one, a host, a question to the user.
func (c *codex) asked(ctx context.Context, m *message) error {
	var p struct {
		Kind    string `json:"kind"`
		Thread  string `json:"threadId"`
		Turn    string `json:"turnId"`
		Item    string `json:"itemId"`
		Command string `json:"command"`
		Dir     string `json:"cwd"`
		Root    string `json:"grantRoot"`
		Network any    `json:"networkApprovalContext"`
		Extra   any    `json:"additionalPermissions"`
	}
	if !m.strict || json.Unmarshal(m.Params, &p) != nil {
		return c.decline(m)
	}
	t := Tool{Dir: p.Dir, ID: p.Item, Session: c.thread}
	if p.Thread != c.thread {
		t.Path = p.Thread
	}
	switch {
	case m.Method == commandApproval && (p.Kind == "" || p.Kind == "command") && p.Command != "" && p.Network == nil && p.Extra == nil:
		t.Name = "Bash"
		t.Args, _ = json.Marshal(object{"command": unwrap(p.Command)}) // without arguments it is refused
	case m.Method == "item/fileChange/requestApproval" && p.Root == "":
		t.Name, t.Dir, t.Args = "apply_patch", c.start.Dir, patchArgs(c.changes[p.Item])
	case m.Method == commandApproval || m.Method == "item/fileChange/requestApproval":
		return c.respond(m, object{"decision": "decline"})
	default:
		return c.decline(m)
	}
	c.question(ctx, string(m.ID), t, func(v Verdict) error {
		decision := "decline"
		if v.Answer == Run {
			decision = "accept"
		} else if v.Why != "" {
			steer := object{"threadId": p.Thread, "expectedTurnId": p.Turn, "input": []object{{"type": "text", "text": v.Why}}}
			if err := c.remark("why-"+p.Item, "turn/steer", steer); err != nil {
				return err
			}
		}
		return c.respond(m, object{"decision": decision})
	})
	return nil
}

// told takes a notification.
func (c *codex) told(method string, params jsontext.Value) error {
	var p struct {
		Thread string         `json:"threadId"`
		Item   jsontext.Value `json:"item"`
		Turn   struct {
			Status string `json:"status"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		} `json:"turn"`
		Usage struct {
			Total codexUsage `json:"total"`
		} `json:"tokenUsage"`
	}
	if json.Unmarshal(params, &p, lenient) != nil {
		return nil // a notification of another form tells nothing that matters
	}
	own := p.Thread == c.thread
	switch method {
	case "item/started", "item/completed":
		return c.item(method == "item/completed", own, p.Item)
	case "thread/tokenUsage/updated":
		if own {
			c.tell(Line{Type: "usage", Usage: p.Usage.Total.usage()})
		}
	case "turn/completed":
		if !own {
			return nil
		}
		c.over = true
		end := Line{Type: "end", Stop: p.Turn.Status}
		if p.Turn.Status == "completed" {
			end.Stop = "end_turn"
		}
		if p.Turn.Error != nil {
			end.Text = p.Turn.Error.Message
		}
		c.tell(end)
	}
	return nil
}

type codexUsage struct {
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
	Reasoning  int64 `json:"reasoningOutputTokens"`
}

func (u codexUsage) usage() *Usage {
	return &Usage{u.Input, u.Cached, u.CacheWrite, u.Output, u.Reasoning}
}

// item takes the start or the end of something that the agent does.
func (c *codex) item(completed, own bool, raw jsontext.Value) error {
	var i struct {
		Type    string         `json:"type"`
		ID      string         `json:"id"`
		Text    string         `json:"text"`
		Status  string         `json:"status"`
		Exit    *int           `json:"exitCode"`
		Changes jsontext.Value `json:"changes"`
	}
	if json.Unmarshal(raw, &i, lenient) != nil {
		return nil
	}
	switch {
	case i.Type == "fileChange" && !completed:
		c.changes[i.ID] = i.Changes
	case i.Type == "agentMessage" && completed && own:
		c.tell(Line{Type: "text", Text: i.Text})
	case completed && (i.Type == "commandExecution" || i.Type == "fileChange"):
		outcome := Unknown
		switch {
		case i.Status == "declined":
			outcome = Refused
		case i.Status == "failed" || i.Exit != nil && *i.Exit != 0:
			outcome = Failed
		case i.Status == "completed":
			outcome = Succeeded
		}
		return c.ended(i.ID, i.Type, outcome)
	}
	return nil
}

// shells start the commands that Codex shows.
var shells = []string{"/bin/bash", "/usr/bin/bash", "bash", "/bin/sh", "/usr/bin/sh", "sh", "/bin/zsh", "/usr/bin/zsh", "zsh"}

// unwrap returns the command that a login shell is given, so that it is judged
// as the same command in a hook. What has any other form is left as it is.
func unwrap(command string) string {
	for _, shell := range shells {
		rest, found := strings.CutPrefix(command, shell+" -lc ")
		if !found {
			rest, found = strings.CutPrefix(command, shell+" -c ")
		}
		if !found {
			continue
		}
		if inner, ok := unquote(rest); ok {
			return inner
		}
	}
	return command
}

// unquote reads one word of a shell, quoted or not; false if it is more than
// that or anything in it would be expanded.
func unquote(word string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(word); i++ {
		switch ch := word[i]; ch {
		case '\'':
			end := strings.IndexByte(word[i+1:], '\'')
			if end < 0 {
				return "", false
			}
			out.WriteString(word[i+1 : i+1+end])
			i += end + 1
		case '"':
			for i++; ; i++ {
				if i >= len(word) || word[i] == '$' || word[i] == '`' {
					return "", false
				}
				if word[i] == '"' {
					break
				}
				if word[i] == '\\' && i+1 < len(word) && strings.IndexByte("\\\"$`", word[i+1]) >= 0 {
					i++
				}
				out.WriteByte(word[i])
			}
		case '\\':
			if i++; i >= len(word) || word[i] == '\n' {
				return "", false
			}
			out.WriteByte(word[i])
		default:
			if ch <= ' ' || strings.IndexByte("$`;&|<>()*?[]{}~#!", ch) >= 0 {
				return "", false
			}
			out.WriteByte(ch)
		}
	}
	return out.String(), out.Len() > 0
}
