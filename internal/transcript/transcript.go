package transcript

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// Names lists the agents whose transcripts can be compared.
func Names() []string { return []string{"claude", "codex"} }

// maxFile bounds what is read of one transcript.
const maxFile = 64 << 20

// Sessions reads the sessions of an agent that were written to since a time.
func Sessions(name, home string, since time.Time) ([]Session, error) {
	var root string
	var read func(line []byte, s *reader)
	switch name {
	case "claude":
		root, read = filepath.Join(home, ".claude", "projects"), readClaude
	case "codex":
		root, read = filepath.Join(home, ".codex", "sessions"), readCodex
	default:
		return nil, nil
	}
	var out []Session
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return nil // what cannot be read speaks neither for nor against
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Before(since) || info.Size() > maxFile {
			return nil
		}
		s, err := readFile(path, read)
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
}

func readFile(path string, read func([]byte, *reader)) (Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return Session{}, err
	}
	defer f.Close()
	r := &reader{ended: make(map[string]bool)}
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
			r.began = append(r.began, Call{ID: b.ID, Tool: b.Name})
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
		r.began = append(r.began, Call{ID: p.Call, Tool: p.Name})
	case strings.HasSuffix(p.Type, "_call_output"):
		r.ended[p.Call] = true
	}
}
