package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// inert reports whether a protected entry that appeared can do nothing: what
// `git init` and `git clone` leave behind is of this kind, and taking it away
// would break every new repository. Anything not recognised is not inert.
func inert(f finding) bool {
	if f.mode&fs.ModeSymlink != 0 {
		return false
	}
	switch name := fold(filepath.Base(f.path)); {
	case name == "hooks" && f.mode.IsDir():
		return inertHooks(f.path)
	case name == "config" && f.mode.IsRegular():
		return inertConfig(f.path)
	}
	return false
}

// inertHooks: git runs nothing whose name ends in .sample.
func inertHooks(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".sample") {
			return false
		}
	}
	return true
}

// inertKeys are settings that name no program and no other file.
var inertKeys = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true,
	"core.ignorecase": true, "core.precomposeunicode": true, "core.symlinks": true,
	"user.name": true, "user.email": true, "init.defaultbranch": true,
	"remote.fetch": true, "branch.remote": true, "branch.merge": true, "extensions.objectformat": true,
}

// inertConfig reads a git configuration with a parser that gives up on
// anything unusual; giving up means that the file is taken away.
func inertConfig(path string) bool {
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) > 64<<10 {
		return false
	}
	section := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if strings.ContainsAny(line, "\\\x00\r") {
			return false
		}
		if line[0] == '[' {
			end := strings.IndexByte(line, ']')
			if end != len(line)-1 {
				return false
			}
			section, _, _ = strings.Cut(line[1:end], " ")
			section = fold(section)
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			return false
		}
		key := section + "." + fold(strings.TrimSpace(k))
		if key == "remote.url" && inertURL(strings.TrimSpace(v)) {
			continue
		}
		if !inertKeys[key] {
			return false
		}
	}
	return true
}

// inertURL: other schemes (ext::, file with a helper) run programs on fetch.
func inertURL(u string) bool {
	for _, scheme := range []string{"https://", "http://", "ssh://", "git://", "/", "file:///"} {
		if strings.HasPrefix(u, scheme) {
			return !strings.Contains(u, "://-") && !strings.Contains(u, "@-") && !strings.ContainsAny(u, " \t\"'")
		}
	}
	return false
}
