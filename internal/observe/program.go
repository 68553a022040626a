package observe

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// searchPath is where programs are looked for: the daemon's own PATH, which an
// agent cannot set.
func searchPath() []string { return filepath.SplitList(os.Getenv("PATH")) }

// Program says which file a command word runs, and whether an agent could
// have put it there.
func (v *view) Program(word, cwd string) shell.Program {
	file := word
	if !strings.Contains(word, "/") {
		file = lookPath(word)
		if file == "" {
			return shell.Program{State: shell.ProgramMissing}
		}
	} else if !filepath.IsAbs(file) {
		if cwd == "" {
			return shell.Program{}
		}
		file = cwd + "/" + file // not cleaned: ".." after a link is for the system to follow
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return shell.Program{State: shell.ProgramMissing}
	}
	if !systemOwned(file) || !systemOwned(real) {
		return shell.Program{State: shell.ProgramWritable, Path: real}
	}
	return shell.Program{State: shell.ProgramTrusted, Path: real}
}

func lookPath(name string) string {
	for _, dir := range searchPath() {
		if !filepath.IsAbs(dir) {
			continue // a relative entry means whatever the agent wants it to
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// systemOwned says whether a file and every directory above it belong to the
// system and can be written by nobody else.
func systemOwned(path string) bool {
	for p := path; ; p = filepath.Dir(p) {
		info, err := os.Lstat(p)
		if err != nil || !ownedByRoot(info) {
			return false
		}
		open := info.Mode().Perm() & 0o022
		if info.Mode()&fs.ModeSymlink == 0 && open != 0 && info.Mode()&fs.ModeSticky == 0 {
			return false
		}
		if info.IsDir() && info.Mode()&fs.ModeSticky != 0 && open != 0 {
			return false // /tmp and the like: anyone may add files
		}
		if p == "/" || p == filepath.Dir(p) {
			return !underHome(path)
		}
	}
}

// underHome keeps programs in a home directory from passing for the system's
// where the agent runs as root and everything belongs to it.
func underHome(path string) bool {
	home, err := os.UserHomeDir()
	return err == nil && home != "/" && (path == home || strings.HasPrefix(path, home+"/"))
}

// Path says what is at an absolute path.
func (v *view) Path(abs string) shell.PathInfo {
	info, err := os.Stat(abs)
	if err != nil {
		return shell.PathInfo{Known: os.IsNotExist(err)}
	}
	out := shell.PathInfo{Known: true, Exists: true, Dir: info.IsDir()}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		out.Real = real
	}
	return out
}

// maxScripts is the largest file that scripts are read from.
const maxScripts = 1 << 20

// maxNames is how many entries of a directory are looked at.
const maxNames = 10_000

// Names lists what is in a directory.
func (v *view) Names(dir string) (names []string, known bool) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, err = f.Readdirnames(maxNames + 1)
	return names, (err == nil || errors.Is(err, io.EOF)) && len(names) <= maxNames
}

// maxBelow is how many entries below a directory are looked at.
const maxBelow = 20_000

// Below lists what lies below a directory. What git keeps for itself is left
// out: there are no files of the work in it.
func (v *view) Below(dir string) (entries []facts.Entry, whole bool) {
	left := maxBelow
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch left--; {
		case left < 0:
			return errTooMuch
		case err != nil:
			return nil // what cannot be read here cannot be read there either
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		}
		e := facts.Entry{Path: p}
		if d.Type()&fs.ModeSymlink != 0 {
			e.Real, _ = filepath.EvalSymlinks(p) // a link to nothing leads nowhere
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err == nil
}

var errTooMuch = errors.New("more than is looked at")

// Script gives the text that a task runner would run. What runs it is read
// too for the world digest, so that an approval does not outlive a change.
func (v *view) Script(kind, dir, name string) (text string, known bool) {
	if kind != "npm" || dir == "" {
		return "", false // a Makefile's recipe depends on more than its text
	}
	file := filepath.Join(dir, "package.json")
	data, err := ReadFile(file, maxScripts)
	if err != nil {
		return "", false
	}
	var pkg struct {
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(data, &pkg); err != nil {
		return "", false
	}
	v.read[file] = true
	text, known = pkg.Scripts[name]
	for _, around := range []string{"pre" + name, "post" + name} {
		if _, ok := pkg.Scripts[around]; ok {
			return "", false // more runs than the script itself
		}
	}
	return text, known
}
