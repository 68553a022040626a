package inrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ACP speaks the Agent Client Protocol. The client offers neither files nor
// terminals, so that the agent works with its own tools, which ask. The channel
// carries a bare no; the words for the model are its next prompt.
func ACP(start ACPStart, ask Ask) Drive {
	return func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
		read, known := acpTools[start.Host]
		if !known {
			return fmt.Errorf("%q is no agent that speaks this protocol here", start.Host)
		}
		c := &acp{start: start, read: read, names: make(map[string]string)}
		c.rpc = &rpc{conversation: newConversation(ask, in, log), version: "2.0", asked: c.asked, told: c.told, waiting: make(map[int]func(jsontext.Value) error)}
		return c.hold(ctx, out, c.begin, c.take)
	}
}

// maxRounds is how often a model is told why its calls were refused. Grok ends
// its turn at every no.
const maxRounds = 8

type acp struct {
	*rpc
	start   ACPStart
	read    func(t *acpTool, dir string) (Tool, error)
	session string
	running bool // the prompt was given: what is told is about it
	names   map[string]string
	said    strings.Builder
	usage   Usage

	rounds  int
	refused []string // the words for the model; guarded by mu
}

func (c *acp) begin() error {
	none := object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false}
	return c.request("initialize", object{"protocolVersion": 1, "clientCapabilities": none}, func(result jsontext.Value) error {
		params := object{"cwd": c.start.Dir, "mcpServers": []any{}}
		if c.start.Session == "" {
			return c.request("session/new", params, c.started)
		}
		var r struct {
			Can struct {
				Load bool `json:"loadSession"`
			} `json:"agentCapabilities"`
		}
		if json.Unmarshal(result, &r, lenient) != nil || !r.Can.Load {
			return errors.New("the agent cannot go on with a session")
		}
		params["sessionId"] = c.start.Session
		return c.request("session/load", params, c.started)
	})
}

func (c *acp) started(result jsontext.Value) error {
	var r struct {
		Session string `json:"sessionId"`
		Models  struct {
			Current string `json:"currentModelId"`
		} `json:"models"`
		Modes struct {
			Current string `json:"currentModeId"`
		} `json:"modes"`
	}
	if json.Unmarshal(result, &r, lenient) != nil {
		return fmt.Errorf("%w: no session was started", ErrGarbage)
	}
	if c.session = r.Session; c.session == "" {
		c.session = c.start.Session // loaded
	}
	switch r.Modes.Current {
	case "", "default", "plan", "ask":
	default:
		return fmt.Errorf("the agent does not ask about its calls: its mode is %.60q", r.Modes.Current)
	}
	c.tell(Line{Type: "session", Session: c.session, Model: r.Models.Current, Approval: r.Modes.Current})
	if r.Modes.Current == "" {
		return c.ready(nil)
	}
	// Gemini CLI tells the history of a session after it has answered; it has
	// told all of it when it answers the next request.
	return c.request("session/set_mode", object{"sessionId": c.session, "modeId": r.Modes.Current}, c.ready)
}

// ready gives the prompt.
func (c *acp) ready(jsontext.Value) error {
	c.running = true
	return c.prompt(c.start.Prompt)
}

func (c *acp) prompt(words string) error {
	prompt := []object{{"type": "text", "text": words}}
	return c.request("session/prompt", object{"sessionId": c.session, "prompt": prompt}, c.turned)
}

// turned takes the end of a turn. Where calls were refused, the model is told
// why and goes on.
func (c *acp) turned(result jsontext.Value) error {
	c.flush()
	var r struct {
		Stop string         `json:"stopReason"`
		Meta jsontext.Value `json:"_meta"`
	}
	if json.Unmarshal(result, &r, lenient) != nil {
		return fmt.Errorf("%w: the turn ended without a reason", ErrGarbage)
	}
	c.count(r.Meta)
	c.mu.Lock()
	why := c.refused
	c.refused = nil
	c.mu.Unlock()
	if len(why) > 0 && c.rounds < maxRounds {
		c.rounds++
		return c.prompt(strings.Join(why, "\n"))
	}
	c.tell(Line{Type: "usage", Usage: &c.usage})
	c.tell(Line{Type: "end", Stop: r.Stop})
	c.over = true
	return nil
}

// count adds the tokens of a turn, which Gemini and Grok tell each in its way.
func (c *acp) count(meta jsontext.Value) {
	var m struct {
		Quota struct {
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
				Cached int64 `json:"cached_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
		Usage struct {
			Input      int64 `json:"inputTokens"`
			Output     int64 `json:"outputTokens"`
			Cached     int64 `json:"cachedReadTokens"`
			CacheWrite int64 `json:"cacheCreationTokens"`
			Reasoning  int64 `json:"reasoningTokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(meta, &m, lenient) != nil {
		return
	}
	c.usage.Input += m.Quota.Tokens.Input + m.Usage.Input
	c.usage.Output += m.Quota.Tokens.Output + m.Usage.Output
	c.usage.Cached += m.Quota.Tokens.Cached + m.Usage.Cached
	c.usage.CacheWrite += m.Usage.CacheWrite
	c.usage.Reasoning += m.Usage.Reasoning
}

// acpOption is a way to answer.
type acpOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

func (c *acp) asked(ctx context.Context, m *message) error {
	var p struct {
		Session string      `json:"sessionId"`
		Tool    acpTool     `json:"toolCall"`
		Options []acpOption `json:"options"`
	}
	if !m.strict || m.Method != "session/request_permission" || json.Unmarshal(m.Params, &p) != nil {
		return c.decline(m)
	}
	t, err := c.read(&p.Tool, c.start.Dir)
	t.ID, t.Session = p.Tool.ID, c.session
	if p.Session != c.session {
		t.Path = p.Session
	}
	if !slices.ContainsFunc(p.Options, func(o acpOption) bool { return o.Kind == "allow_once" }) {
		err = errNotOnce
	}
	answer := func(v Verdict) error { return c.choose(m, p.Options, v) }
	if err != nil {
		c.mu.Lock()
		c.settled[t.ID] = true
		c.mu.Unlock()
		c.settle(t, Verdict{Why: "Denied: " + err.Error() + "."}, answer)
		return nil
	}
	c.question(ctx, string(m.ID), t, answer)
	return nil
}

var errNotOnce = errors.New("the agent can only be told to run it again and again")

// choose answers with the option that is good for this once. Without one the
// question is cancelled.
func (c *acp) choose(m *message, options []acpOption, v Verdict) error {
	want := "reject_once"
	if v.Answer == Run {
		want = "allow_once"
	} else if v.Why != "" {
		c.mu.Lock()
		c.refused = append(c.refused, v.Why)
		c.mu.Unlock()
	}
	for _, o := range options {
		if o.Kind == want {
			return c.respond(m, object{"outcome": object{"outcome": "selected", "optionId": o.ID}})
		}
	}
	return c.respond(m, object{"outcome": object{"outcome": "cancelled"}})
}

// told takes a notification. What comes before the prompt is the history of a
// session that was loaded.
func (c *acp) told(method string, params jsontext.Value) error {
	var p struct {
		Session string `json:"sessionId"`
		Update  struct {
			Kind    string         `json:"sessionUpdate"`
			ID      string         `json:"toolCallId"`
			Status  string         `json:"status"`
			Title   string         `json:"title"`
			Content jsontext.Value `json:"content"`
			Meta    grokMeta       `json:"_meta"`
		} `json:"update"`
	}
	if method != "session/update" || !c.running || json.Unmarshal(params, &p, lenient) != nil {
		return nil
	}
	u := &p.Update
	if u.Kind == "agent_message_chunk" {
		if p.Session == c.session {
			var content struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(u.Content, &content, lenient) == nil {
				c.said.WriteString(content.Text)
			}
		}
		return nil
	}
	c.flush()
	if u.Kind != "tool_call" && u.Kind != "tool_call_update" {
		return nil
	}
	if name := u.Meta.Tool.Name; name != "" {
		c.names[u.ID] = name
	} else if name := geminiName(u.ID); c.start.Host == "gemini" && name != "" {
		c.names[u.ID] = name
	}
	switch {
	case u.Kind == "tool_call": // it has not ended, or is history
	case u.Status == "completed":
		return c.ended(u.ID, c.names[u.ID], Succeeded)
	case u.Status == "failed":
		return c.ended(u.ID, c.names[u.ID], Failed)
	}
	return nil
}

// flush tells the message that came in pieces.
func (c *acp) flush() {
	if c.said.Len() > 0 {
		c.tell(Line{Type: "text", Text: c.said.String()})
		c.said.Reset()
	}
}
