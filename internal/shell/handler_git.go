package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// gitConfig is key=value given to git -c, or a key given to git config.
func (a *analyzer) gitConfig(w *word) {
	key, _, _ := strings.Cut(w.text, "=")
	low := strings.ToLower(key)
	if (w.known || strings.Contains(w.text, "=")) && a.kb.HarmlessGitKey(low) {
		return
	}
	a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "sets " + key + ", which can make git run a program"})
	if _, val, ok := strings.Cut(w.text, "="); ok && w.known && strings.HasPrefix(low, "alias.") && strings.HasPrefix(val, "!") {
		code := word{text: val[1:], known: true, span: w.span, at: -1}
		a.shellCode(&code, "git")
	}
}

// checkout is the operand of git checkout, which is a branch or a file; a
// file's changes are lost.
func (a *analyzer) checkout(w *word) {
	e := Effect{Kind: KindWrite, Class: ClassMutating, Span: w.span, Why: "switches to"}
	r := a.resolve(w, w.text)
	switch {
	case !w.known && !w.plain:
		e.Class, e.Why = ClassUnknown, "checks out something that is not known"
	case looksLikeFile(w) || r.info.Known && r.info.Exists:
		e = Effect{Kind: KindDelete, Class: ClassDestructive, Irreversible: true, Path: r.Path, Span: w.span, Why: "discards changes in"}
	}
	a.add(e)
}

func looksLikeFile(w *word) bool {
	t := w.text
	if w.glob || t == "." || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") || strings.HasPrefix(t, ":") ||
		strings.HasPrefix(t, "/") || strings.HasSuffix(t, "/") {
		return true
	}
	dot := strings.LastIndexByte(t, '.')
	if dot < 0 || dot == len(t)-1 || strings.IndexByte(t[dot:], '/') >= 0 {
		return false
	}
	ext := t[dot+1:]
	if len(ext) > 5 {
		return false
	}
	for i := 0; i < len(ext); i++ {
		if ext[i] < 'a' || ext[i] > 'z' {
			return false // v1.2, release-2.x5: a tag or branch
		}
	}
	return true
}

// refspec is what git push is told to push: a plus sign forces, an empty
// left side deletes.
func (a *analyzer) refspec(w *word) {
	switch {
	case strings.HasPrefix(w.text, "+"):
		a.does(knowledge.DoesDestroy, w.span, "overwrites a branch of the remote")
	case strings.HasPrefix(w.text, ":") && w.text != ":":
		a.does(knowledge.DoesDestroy, w.span, "deletes a branch of the remote")
	case !w.known && !w.plain:
		a.unknown(w.span, "pushes something that is not known")
	}
}

// object is what git is to show. A file with credentials is that in a commit
// (HEAD:.env) as well.
func (a *analyzer) object(w *word) {
	w.each(func(text string) {
		name := text[strings.LastIndexByte(text, ':')+1:]
		if w.known && a.kb.PathTags(name).Secret() == knowledge.TagSecret {
			f := word{text: name, known: true, span: w.span, at: -1}
			a.readPath(&f, false)
		}
	})
}
