package facts

import (
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// readsBelow adds the files that a command reads without naming them: those
// below a directory (grep -r, tar, find -exec) and those that a pattern picks.
// Of what is there only what matters is a need of its own: what holds
// credentials or personal data, and what a rule is about. Where there is too
// much to look at, what is read is not known.
func (x *extractor) readsBelow(c *shell.Command, e *shell.Effect, at call.Evidence) {
	if x.world == nil || e.Names || e.Secret || !e.Path.Known || e.Path.Value == "" || e.Path.Scope == shell.ScopeRemote {
		return
	}
	dir, rest := e.Path.Value, "**"
	if i := strings.IndexAny(dir, "*?[{"); i >= 0 && e.Path.Glob {
		cut := strings.LastIndexByte(dir[:i], '/') + 1
		dir, rest = dir[:cut], dir[cut:]
	}
	if dir == "" {
		dir = "."
	}
	root, _, problem := x.resolve(dir)
	if problem != "" || !path.IsAbs(root) || !x.world.Path(root).Dir {
		return
	}
	patterns := []string{rest}
	if descends(c) {
		patterns = append(patterns, rest+"/**")
	}
	picked, err := match.CompileSet(match.Base{Dir: root}, patterns...)
	entries, whole := x.world.Below(root)
	if err != nil || !whole {
		x.need(call.FSRead, "", call.Evidence{Where: at.Where, Text: at.Text + ": more below " + root + " than is looked at"})
		x.doubt()
		return
	}
	for _, p := range entries {
		if _, ok := picked.Match(p.Path); !ok {
			continue
		}
		for _, real := range []string{p.Path, p.Real} {
			if real != "" && x.matters(real) {
				x.place(call.FSRead, real, call.Evidence{Where: at.Where, Text: at.Text + ": " + real})
			}
		}
	}
}

// descends says whether a program reads what lies in the directories that a
// pattern picks, and not only files.
func descends(c *shell.Command) bool {
	switch c.Program {
	case "cat", "head", "tail", "wc", "less", "more", "sort", "uniq", "cut", "awk", "sed", "jq", "file", "stat", "md5sum", "sha256sum", "xxd", "od", "nl", "tac":
		return false
	case "grep", "egrep", "fgrep":
		for _, a := range c.Args {
			if a.Text == "--recursive" || a.Text == "--dereference-recursive" || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, "rR") {
				return true
			}
		}
		return false
	}
	return true
}

// matters says whether reading a path is more than reading.
func (x *extractor) matters(real string) bool {
	t := knowledge.Builtin().PathTags(real)
	for _, tag := range []knowledge.Tag{knowledge.TagSecret, knowledge.TagUser, knowledge.TagHistory} {
		if t.Name == tag || t.Place == tag {
			return true
		}
	}
	for _, i := range x.opts.Implied {
		if _, ok := i.Paths.Match(real); ok {
			return true
		}
	}
	scope, inside := x.scope(real)
	return x.opts.Watched != nil && x.opts.Watched(scope, x.root, inside)
}
