package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultProtected are name suffixes that stay unchanged inside every writable
// root, at any depth: what runs code for whoever works in the directory later
// (hooks, settings of agents and editors, shell start-up files), and the gate's
// own files. Names are compared without regard to case.
func DefaultProtected() []string { return slices.Clone(defaultProtected) }

var defaultProtected = []string{
	".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes", ".gitconfig", ".gitmodules",
	".config/git",
	".claude/settings.json", ".claude/settings.local.json", ".claude/commands", ".claude/agents", ".claude/hooks",
	".claude/skills", ".claude/plugins", ".claude.json", ".mcp.json", ".codex", ".gemini/settings.json", ".gemini/extensions",
	".gemini/commands", ".grok", ".vibe", ".cursor/mcp.json", ".cursor/hooks.json", ".cursor/cli.json", ".gatehouse",
	".gemini/.env", ".windsurf/hooks.json", ".codeium", ".copilot", ".github/hooks",
	".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json", ".vscode/mcp.json", ".idea", ".envrc",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".config/fish",
	".ssh", ".ripgreprc", ".gdbinit", ".lldbinit", ".npmrc", ".yarnrc", ".pypirc", ".netrc",
}

func isDefaultProtected(name string) bool { return slices.Contains(defaultProtected, name) }

// guard knows what is protected in a run.
type guard struct {
	suffixes [][]string // folded components
	paths    []string   // absolute, canonical
}

func newGuard(s *Spec, dir string) (*guard, error) {
	g := &guard{}
	add := func(name string) error {
		if !filepath.IsAbs(name) {
			name = filepath.Clean(name)
			if name == "." || name == ".." || strings.HasPrefix(name, "../") || hasMeta(name) {
				return errors.New("protected " + name + ": not a name or a path")
			}
			g.suffixes = append(g.suffixes, strings.Split(fold(name), "/"))
			return nil
		}
		real, _, err := canonical(filepath.Clean(name))
		if err != nil {
			return err
		}
		g.paths = append(g.paths, real)
		return nil
	}
	for _, name := range defaultProtected {
		if slices.Contains(s.Unprotected, name) {
			continue
		}
		if err := add(name); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Protected {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	// The programs that enforce all this are nobody's to rewrite.
	g.paths = append(g.paths, ownFiles()...)
	return g, nil
}

// in returns the guard that applies inside a root.
func (g *guard) in(r root) *guard {
	if r.private {
		return &guard{paths: g.paths}
	}
	return g
}

// fold is the form in which names are compared: a file system that ignores
// case would take .GIT for .git.
func fold(s string) string { return strings.ToLower(s) }

// match reports whether the path, given by its folded components below a
// writable root, ends in a protected suffix.
func (g *guard) match(components []string) bool {
	for _, suf := range g.suffixes {
		if n := len(components) - len(suf); n >= 0 && slices.Equal(components[n:], suf) {
			return true
		}
	}
	return false
}

// stem reports whether the path ends in the beginning of a protected suffix: a
// link there brings protected names along without their being anywhere below.
func (g *guard) stem(components []string) bool {
	for _, suf := range g.suffixes {
		for i := 1; i < len(suf); i++ {
			if n := len(components) - i; n >= 0 && slices.Equal(components[n:], suf[:i]) {
				return true
			}
		}
	}
	return false
}

// finding is one protected entry on disk.
type finding struct {
	path string
	mode fs.FileMode
	link string // target, if it is a link
	id   string // device and inode: a name can be given to something else
}

// scan walks a writable root and calls found for each protected entry. It
// descends into everything but what it found. Directories it cannot read are
// reported as an error: what cannot be looked at cannot be protected.
func (g *guard) scan(top string, found func(finding) error) error {
	base := strings.Split(strings.Trim(fold(top), "/"), "/")
	return g.walk(top, base, found)
}

func (g *guard) walk(dir string, components []string, found func(finding) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	repository := looksLikeGitDir(entries)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		comps := append(components[:len(components):len(components)], fold(e.Name()))
		hit := g.match(comps) || slices.Contains(g.paths, path) || e.Type()&fs.ModeSymlink != 0 && g.stem(comps)
		// A bare repository or a submodule's directory has the same entries
		// that run code, without being called .git.
		if repository && g.match([]string{".git", fold(e.Name())}) {
			hit = true
		}
		// .git as a file points git at a directory of its author's choice.
		if fold(e.Name()) == ".git" && !e.IsDir() && g.match([]string{".git", "config"}) {
			hit = true
		}
		if hit {
			f := finding{path: path, mode: e.Type(), id: fileID(path)}
			if e.Type()&fs.ModeSymlink != 0 {
				f.link, _ = os.Readlink(path)
			}
			if err := found(f); err != nil {
				return err
			}
			continue
		}
		if e.IsDir() {
			if err := g.walk(path, comps, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func looksLikeGitDir(entries []fs.DirEntry) bool {
	n := 0
	for _, e := range entries {
		switch fold(e.Name()) {
		case "head", "objects", "refs", "commondir":
			n++
		}
	}
	return n >= 2
}

// ancestors lists the directories strictly between a writable root and a
// protected entry, outermost first. Each becomes a mount of its own, because
// a mount point cannot be renamed away from under what it holds.
func ancestors(top, path string) []string {
	var list []string
	for dir := filepath.Dir(path); dir != top && within(dir, top); dir = filepath.Dir(dir) {
		list = append(list, dir)
	}
	slices.Reverse(list)
	return list
}

func defaultGuard() *guard {
	g := &guard{}
	for _, name := range defaultProtected {
		g.suffixes = append(g.suffixes, strings.Split(fold(name), "/"))
	}
	return g
}

// ProtectedLink reports whether a link at a path would stand for a directory
// that holds protected names.
func ProtectedLink(path string) bool {
	return defaultGuard().stem(strings.Split(strings.Trim(fold(filepath.Clean(path)), "/"), "/"))
}

// ProtectedName reports whether a path, or a directory above it, carries one
// of the default protected names.
func ProtectedName(path string) bool {
	g := defaultGuard()
	comps := strings.Split(strings.Trim(fold(filepath.Clean(path)), "/"), "/")
	for i := range comps {
		if g.match(comps[:i+1]) || comps[i] == ".git" && i == len(comps)-1 {
			return true
		}
	}
	return false
}
