package observe

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// Repository reads the settings of a git work tree that make git run a
// program. It reads the files itself: git, run on a tree that an agent wrote,
// would execute what the agent put there.
func (v *view) Repository(dir string) shell.Repository {
	if r, ok := v.repositories[dir]; ok {
		return r
	}
	r := v.readRepository(dir)
	v.repositories[dir] = r
	return r
}

func (v *view) readRepository(dir string) shell.Repository {
	gitDir, found, err := findGitDir(dir)
	if err != nil {
		return shell.Repository{}
	}
	if !found {
		return shell.Repository{Known: true}
	}
	common := commonDir(gitDir)
	r := shell.Repository{Known: true}
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(gitDir, "config.worktree")} {
		v.read[file] = true
		settings, err := readGitConfig(file)
		if err != nil {
			return shell.Repository{}
		}
		r.Settings = append(r.Settings, settings...)
	}
	if hasHooks(filepath.Join(common, "hooks")) {
		r.Settings = append(r.Settings, shell.Setting{Key: "hooks", Value: filepath.Join(common, "hooks")})
	}
	return r
}

// findGitDir finds the repository that a directory is in.
func findGitDir(dir string) (gitDir string, found bool, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		path := filepath.Join(d, ".git")
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.IsDir():
			return path, true, nil
		case err == nil && info.Mode().IsRegular():
			// A worktree or submodule: the file names the directory.
			data, err := os.ReadFile(path)
			target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
			if err != nil || !ok {
				return "", false, errors.New("a .git file that names no directory")
			}
			target = strings.TrimSpace(target)
			if !filepath.IsAbs(target) {
				target = filepath.Join(d, target)
			}
			return target, true, nil
		case err == nil || !errors.Is(err, fs.ErrNotExist):
			return "", false, errors.New("a .git that cannot be read")
		}
		if d == filepath.Dir(d) {
			return "", false, nil
		}
	}
}

// commonDir is the directory that worktrees share their settings in.
func commonDir(gitDir string) string {
	data, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	common := strings.TrimSpace(string(data))
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	return common
}

// runsPrograms are the settings whose value git runs, or that bring in further
// files. A section with a name in quotes matches with "*" in its place.
var runsPrograms = map[string]bool{
	"core.fsmonitor": true, "core.pager": true, "core.editor": true, "core.sshcommand": true, "core.gitproxy": true,
	"core.hookspath": true, "core.askpass": true, "core.attributesfile": true, "sequence.editor": true,
	"diff.external": true, "diff.*.command": true, "diff.*.textconv": true, "filter.*.clean": true, "filter.*.smudge": true,
	"filter.*.process": true, "merge.*.driver": true, "gpg.program": true, "gpg.*.program": true, "credential.helper": true,
	"credential.*.helper": true, "remote.*.uploadpack": true, "remote.*.receivepack": true, "remote.*.vcs": true, "remote.*.proxy": true,
	"url.*.insteadof": true, "url.*.pushinsteadof": true, "include.path": true, "includeif.*.path": true, "log.showsignature": true,
	"uploadpack.packobjectshook": true, "interactive.difffilter": true, "tar.*.command": true, "ssh.variant": true,
}

// runnable says whether a setting makes git run something.
func runnable(section, name, key string) bool {
	switch section {
	case "alias", "pager":
		return true
	}
	if name != "" {
		return runsPrograms[section+".*."+key]
	}
	return runsPrograms[section+"."+key]
}

// maxConfig is the largest configuration that is read.
const maxConfig = 1 << 20

// readGitConfig lists the settings of a file that make git run something. A
// missing file sets nothing.
func readGitConfig(file string) ([]shell.Setting, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || info.Size() > maxConfig {
		return nil, errors.New("a configuration that cannot be read")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []shell.Setting
	var section, name string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxConfig)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		for strings.HasPrefix(line, "[") {
			// A setting may stand on the line of its section.
			head, rest, ok := strings.Cut(line[1:], "]")
			if !ok {
				return nil, errors.New("a section without an end")
			}
			section, name = splitSection(head)
			line = strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if runnable(section, name, key) {
			out = append(out, shell.Setting{Key: joinKey(section, name, key), Value: strings.TrimSpace(value)})
		}
	}
	return out, lines.Err()
}

// splitSection reads [section "name"] and the old [section.name].
func splitSection(head string) (section, name string) {
	section, name, quoted := strings.Cut(head, `"`)
	if quoted {
		return strings.ToLower(strings.TrimSpace(section)), strings.TrimSuffix(strings.TrimSpace(name), `"`)
	}
	section, name, _ = strings.Cut(strings.TrimSpace(head), ".")
	return strings.ToLower(section), name
}

func joinKey(section, name, key string) string {
	if name == "" {
		return section + "." + key
	}
	return section + "." + name + "." + key
}

// hasHooks says whether a directory holds hooks that git would run.
func hasHooks(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), ".sample") && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
