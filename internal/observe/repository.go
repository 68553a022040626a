package observe

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
	dirs, err := gitDirs(dir)
	if err != nil {
		return shell.Repository{}
	}
	r := shell.Repository{Known: true}
	for _, gitDir := range dirs {
		common, err := commonDir(gitDir)
		if err != nil {
			return shell.Repository{}
		}
		for _, file := range []string{filepath.Join(common, "config"), filepath.Join(gitDir, "config.worktree")} {
			v.read[file] = true
			settings, err := readGitConfig(file)
			if err != nil {
				return shell.Repository{}
			}
			r.Settings = append(r.Settings, settings...)
		}
		r.Settings = append(r.Settings, hookSettings(filepath.Join(common, "hooks"))...)
	}
	return r
}

// gitDirs finds the repository that a directory is in, as git does: the
// nearest .git up the tree, or a directory that is itself a bare repository.
// Git passes over a .git that is no repository; it is on the list too, as are
// those above it, because versions of git differ in what they take for one.
func gitDirs(dir string) (list []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		gitDir, found, err := dotGit(d)
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, gitDir)
			if isRepository(gitDir) {
				return list, nil
			}
		}
		if isRepository(d) {
			return append(list, d), nil
		}
		if d == filepath.Dir(d) {
			return list, nil
		}
	}
}

// dotGit returns where the .git of a directory is, if it has one.
func dotGit(dir string) (gitDir string, found bool, err error) {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path) // git follows links too
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err == nil && info.IsDir():
		return path, true, nil
	case err != nil || !info.Mode().IsRegular() || info.Size() > maxConfig:
		return "", false, errors.New("a .git that cannot be read")
	}
	// A worktree or submodule: the file names the directory.
	data, err := ReadFile(path, maxConfig)
	target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if err != nil || !ok {
		return "", false, errors.New("a .git file that names no directory")
	}
	target = strings.TrimSpace(target)
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	return target, true, nil
}

// isRepository says whether git takes a directory for a repository: it has a
// head, objects and refs.
func isRepository(dir string) bool {
	common, err := commonDir(dir)
	if err != nil {
		return true // nobody knows; the settings will not be known either
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(common, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	head := filepath.Join(dir, "HEAD")
	if target, err := os.Readlink(head); err == nil {
		return strings.HasPrefix(target, "refs/")
	}
	data, err := ReadFile(head, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	text := strings.TrimSpace(string(data))
	if ref, ok := strings.CutPrefix(text, "ref:"); ok {
		return strings.HasPrefix(strings.TrimSpace(ref), "refs/")
	}
	digits := strings.Trim(text, "0123456789abcdefABCDEF")
	return digits == "" && (len(text) == 40 || len(text) == 64)
}

// commonDir is the directory that worktrees share their settings in.
func commonDir(gitDir string) (string, error) {
	data, err := ReadFile(filepath.Join(gitDir, "commondir"), maxConfig)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	common := strings.TrimSpace(string(data))
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitDir, common)
	}
	return common, nil
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
	"core.alternaterefscommand": true, "init.templatedir": true, "submodule.*.update": true, "protocol.allow": true,
	"protocol.*.allow": true, "gpg.*.defaultkeycommand": true, "gc.recentobjectshook": true, "trailer.*.command": true,
	"trailer.*.cmd": true, "difftool.*.cmd": true, "difftool.*.path": true, "mergetool.*.cmd": true, "mergetool.*.path": true,
	"hook.*.command": true,
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

func joinKey(section, name, key string) string {
	switch {
	case section == "":
		return key // git ignores what stands outside of a section
	case name == "":
		return section + "." + key
	}
	return section + "." + name + "." + key
}

// hookSettings says whether a directory holds hooks that git would run. The
// hook that even commands run which only look is named by itself.
func hookSettings(dir string) (out []shell.Setting) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []shell.Setting{{Key: "hooks", Value: dir}, {Key: "hooks.post-index-change", Value: dir}}
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (strings.HasSuffix(e.Name(), ".sample") || info.Mode()&0o111 == 0) {
			continue
		}
		if len(out) == 0 {
			out = append(out, shell.Setting{Key: "hooks", Value: dir})
		}
		if e.Name() == "post-index-change" {
			out = append(out, shell.Setting{Key: "hooks.post-index-change", Value: dir})
		}
	}
	return out
}
