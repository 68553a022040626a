package shell

import (
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// Change is one file that a patch touches.
type Change struct {
	Path    string
	Deletes bool
}

// LooksLikePatch says whether a text is meant to be a patch.
func LooksLikePatch(text string) bool {
	return strings.Contains(text, "*** Begin Patch") || strings.HasPrefix(text, "--- ") || strings.Contains(text, "\n--- ") ||
		strings.HasPrefix(text, "diff --git ") || strings.Contains(text, "\ndiff --git ")
}

// ParsePatch lists the files that a patch touches, in the envelope that Codex
// made common or as a unified diff. A patch in which a file might be hidden is
// not read at all.
func ParsePatch(text string) ([]Change, bool) {
	if strings.Contains(text, "*** Begin Patch") {
		return parseEnvelope(text)
	}
	return parseDiff(text)
}

// parseEnvelope reads
//
//	*** Begin Patch
//	*** Update File: a.go
//	*** Move to: b.go
//	*** Delete File: c.go
//	*** End Patch
//
// Lines of content start with a sign or a blank, so that none of them can be
// taken for a header, nor a header for one of them.
func parseEnvelope(text string) ([]Change, bool) {
	var out []Change
	begun := false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		head, isHead := strings.CutPrefix(strings.TrimSpace(line), "*** ")
		if !isHead || strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			continue
		}
		name, value, _ := strings.Cut(head, ": ")
		value = strings.TrimSpace(value)
		switch {
		case head == "Begin Patch":
			begun = true
		case head == "End Patch" || head == "End of File":
		case !begun || value == "":
			return nil, false
		case name == "Add File" || name == "Move to":
			out = append(out, Change{Path: value})
		case name == "Update File":
			out = append(out, Change{Path: value})
		case name == "Delete File":
			out = append(out, Change{Path: value, Deletes: true})
		case name == "Environment ID":
		default:
			return nil, false
		}
	}
	return out, begun && len(out) > 0
}

// parseDiff reads a unified diff, git's extended headers included. Every file
// that a header names counts, whichever of its names is used in the end.
func parseDiff(text string) ([]Change, bool) {
	var out []Change
	seen := make(map[string]int)
	add := func(name string, deletes bool) bool {
		name, ok := diffName(name)
		if !ok {
			return false
		}
		if name == "" {
			return true // /dev/null
		}
		if i, known := seen[name]; known {
			out[i].Deletes = out[i].Deletes || deletes
			return true
		}
		seen[name] = len(out)
		out = append(out, Change{Path: name, Deletes: deletes})
		return true
	}
	var old string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		ok := true
		switch {
		case strings.HasPrefix(line, "--- "):
			old = line[4:]
		case strings.HasPrefix(line, "+++ "):
			gone, _, _ := strings.Cut(line[4:], "\t")
			ok = add(old, gone == "/dev/null") && add(line[4:], false)
		case strings.HasPrefix(line, "rename from "), strings.HasPrefix(line, "copy from "):
			_, name, _ := strings.Cut(line, " from ")
			ok = add("a/"+name, strings.HasPrefix(line, "rename"))
		case strings.HasPrefix(line, "rename to "), strings.HasPrefix(line, "copy to "):
			_, name, _ := strings.Cut(line, " to ")
			ok = add("b/"+name, false)
		case strings.HasPrefix(line, "GIT binary patch"), strings.HasPrefix(line, "new mode "), strings.HasPrefix(line, "Binary files "):
			return nil, false // the files are named in ways that are not worth reading
		}
		if !ok {
			return nil, false
		}
	}
	return out, len(out) > 0
}

// diffName reads a name of a diff: without the time behind it, without its
// quotes, without the a/ or b/ before it. "" is /dev/null.
func diffName(s string) (name string, ok bool) {
	name, _, _ = strings.Cut(s, "\t")
	if strings.HasPrefix(name, `"`) {
		plain, err := strconv.Unquote(name)
		if err != nil {
			return "", false
		}
		name = plain
	}
	name = strings.TrimRight(name, " ")
	if name == "/dev/null" {
		return "", true
	}
	if rest, cut := strings.CutPrefix(name, "a/"); cut {
		name = rest
	} else if rest, cut := strings.CutPrefix(name, "b/"); cut {
		name = rest
	}
	return name, name != ""
}

// handlePatch follows apply_patch, which agents write on a command line with
// the patch as its one word or on standard input. What it does is what the
// patch says.
func (a *analyzer) handlePatch(args []word) {
	w := word{text: a.stdin.text, known: a.stdin.known && a.stdin.given, span: args[0].span, at: -1}
	switch len(args) {
	case 1:
	case 2:
		w = args[1]
	default:
		a.unknown(args[2].span, "a word that is no part of a patch")
	}
	changes, ok := ParsePatch(w.text)
	if !w.known || w.values() != nil || !ok {
		a.unknown(w.span, "applies a patch that cannot be read")
		a.does(knowledge.DoesWrite, w.span, "")
	}
	for _, c := range changes {
		f := word{text: c.Path, known: true, span: w.span, at: -1}
		if c.Deletes {
			a.deletePath(&f, false)
			continue
		}
		a.writePath(&f, writeMutate, w.span)
	}
}
