package inrun

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ClaudeArgs make Claude Code talk on this channel, and take no settings but
// those on its command line: neither a repository's hook nor the user's rules
// answer in place of the gate.
func ClaudeArgs() []string {
	return []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio",
		"--permission-mode", "default", "--setting-sources", "", "--strict-mcp-config",
	}
}

// Claude speaks Claude Code's control protocol: every tool use comes by as a
// hook, is answered "ask", and so becomes a question (can_use_tool), without
// which Claude Code does not run it. The hook makes it ask about what it would
// run by itself, such as reading a file; if it failed, no more than that would
// run unasked, and the run ends when it does.
func Claude(prompt []byte, ask Ask) Drive {
	return func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
		c := &claude{conversation: newConversation(ask, in, log), paths: make(map[string]string), names: make(map[string]string)}
		c.tells, c.rewrites = false, true
		return c.hold(ctx, out, func() error { return c.begin(prompt) }, c.take)
	}
}

type claude struct {
	*conversation
	session, dir string

	paths map[string]string // the sub-agent of a tool use

	names map[string]string // the tool of a tool use
}

// hookID names the one hook that is registered.
const hookID = "gate"

type object = map[string]any

func (c *claude) begin(prompt []byte) error {
	hooks := object{"PreToolUse": []object{{"matcher": "*", "hookCallbackIds": []string{hookID}}}}
	if err := c.send(object{"type": "control_request", "request_id": "gate-1", "request": object{"subtype": "initialize", "hooks": hooks}}); err != nil {
		return err
	}
	content := []object{{"type": "text", "text": text(prompt)}}
	return c.send(object{"type": "user", "message": object{"role": "user", "content": content}})
}

// claudeLine is the part of a line that matters here.
type claudeLine struct {
	Type      string         `json:"type"`
	Subtype   string         `json:"subtype"`
	Session   string         `json:"session_id"`
	Dir       string         `json:"cwd"`
	RequestID string         `json:"request_id"`
	Request   jsontext.Value `json:"request"`
	Message   jsontext.Value `json:"message"`
	Response  struct {
		Subtype string `json:"subtype"`
		Error   string `json:"error"`
	} `json:"response"`
}

func (c *claude) take(ctx context.Context, line []byte) (over bool, err error) {
	var l claudeLine
	if err := json.Unmarshal(line, &l, lenient); err != nil {
		return false, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	switch l.Type {
	case "control_request":
		return false, c.control(ctx, line, &l)
	case "control_cancel_request":
		c.takeBack(l.RequestID)
		return false, nil
	case "control_response":
		if l.Response.Subtype == "error" {
			return false, fmt.Errorf("the agent refuses to be gated: %.200s", l.Response.Error)
		}
		return false, nil
	case "system":
		if l.Subtype == "init" {
			c.session, c.dir = l.Session, l.Dir
		}
	case "assistant", "user":
		err = c.message(l.Message)
	}
	c.pass(line)
	return l.Type == "result", err
}

// claudeRequest is what Claude Code asks.
type claudeRequest struct {
	Subtype string         `json:"subtype"`
	Tool    string         `json:"tool_name"`
	Input   jsontext.Value `json:"input"`
	ID      string         `json:"tool_use_id"`
	Agent   string         `json:"agent_id"`
	Hook    string         `json:"callback_id"`
}

func (c *claude) control(ctx context.Context, line []byte, l *claudeLine) error {
	var r claudeRequest
	// The whole line is read strictly: an answer goes to what it names.
	if !jsontext.Value(line).IsValid() || json.Unmarshal(l.Request, &r) != nil {
		return c.reply(l.RequestID, "error", "the request cannot be read")
	}
	switch {
	case r.Subtype == "can_use_tool":
		t := Tool{Name: r.Tool, Args: r.Input, Dir: c.dir, ID: r.ID, Session: c.session, Path: c.pathOf(r.ID, r.Agent), Rewrites: c.rewrites}
		c.question(ctx, l.RequestID, t, func(v Verdict) error {
			if v.Answer != Run {
				return c.reply(l.RequestID, "success", object{"behavior": "deny", "message": v.Why})
			}
			input := r.Input
			if v.Args != nil {
				input = v.Args
			}
			return c.reply(l.RequestID, "success", object{"behavior": "allow", "updatedInput": input})
		})
		return nil
	case r.Subtype == "hook_callback" && r.Hook == hookID:
		c.notePath(r.ID, r.Input)
		return c.reply(l.RequestID, "success", object{"hookSpecificOutput": object{
			"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "the gate decides",
		}})
	}
	return c.reply(l.RequestID, "error", "the gate does not know this request")
}

func (c *claude) reply(id, subtype string, body any) error {
	response := object{"subtype": subtype, "request_id": id}
	if subtype == "error" {
		response["error"] = body
	} else {
		response["response"] = body
	}
	return c.send(object{"type": "control_response", "response": response})
}

// notePath remembers which sub-agent a tool use belongs to: the hook tells it.
func (c *claude) notePath(id string, event jsontext.Value) {
	var e struct {
		Agent string `json:"agent_id"`
	}
	if json.Unmarshal(event, &e, lenient) == nil && e.Agent != "" {
		c.paths[id] = e.Agent
	}
}

func (c *claude) pathOf(id, said string) string {
	if said != "" {
		return said
	}
	return c.paths[id]
}

// message looks for tool uses and for how they ended.
func (c *claude) message(raw jsontext.Value) error {
	var m struct {
		Content jsontext.Value `json:"content"`
	}
	var blocks []struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Name   string `json:"name"`
		Use    string `json:"tool_use_id"`
		Failed bool   `json:"is_error"`
	}
	if json.Unmarshal(raw, &m, lenient) != nil || json.Unmarshal(m.Content, &blocks, lenient) != nil {
		return nil // plain text
	}
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			c.names[b.ID] = b.Name
		case "tool_result":
			outcome := Succeeded
			if b.Failed {
				outcome = Failed
			}
			if err := c.ended(b.Use, c.names[b.Use], outcome); err != nil {
				return err
			}
		}
	}
	return nil
}
