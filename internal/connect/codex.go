package connect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// codexEvents are the events of Codex that the gate listens to.
var codexEvents = []string{"PreToolUse", "PermissionRequest", "PostToolUse", "SessionStart", "SessionEnd"}

// codexFiles connects Codex: by its file of hooks. Codex skips a hook that it
// does not trust, without a word; [Trust] sees to that. Hooks among the
// administrator's requirements are trusted as they are, and nobody can switch
// them off.
func codexFiles(p Place, h *Hook) ([]edit, []string, error) {
	if p.Scope == Machine {
		return []edit{codexRequirements(filepath.Join(p.Root, "/etc/codex/requirements.toml"), h)}, nil, nil
	}
	path, err := under(p, ".codex/hooks.json", ".codex/hooks.json", "")
	if err != nil {
		return nil, nil, err
	}
	edits := []edit{jsonFile(path, "codex", codexEvents, commonEntry(h, "codex", 1), nil)}
	if h == nil && p.Scope == User {
		edits = append(edits, tomlFile(filepath.Join(p.Home, ".codex", "config.toml"), func(string) (string, error) { return "", nil }))
	}
	return edits, nil, nil
}

// codexRequirements writes the administrator's file: no hooks but these, which
// run whatever a person's or a repository's settings say.
func codexRequirements(path string, h *Hook) edit {
	return tomlFile(path, func(rest string) (string, error) {
		if h == nil {
			return "", nil
		}
		if strings.TrimSpace(rest) != "" { // its first keys would end up in the last table of what is there
			return "", fmt.Errorf("%s has requirements of its own, which cannot be joined safely: move them away, connect, and add them below", path)
		}
		var out strings.Builder
		fmt.Fprintf(&out, "allow_managed_hooks_only = true\n\n[features]\nhooks = true\n\n[hooks]\nmanaged_dir = %q\n", filepath.Dir(h.Program[0]))
		for _, event := range codexEvents {
			timeout, deadline := times(event)
			fmt.Fprintf(&out, "\n[[hooks.%s]]\nmatcher = \"*\"\n[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
				event, event, strconv.Quote(h.command("codex", deadline)), timeout)
		}
		return out.String(), nil
	})
}

// codexHook is what Codex says about a hook it knows.
type codexHook struct {
	Key     string `json:"key"`
	Command string `json:"command"`
	Hash    string `json:"currentHash"`
	Trust   string `json:"trustStatus"`
	Enabled bool   `json:"enabled"`
}

// askTime is how long Codex may take to list its hooks.
const askTime = 20 * time.Second

// codexHooks asks Codex itself which hooks it knows and trusts.
func codexHooks(ctx context.Context, program string, p Place) (hooks []codexHook, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "app-server")
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "HOME="+p.Home, "CODEX_HOME="+filepath.Join(p.Home, ".codex"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, endServer(cmd, in)) }()
	ask := `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"gatehouse","version":"1"}}}` + "\n" +
		`{"method":"initialized"}` + "\n" + `{"id":2,"method":"hooks/list","params":{"cwds":[` + strconv.Quote(p.Dir) + `]}}` + "\n"
	if _, err := io.WriteString(in, ask); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var answer struct {
			ID     int `json:"id"`
			Result struct {
				Data []struct {
					Hooks []codexHook `json:"hooks"`
				} `json:"data"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || answer.ID != 2 {
			continue
		}
		for _, d := range answer.Result.Data {
			hooks = append(hooks, d.Hooks...)
		}
		return hooks, nil
	}
	return nil, errors.Join(errors.New("codex does not say which hooks it knows"), lines.Err())
}

// endServer ends the process that was asked. It goes when nobody talks to it.
func endServer(cmd *exec.Cmd, in io.Closer) error {
	_ = in.Close()
	_ = cmd.Process.Kill()
	err := cmd.Wait()
	if _, exited := err.(*exec.ExitError); exited {
		return nil
	}
	return err
}

// Trust tells Codex that the gate's own hooks are trusted, and no others. It
// returns how many are.
func Trust(ctx context.Context, program string, p Place) (trusted int, err error) {
	hooks, err := codexHooks(ctx, program, p)
	if err != nil {
		return 0, err
	}
	plan := &Plan{Agent: "codex"}
	path := filepath.Join(p.Home, ".codex", "config.toml")
	old, err := readFile(path)
	if err != nil {
		return 0, err
	}
	made, err := tomlFile(path, func(rest string) (string, error) {
		var out strings.Builder
		for _, h := range hooks {
			if !ours(h.Command, "codex") {
				continue
			}
			trusted++
			if header := `[hooks.state.` + strconv.Quote(h.Key) + `]`; !strings.Contains(rest, header) {
				fmt.Fprintf(&out, "%s\ntrusted_hash = %q\n", header, h.Hash)
			}
		}
		return out.String(), nil
	}).make(old, nil)
	if err != nil {
		return 0, err
	}
	text := string(made)
	for _, h := range hooks { // a person may have trusted an earlier form by hand
		if ours(h.Command, "codex") {
			line := regexp.MustCompile(`(?m)(` + regexp.QuoteMeta(`[hooks.state.`+strconv.Quote(h.Key)+`]`) + `\n(?:[^\[\n]*\n)*?\s*trusted_hash\s*=\s*)"[^"\n]*"`)
			text = line.ReplaceAllString(text, `${1}"`+h.Hash+`"`)
		}
	}
	if text != string(old) {
		plan.Changes = []Change{{Path: path, Old: old, New: []byte(text)}}
	}
	return trusted, plan.Apply()
}
