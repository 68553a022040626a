package connect

import (
	"os"
	"path/filepath"
	"strings"
)

// Found is a settings file that has the gate's hook in it.
type Found struct {
	Scope Scope  `json:"scope"`
	Path  string `json:"path"`
	// Command is the hook's command line, Socket the gate it leads to.
	Command string `json:"command"`
	Socket  string `json:"socket"`
	// Missing says that the hook's program is not there.
	Missing string `json:"missing,omitzero"`
	// Writable says that whoever runs this can change the file.
	Writable bool `json:"writable"`
}

// Inspect says where an agent is connected, by reading its settings.
func Inspect(name string, p Place) []Found {
	var found []Found
	for _, scope := range []Scope{Machine, User, Project} {
		p.Scope = scope
		edits, _, err := agents[name].files(p, nil)
		if err != nil {
			continue
		}
		for _, e := range edits {
			text, err := os.ReadFile(e.path)
			if err != nil {
				continue
			}
			if f, ok := hookIn(name, string(text)); ok {
				f.Scope, f.Path, f.Writable = scope, e.path, writable(e.path)
				found = append(found, f)
				break
			}
		}
	}
	return found
}

// hookIn finds the gate's command line in a settings file, whatever its format.
func hookIn(name, text string) (Found, bool) {
	for line := range strings.Lines(text) {
		mark := " " + name + " --socket "
		i := strings.Index(line, mark)
		if i < 0 || !ours(line, name) {
			continue
		}
		start := strings.LastIndexByte(line[:i], '"') + 1
		command := strings.TrimRight(line[start:], " ,\n")
		command = strings.TrimSuffix(command, `"`)
		f := Found{Command: command}
		f.Socket, _, _ = strings.Cut(line[i+len(mark):], " ")
		f.Socket = strings.Trim(f.Socket, "'")
		program := strings.Trim(strings.TrimSuffix(line[start:i], " hook"), "'")
		if info, err := os.Stat(program); err != nil || info.Mode()&0o111 == 0 {
			f.Missing = program
		}
		return f, true
	}
	return Found{}, false
}

// writable says whether this process could change a file, or put another in
// its place.
func writable(path string) bool {
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
		return f.Close() == nil
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".gatehouse-probe-")
	if err != nil {
		return false
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name()) // it was only to see whether it can be made
	return true
}
