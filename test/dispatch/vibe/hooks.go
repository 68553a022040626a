package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// hook is an entry of hooks.toml.
type hook struct {
	Name    string  `toml:"name"`
	Type    string  `toml:"type"`
	Command string  `toml:"command"`
	Match   string  `toml:"match"`
	Timeout float64 `toml:"timeout"`
	Strict  bool    `toml:"strict"`
}

// readHooks reads hooks.toml. An entry without a name, with one that is there
// already, or with a backslash in its command is left out.
func readHooks(file string) ([]hook, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var root struct {
		Hooks []hook `toml:"hooks"`
	}
	if err := toml.Unmarshal(data, &root); err != nil {
		fmt.Fprintln(os.Stderr, "hooks.toml: failed to parse:", err)
		return nil, nil
	}
	var out []hook
	seen := map[string]bool{}
	for _, h := range root.Hooks {
		if h.Name == "" || h.Type == "" || h.Command == "" || seen[h.Name] || strings.Contains(h.Command, `\`) {
			fmt.Fprintf(os.Stderr, "hooks.toml: hook %q skipped\n", h.Name)
			continue
		}
		seen[h.Name] = true
		out = append(out, h)
	}
	return out, nil
}

// event is what a hook reads on its standard input.
type event struct {
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Dir        string          `json:"cwd"`
	Parent     *string         `json:"parent_session_id"`
	Event      string          `json:"hook_event_name"`
	Tool       string          `json:"tool_name"`
	CallID     string          `json:"tool_call_id"`
	Input      json.RawMessage `json:"tool_input"`
	Result     string          `json:"tool_result,omitempty"`
	Error      string          `json:"tool_error,omitempty"`
}

func (v *vibe) event(kind string, c use) event {
	return event{
		Session: v.session, Transcript: "", Dir: v.dir, Event: kind, Tool: c.Function.Name, CallID: c.ID, Input: json.RawMessage(c.Function.Arguments),
	}
}

// before runs the hooks in front of a tool. A strict hook that fails in any way
// denies; one that is not strict and fails is as if it were not there.
func (v *vibe) before(c use) (reason string, denied bool) {
	for _, h := range v.matching("before_tool", c) {
		out, err := h.run(v.event("before_tool", c))
		var answer struct {
			Decision string `json:"decision"`
			Reason   string `json:"reason"`
		}
		if err == nil && len(bytes.TrimSpace(out)) > 0 {
			err = json.Unmarshal(out, &answer)
		}
		switch {
		case err != nil && h.Strict:
			return err.Error(), true
		case err != nil:
			fmt.Fprintf(os.Stderr, "hook %s failed: %v\n", h.Name, err)
		case answer.Decision == "deny":
			return answer.Reason, true
		}
	}
	return "", false
}

// after tells the hooks behind a tool what came of it.
func (v *vibe) after(c use, result string, failed error) {
	e := v.event("after_tool", c)
	e.Result = result
	if failed != nil {
		e.Error = failed.Error()
	}
	for _, h := range v.matching("after_tool", c) {
		if _, err := h.run(e); err != nil {
			fmt.Fprintf(os.Stderr, "hook %s failed: %v\n", h.Name, err)
		}
	}
}

func (v *vibe) matching(kind string, c use) (out []hook) {
	for _, h := range v.hooks {
		if ok, err := path.Match(h.Match, c.Function.Name); h.Type == kind && (h.Match == "" || ok && err == nil) {
			out = append(out, h)
		}
	}
	return out
}

// run starts the hook without a shell; its words are separated by blanks.
func (h hook) run(e event) ([]byte, error) {
	seconds := h.Timeout
	if seconds == 0 {
		seconds = 60
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	words := strings.Fields(h.Command)
	input, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}
