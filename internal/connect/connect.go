package connect

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Scope says whose settings are written.
type Scope string

// The scopes.
const (
	// User is the person's own settings, for all their projects.
	User Scope = "user"
	// Project is the settings of one directory, on this machine alone.
	Project Scope = "project"
	// Machine is the administrator's settings, which neither the person nor a
	// repository can switch off. Not every agent has them.
	Machine Scope = "machine"
)

// Place is where settings lie.
type Place struct {
	Scope Scope
	// Home is the person's home, Dir the project.
	Home, Dir string
	// Root is put in front of the machine's paths, for images and tests.
	Root string
}

// Hook is the command that agents are told to run.
type Hook struct {
	// Program is gatehouse-hook, or gatehouse with the argument hook.
	Program []string
	// Socket and Owner say where the gate is and which user it must be.
	Socket string
	Owner  int
	// Start is the gatehouse to start when the gate is away, and Home its home;
	// empty where a service manager does that.
	Start, Home string
	// Defer lets a headless host come back later.
	Defer bool
}

// Seconds that a host gives the hook, and the hook gives the gate. The
// difference is what a slow machine may take to start a process.
const (
	hostTimeout = 300
	ownDeadline = 240
)

// args is the hook's command line for an agent.
func (h *Hook) args(agent string, deadline int) []string {
	args := append(slices.Clone(h.Program), agent, "--socket", h.Socket, "--owner", strconv.Itoa(h.Owner), "--deadline", strconv.Itoa(deadline))
	if h.Start != "" {
		args = append(args, "--program", h.Start, "--home", h.Home)
	}
	if h.Defer {
		args = append(args, "--defer")
	}
	return args
}

// line is the hook's command line.
func (h *Hook) line(agent string, deadline int) string {
	words := h.args(agent, deadline)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// command is the hook's command line for a host that runs it with a shell. A
// program that is missing, killed or broken ends with some code, and hosts go
// on at any code but 2, and some of them at a 2 without a word; the shell makes
// a block of them all.
func (h *Hook) command(agent string, deadline int) string {
	return h.line(agent, deadline) + " || { [ $? = 2 ] || echo 'gatehouse: blocked: the hook failed' >&2; exit 2; }"
}

// quote writes a word for a shell.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@=,", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// ours recognises a command line that an earlier connect wrote.
func ours(command, agent string) bool {
	return strings.Contains(command, "gatehouse") && strings.Contains(command, "hook") && strings.Contains(command, " "+agent+" --socket ")
}

// Change is what one file becomes.
type Change struct {
	Path string
	// Old is nil where there is no file, New where there shall be none.
	Old, New []byte
}

// Plan is what connecting would change.
type Plan struct {
	Agent   string
	Changes []Change
	// Notes say what a person should know.
	Notes []string
}

// agent is what is particular about connecting one agent.
type agent struct {
	// title is what people call it, program its command.
	title, program string
	// files returns what to change; a nil hook takes the gate out.
	files func(p Place, h *Hook) ([]edit, []string, error)
}

// edit is one file with what to make of it, given what is there and what was
// there before the gate.
type edit struct {
	path string
	make func(old, before []byte) ([]byte, error)
}

var agents = map[string]agent{
	"claude":   {"Claude Code", "claude", claudeFiles},
	"codex":    {"Codex", "codex", codexFiles},
	"gemini":   {"Gemini CLI", "gemini", geminiFiles},
	"grok":     {"Grok", "grok", grokFiles},
	"vibe":     {"Mistral Vibe", "vibe", vibeFiles},
	"cursor":   {"Cursor", "cursor-agent", cursorFiles},
	"copilot":  {"GitHub Copilot", "copilot", copilotFiles},
	"windsurf": {"Windsurf", "windsurf", windsurfFiles},
}

// Names lists the agents that can be connected.
func Names() []string {
	return []string{"claude", "codex", "gemini", "grok", "vibe", "cursor", "copilot", "windsurf"}
}

// Title is what people call an agent.
func Title(name string) string { return agents[name].title }

// Program is the command that an agent is started with.
func Program(name string) string { return agents[name].program }

// ErrScope says that an agent has no settings of that scope.
var ErrScope = errors.New("has no settings of that scope")

// Make plans to connect an agent, or to disconnect it if h is nil.
func Make(name string, p Place, h *Hook) (*Plan, error) {
	a, ok := agents[name]
	if !ok {
		return nil, fmt.Errorf("%q is no agent that can be connected; there are %s", name, strings.Join(Names(), ", "))
	}
	edits, notes, err := a.files(p, h)
	if err != nil {
		return nil, fmt.Errorf("%s %w", a.title, err)
	}
	edits = append(edits, skillFile(name, p, h)...)
	plan := &Plan{Agent: name, Notes: notes}
	for _, e := range edits {
		old, err := readFile(e.path)
		if err != nil {
			return nil, err
		}
		before, err := readFile(e.path + backup)
		if err != nil {
			return nil, err
		}
		made, err := e.make(old, before)
		if err != nil {
			return nil, fmt.Errorf("%s is left as it is: %w", e.path, err)
		}
		if !bytes.Equal(old, made) {
			plan.Changes = append(plan.Changes, Change{Path: e.path, Old: old, New: made})
		}
	}
	return plan, nil
}

// readFile reads a file, nil where there is none.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	return text, ignoreMissing(err)
}

// backup is the name under which the first file that was there is kept.
const backup = ".before-gatehouse"

// Apply writes what was planned. A file that was there before the gate is kept
// beside the new one, once.
func (p *Plan) Apply() error {
	for _, c := range p.Changes {
		if err := c.apply(p.Agent); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) apply(agent string) error {
	if c.New == nil {
		err := errors.Join(os.Remove(c.Path), ignoreMissing(os.Remove(c.Path+backup)))
		if filepath.Base(c.Path) == "SKILL.md" {
			_ = os.Remove(filepath.Dir(c.Path)) // the folder of the skill, unless more is in it
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(c.Path); err == nil {
		mode = info.Mode().Perm()
	}
	written := ours(string(c.Old), agent) || bytes.Contains(c.Old, []byte(skillMark)) || bytes.Contains(c.Old, []byte(blockBegin)) // by an earlier connect
	if _, err := os.Lstat(c.Path + backup); c.Old != nil && !written && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(c.Path+backup, c.Old, mode); err != nil {
			return err
		}
	}
	// Written beside and moved into place: an agent that reads meanwhile sees
	// the old file or the new one.
	next := c.Path + ".gatehouse-new"
	if err := os.WriteFile(next, c.New, mode); err != nil {
		return err
	}
	target := c.Path
	if real, err := filepath.EvalSymlinks(c.Path); err == nil {
		target = real // a link into someone's dotfiles stays a link
	}
	return os.Rename(next, target)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
