package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// step is one recorded call.
type step struct {
	Tool  string         `json:"tool"`
	Input jsontext.Value `json:"input"`
	// Truth says what the call does, marked by hand; "" if nobody marked it:
	// read, write, net, code, or ask for what a person must see every time.
	Truth string `json:"truth"`
	// Touches are the paths and hosts it changes or reaches, marked by hand.
	Touches []string `json:"touches"`
}

// session is one recorded session.
type session struct {
	name  string
	steps []step
	// dir is the working directory, which is the workspace as well.
	dir string
}

// load reads one session.
func load(file, dir string) (*session, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &session{name: strings.TrimSuffix(filepath.Base(file), ".jsonl"), dir: dir}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var st step
		if err := json.Unmarshal(lines.Bytes(), &st); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if len(st.Input) == 0 {
			st.Input = jsontext.Value("{}")
		}
		s.steps = append(s.steps, st)
	}
	if s.dir == "" {
		s.dir = s.workspace()
	}
	s.openFiles()
	return s, lines.Err()
}

// loadAll reads the sessions of a folder, or the one session of a file.
func loadAll(at, dir string) ([]*session, error) {
	files := []string{at}
	if info, err := os.Stat(at); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(at, "*.jsonl")); err != nil {
			return nil, err
		}
	}
	var all []*session
	for _, f := range files {
		s, err := load(f, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no session (*.jsonl)", at)
	}
	return all, nil
}

// defaultDir is the workspace of a session whose calls name no directory.
const defaultDir = "/workspace"

var goesTo = regexp.MustCompile(`(?:^|[;&(]\s*)cd (/[\w./+-]+)`)

// workspace reads the directory that a session works in off its calls: the
// deepest one that holds every file its file tools change and every directory
// its commands go to.
func (s *session) workspace() string {
	common := ""
	hold := func(dir string) {
		dir = path.Clean(dir)
		for common != "" && dir != common && !strings.HasPrefix(dir+"/", strings.TrimSuffix(common, "/")+"/") {
			common = path.Dir(common)
		}
		if common == "" {
			common = dir
		}
	}
	for i := range s.steps {
		st := &s.steps[i]
		var in struct {
			Command  jsontext.Value `json:"command"`
			Workdir  string         `json:"workdir"`
			FilePath string         `json:"file_path"`
			Path     string         `json:"path"`
			Content  *string        `json:"content"`
			OldText  *string        `json:"old_string"`
			FileText *string        `json:"file_text"`
			OldStr   *string        `json:"old_str"`
			Changes  []struct {
				Path string `json:"path"`
			} `json:"changes"`
		}
		if err := json.Unmarshal(st.Input, &in); err != nil {
			continue
		}
		if in.Content != nil || in.OldText != nil || in.FileText != nil || in.OldStr != nil {
			for _, p := range []string{in.FilePath, in.Path} {
				if path.IsAbs(p) {
					hold(path.Dir(p))
				}
			}
		}
		if path.IsAbs(in.Workdir) {
			hold(in.Workdir)
		}
		for _, c := range in.Changes {
			if path.IsAbs(c.Path) {
				hold(path.Dir(c.Path))
			}
		}
		for _, m := range goesTo.FindAllStringSubmatch(text(in.Command), -1) {
			hold(m[1])
		}
	}
	if common == "" || common == "/" {
		return defaultDir
	}
	return common
}

// text is a command as it was written, a list of words joined.
func text(raw jsontext.Value) string {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		return line
	}
	return string(raw)
}

// openFiles adds to calls of SWE-agent which file they are about. Its editor
// works on the file that was opened last, and its host knows which that is:
// the state that goes with every call says open_file.
func (s *session) openFiles() {
	open := ""
	for i := range s.steps {
		st := &s.steps[i]
		var in map[string]string
		if json.Unmarshal(st.Input, &in) != nil || len(in) != 1 {
			continue
		}
		words := strings.Fields(in["command"])
		if len(words) == 0 || words[0] != st.Tool {
			continue
		}
		switch {
		case (st.Tool == "open" || st.Tool == "create") && len(words) > 1:
			open = words[1]
		case st.Tool == "edit" && open != "":
			in["path"] = open
			if text, err := json.Marshal(in, json.Deterministic(true)); err == nil {
				st.Input = text
			}
		}
	}
}
