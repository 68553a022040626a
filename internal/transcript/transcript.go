package transcript

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Call is a call of a tool that ran.
type Call struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
}

// Session is what an agent wrote down about one session.
type Session struct {
	// Ref is the agent's name of it.
	Ref  string
	File string
	// Calls are those that ran, in order.
	Calls []Call
}

// maxFile bounds what is read of one transcript.
const maxFile = 64 << 20

// formats say where an agent writes its transcripts, and how.
var formats = map[string]struct {
	root, files string
	read        func(line []byte, r *reader)
}{
	"claude":  {".claude/projects", "*.jsonl", readClaude},
	"codex":   {".codex/sessions", "*.jsonl", readCodex},
	"gemini":  {".gemini/tmp", "session-*.jsonl", readGemini},
	"grok":    {".grok/sessions", "updates.jsonl", readGrok},
	"copilot": {".copilot/session-state", "events.jsonl", readCopilot},
}

// Sessions reads the sessions of an agent that were written to since a time.
func Sessions(name, home string, since time.Time) ([]Session, error) {
	format, ok := formats[name]
	if !ok {
		return nil, nil
	}
	root := filepath.Join(home, filepath.FromSlash(format.root))
	var out []Session
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(format.files, filepath.Base(path)); err != nil || d.IsDir() || !ok {
			return nil // what cannot be read speaks neither for nor against
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Before(since) || info.Size() > maxFile {
			return nil
		}
		s, err := readFile(path, format.read)
		if err == nil && s.Ref != "" && len(s.Calls) > 0 {
			out = append(out, s)
		}
		return err
	})
	return out, err
}

// reader gathers what the lines of a transcript say.
type reader struct {
	ref   string
	began []Call
	ended map[string]bool // and did not fail
	times map[string]int  // how often a use was seen that the host gave no id
	// pending are the calls that began, by the transcript's own ids, with their
	// arguments in place of an id that a hook was shown.
	pending map[string]Call
}

// ran notes a call that ran, by what it is.
func (r *reader) ran(tool string, args []byte) {
	if canonical, err := call.Canonical(args); err == nil {
		args = canonical
	}
	use := call.HostUse(r.ref, tool, args)
	r.times[use]++
	id := call.NthUse(use, r.times[use])
	r.begin(Call{ID: id, Tool: tool})
	r.ended[id] = true
}

// begin notes a call, once.
func (r *reader) begin(c Call) {
	if !slices.Contains(r.began, c) {
		r.began = append(r.began, c)
	}
}

func readFile(path string, read func([]byte, *reader)) (Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return Session{}, err
	}
	defer f.Close()
	r := &reader{ended: make(map[string]bool), times: make(map[string]int), pending: make(map[string]Call)}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxFile)
	for lines.Scan() {
		read(lines.Bytes(), r)
	}
	s := Session{Ref: r.ref, File: path}
	for _, c := range r.began {
		if r.ended[c.ID] {
			s.Calls = append(s.Calls, c)
		}
	}
	return s, lines.Err()
}

// readClaude reads a line of Claude Code: messages with the model's calls and
// the results that it was shown.
func readClaude(line []byte, r *reader) {
	var in struct {
		Session string `json:"sessionId"`
		Message struct {
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &in) != nil {
		return
	}
	if in.Session != "" {
		r.ref = in.Session
	}
	var blocks []struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Name   string `json:"name"`
		Use    string `json:"tool_use_id"`
		Failed bool   `json:"is_error"`
	}
	if json.Unmarshal(in.Message.Content, &blocks) != nil {
		return
	}
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use":
			r.begin(Call{ID: b.ID, Tool: b.Name})
		case b.Type == "tool_result" && !b.Failed:
			r.ended[b.Use] = true
		}
	}
}

// readCodex reads a line of Codex: one item of its conversation.
func readCodex(line []byte, r *reader) {
	var in struct {
		Type    string `json:"type"`
		Payload struct {
			Type    string `json:"type"`
			ID      string `json:"id"`
			Session string `json:"session_id"`
			Call    string `json:"call_id"`
			Name    string `json:"name"`
		} `json:"payload"`
	}
	if json.Unmarshal(line, &in, jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	p := &in.Payload
	switch {
	case in.Type == "session_meta":
		if r.ref = p.Session; r.ref == "" {
			r.ref = p.ID
		}
	case p.Type == "function_call" || p.Type == "custom_tool_call":
		r.begin(Call{ID: p.Call, Tool: p.Name})
	case strings.HasSuffix(p.Type, "_call_output"):
		r.ended[p.Call] = true
	}
}

// readGemini reads a line of the Gemini CLI: a message, written again whenever
// it has grown. It shows hooks no ids of its own, so a call is named by what it
// is; the CLI's id tells here which of them were written before.
func readGemini(line []byte, r *reader) {
	var in struct {
		Session string `json:"sessionId"`
		Calls   []struct {
			ID     string         `json:"id"`
			Name   string         `json:"name"`
			Args   jsontext.Value `json:"args"`
			Status string         `json:"status"`
		} `json:"toolCalls"`
	}
	if json.Unmarshal(line, &in, jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	if in.Session != "" {
		r.ref = in.Session
	}
	for _, c := range in.Calls {
		if c.Status != "success" || r.ended[c.ID] {
			continue
		}
		r.ended[c.ID] = true
		r.ran(c.Name, c.Args)
	}
}

// readCopilot reads a line of the Copilot CLI: something that happened. Its
// hooks are shown no ids, either.
func readCopilot(line []byte, r *reader) {
	var in struct {
		Type string `json:"type"`
		Data struct {
			Session string         `json:"sessionId"`
			ID      string         `json:"toolCallId"`
			Name    string         `json:"toolName"`
			Args    jsontext.Value `json:"arguments"`
			Success bool           `json:"success"`
		} `json:"data"`
	}
	if json.Unmarshal(line, &in, jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	d := &in.Data
	switch in.Type {
	case "session.start":
		r.ref = d.Session
	case "tool.execution_start":
		r.pending[d.ID] = Call{ID: string(d.Args), Tool: d.Name}
	case "tool.execution_complete":
		if c, begun := r.pending[d.ID]; begun && d.Success {
			r.ran(c.Tool, []byte(c.ID))
		}
		delete(r.pending, d.ID)
	}
}

// readGrok reads a line of Grok: an update of its session.
func readGrok(line []byte, r *reader) {
	var in struct {
		Params struct {
			Session string `json:"sessionId"`
			Update  struct {
				Kind   string `json:"sessionUpdate"`
				ID     string `json:"toolCallId"`
				Title  string `json:"title"`
				Status string `json:"status"`
			} `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &in, jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	u := &in.Params.Update
	switch {
	case u.Kind == "tool_call":
		r.ref = in.Params.Session
		r.begin(Call{ID: u.ID, Tool: u.Title})
	case u.Kind == "tool_call_update" && u.Status == "completed":
		r.ended[u.ID] = true
	}
}
