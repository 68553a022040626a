package provider

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// Result is what a CLI said and what it cost.
type Result struct {
	Text    string `json:"text"`
	Session string `json:"sessionId,omitzero"`
	Model   string `json:"model,omitzero"`
	// Stop is why the run ended, in the CLI's own words.
	Stop  string  `json:"stopReason,omitzero"`
	Usage Usage   `json:"usage,omitzero"`
	Cost  float64 `json:"costUsd,omitzero"`
	// CostKnown says that the CLI told the cost.
	CostKnown bool `json:"-"`
	Turns     int  `json:"numTurns,omitzero"`
	// Denials are tool calls that the CLI says were refused.
	Denials []Denial `json:"permissionDenials,omitzero"`
	// Failed says that the CLI says so, whatever its exit code is; Error is
	// what it says.
	Failed bool   `json:"isError,omitzero"`
	Error  string `json:"error,omitzero"`
	// Sandbox and Approval are the CLI's own posture where it tells.
	Sandbox  string `json:"sandbox,omitzero"`
	Approval string `json:"approvalMode,omitzero"`
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"inputTokens,omitzero"`
	Output     int64 `json:"outputTokens,omitzero"`
	CacheRead  int64 `json:"cacheReadTokens,omitzero"`
	CacheWrite int64 `json:"cacheCreationTokens,omitzero"`
	Reasoning  int64 `json:"reasoningTokens,omitzero"`
}

// Denial is a tool call that was refused.
type Denial struct {
	Tool string `json:"tool"`
	Why  string `json:"reason,omitzero"`
}

// lenient reads what others print: unknown members and odd UTF-8 are theirs.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// eachLine calls f for every line that is a JSON object.
func eachLine(out []byte, f func(line []byte)) {
	for line := range bytes.Lines(out) {
		if line = bytes.TrimSpace(line); len(line) > 1 && line[0] == '{' {
			f(line)
		}
	}
}

type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
}

func (u claudeUsage) usage() Usage {
	return Usage(u)
}

// parseClaude reads Claude Code's JSON: lines of a stream, or one object. The
// last result counts.
func parseClaude(out []byte) (r Result) {
	done := false
	eachLine(out, func(line []byte) {
		var l struct {
			Type    string                    `json:"type"`
			Subtype string                    `json:"subtype"`
			Session string                    `json:"session_id"`
			Model   string                    `json:"model"`
			IsError bool                      `json:"is_error"`
			Result  string                    `json:"result"`
			Stop    string                    `json:"stop_reason"`
			Turns   int                       `json:"num_turns"`
			Cost    *float64                  `json:"total_cost_usd"`
			Usage   claudeUsage               `json:"usage"`
			Models  map[string]jsontext.Value `json:"modelUsage"`
			Denials []struct {
				Tool string `json:"tool_name"`
			} `json:"permission_denials"`
			Message struct {
				Model   string `json:"model"`
				Content []struct {
					Type string `json:"type"`
					Text string `json:"text"`
				} `json:"content"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &l, lenient) != nil {
			return
		}
		if l.Session != "" {
			r.Session = l.Session
		}
		switch l.Type {
		case "system":
			if l.Model != "" {
				r.Model = l.Model
			}
		case "assistant":
			if l.Message.Model != "" {
				r.Model = l.Message.Model
			}
			for _, c := range l.Message.Content {
				if c.Type == "text" && !done {
					r.Text = c.Text
				}
			}
		case "result":
			done = true
			r.Text, r.Failed, r.Stop, r.Turns, r.Usage = l.Result, l.IsError, l.Stop, l.Turns, l.Usage.usage()
			if l.Cost != nil {
				r.Cost, r.CostKnown = *l.Cost, true
			}
			if l.IsError {
				r.Error = l.Result
				if r.Error == "" {
					r.Error = l.Subtype
				}
			}
			for name := range l.Models {
				if r.Model == "" {
					r.Model = name
				}
			}
			r.Denials = nil
			for _, d := range l.Denials {
				r.Denials = append(r.Denials, Denial{Tool: d.Tool})
			}
		}
	})
	if !done {
		r.Failed, r.Error = true, "it ended without a result"
	}
	return r
}

// parseCodex reads the events of `codex exec --json`.
func parseCodex(out []byte) (r Result) {
	done := false
	eachLine(out, func(line []byte) {
		var l struct {
			Type   string `json:"type"`
			Thread string `json:"thread_id"`
			Usage  struct {
				Input     int64 `json:"input_tokens"`
				Cached    int64 `json:"cached_input_tokens"`
				Write     int64 `json:"cache_write_input_tokens"`
				Output    int64 `json:"output_tokens"`
				Reasoning int64 `json:"reasoning_output_tokens"`
			} `json:"usage"`
			Message string `json:"message"`
			Error   struct {
				Message string `json:"message"`
			} `json:"error"`
			Item struct {
				Type    string `json:"type"`
				Text    string `json:"text"`
				Status  string `json:"status"`
				Command string `json:"command"`
			} `json:"item"`
		}
		if json.Unmarshal(line, &l, lenient) != nil {
			return
		}
		switch l.Type {
		case "thread.started":
			r.Session = l.Thread
		case "item.completed":
			switch {
			case l.Item.Type == "agent_message":
				r.Text = l.Item.Text
			case l.Item.Status == "declined":
				r.Denials = append(r.Denials, Denial{Tool: l.Item.Type, Why: l.Item.Command})
			}
		case "turn.completed":
			done, r.Turns, r.Stop = true, r.Turns+1, "end_turn"
			// Codex counts what was cached among its input.
			r.Usage = Usage{Input: l.Usage.Input - l.Usage.Cached, Output: l.Usage.Output, CacheRead: l.Usage.Cached, CacheWrite: l.Usage.Write, Reasoning: l.Usage.Reasoning}
		case "turn.failed", "error":
			r.Failed, r.Error = true, l.Error.Message+l.Message
		}
	})
	if !done && !r.Failed {
		r.Failed, r.Error = true, "it ended without finishing its turn"
	}
	return r
}

// parseGemini reads the object of `gemini -o json`.
func parseGemini(out []byte) (r Result) {
	var l struct {
		Session  string `json:"session_id"`
		Response string `json:"response"`
		Error    *struct {
			Message string `json:"message"`
		} `json:"error"`
		Stats struct {
			Models map[string]struct {
				API struct {
					Requests int `json:"totalRequests"`
				} `json:"api"`
				Tokens struct {
					Prompt     int64 `json:"prompt"`
					Input      int64 `json:"input"`
					Candidates int64 `json:"candidates"`
					Cached     int64 `json:"cached"`
					Thoughts   int64 `json:"thoughts"`
				} `json:"tokens"`
			} `json:"models"`
			Tools struct {
				Decisions struct {
					Reject int `json:"reject"`
				} `json:"totalDecisions"`
			} `json:"tools"`
		} `json:"stats"`
	}
	start := bytes.IndexByte(out, '{')
	if start < 0 || json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(out[start:]), lenient), &l, lenient) != nil {
		return Result{Failed: true, Error: "it ended without a result", Text: string(bytes.TrimSpace(out))}
	}
	r.Session, r.Text, r.Stop = l.Session, l.Response, "end_turn"
	if l.Error != nil {
		r.Failed, r.Error, r.Stop = true, l.Error.Message, "error"
	}
	for name, m := range l.Stats.Models {
		// The input that was not cached is told apart; the prompt is both.
		r.Usage.Input += m.Tokens.Prompt - m.Tokens.Cached
		r.Usage.Output += m.Tokens.Candidates
		r.Usage.CacheRead += m.Tokens.Cached
		r.Usage.Reasoning += m.Tokens.Thoughts
		r.Turns += m.API.Requests
		if r.Model == "" || name < r.Model {
			r.Model = name
		}
	}
	for range l.Stats.Tools.Decisions.Reject {
		r.Denials = append(r.Denials, Denial{Tool: "tool"})
	}
	return r
}

// parseGrok reads the object of `grok --output-format json`. A refused tool ends
// its turn as cancelled, with exit code 0: that is a failure.
func parseGrok(out []byte) (r Result) {
	found := false
	read := func(text []byte) {
		var l struct {
			Text    string                    `json:"text"`
			Stop    string                    `json:"stopReason"`
			Session string                    `json:"sessionId"`
			Turns   int                       `json:"num_turns"`
			Usage   claudeUsage               `json:"usage"`
			Error   string                    `json:"error"`
			Cost    *float64                  `json:"total_cost_usd"`
			Models  map[string]jsontext.Value `json:"modelUsage"`
		}
		if json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(text), lenient), &l, lenient) != nil {
			return
		}
		found = true
		r = Result{Text: l.Text, Stop: l.Stop, Session: l.Session, Turns: l.Turns, Usage: l.Usage.usage()}
		if l.Cost != nil {
			r.Cost, r.CostKnown = *l.Cost, true
		}
		for name := range l.Models {
			r.Model = name
		}
		if l.Error != "" {
			r.Failed, r.Error = true, l.Error
		}
	}
	if start := bytes.IndexByte(out, '{'); start >= 0 {
		read(out[start:])
	}
	switch {
	case !found:
		return Result{Failed: true, Error: "it ended without a result", Text: string(bytes.TrimSpace(out))}
	case strings.EqualFold(r.Stop, "cancelled"):
		r.Failed, r.Error = true, "it stopped because a tool call was refused"
		r.Denials = append(r.Denials, Denial{Tool: "tool"})
	}
	return r
}

// parseLines reads the log of a channel.
func parseLines(out []byte) (r Result) {
	ended := false
	eachLine(out, func(line []byte) {
		var l inrun.Line
		if json.Unmarshal(line, &l, lenient) != nil {
			return
		}
		switch l.Type {
		case "session":
			r.Session, r.Model, r.Sandbox, r.Approval = l.Session, l.Model, l.Sandbox, l.Approval
		case "text":
			r.Text = l.Text
		case "denied":
			r.Denials = append(r.Denials, Denial{Tool: l.Name, Why: l.Text})
		case "usage":
			if u := l.Usage; u != nil {
				r.Usage = Usage{Input: u.Input - u.Cached, Output: u.Output, CacheRead: u.Cached, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning}
			}
		case "end":
			ended, r.Stop = true, l.Stop
			if l.Text != "" || slices.Contains([]string{"failed", "interrupted"}, l.Stop) {
				r.Failed, r.Error = true, l.Text
			}
		}
	})
	if !ended {
		r.Failed, r.Error = true, "the conversation ended before the turn did"
	}
	return r
}

// parseVibe reads the messages of `vibe --output streaming`, and the tokens and
// the cost from what Vibe keeps of the session on disk.
func parseVibe(out []byte, home string) (r Result) {
	found := false
	eachLine(out, func(line []byte) {
		var l struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		}
		var text string
		if json.Unmarshal(line, &l, lenient) != nil || json.Unmarshal(l.Content, &text, lenient) != nil {
			return
		}
		switch l.Role {
		case "assistant":
			found, r.Text = true, text
		case "tool":
			// A refused call is told to the model as an error of its tool.
			if inner, ok := strings.CutPrefix(text, "<tool_error>"); ok {
				if tool, why, denied := strings.Cut(strings.TrimSuffix(inner, "</tool_error>"), " was denied: "); denied {
					r.Denials = append(r.Denials, Denial{Tool: tool, Why: why})
				}
			}
		}
	})
	if !found {
		r.Failed, r.Error, r.Text = true, "it ended without an answer", string(bytes.TrimSpace(out))
	}
	metas, _ := filepath.Glob(filepath.Join(home, "logs", "session", "session_*", "meta.json")) // the pattern is a constant
	var newest string
	for _, m := range metas {
		if m > newest {
			newest = m // the names begin with the time
		}
	}
	var meta struct {
		Session string `json:"session_id"`
		Stats   struct {
			Prompt     int64    `json:"session_prompt_tokens"`
			Completion int64    `json:"session_completion_tokens"`
			Cost       *float64 `json:"session_cost"`
		} `json:"stats"`
	}
	data, err := os.ReadFile(newest)
	if err != nil || json.Unmarshal(data, &meta, lenient) != nil {
		return r // session logging is off; doctor says so
	}
	r.Session, r.Usage = meta.Session, Usage{Input: meta.Stats.Prompt, Output: meta.Stats.Completion}
	if meta.Stats.Cost != nil {
		r.Cost, r.CostKnown = *meta.Stats.Cost, true
	}
	return r
}
