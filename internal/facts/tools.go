package facts

import (
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// external describes a call by the family of its tool.
func (x *extractor) external(strs []String) {
	switch x.operation() {
	case call.OpShell:
		x.command(strs)
	case call.OpInput:
		x.input(strs)
	case call.OpCode:
		x.unknown("runs code in the host, where no command shows", true)
		x.need(call.ProcExec, "", call.Evidence{Where: "operation", Text: x.call.Operation})
	case call.OpFileRead:
		x.files(strs, call.FSRead, "reads")
	case call.OpFileSearch:
		x.search(strs)
	case call.OpFileWrite, call.OpFileEdit:
		x.files(strs, call.FSWrite, "writes")
	case call.OpFileMove:
		x.files(strs, call.FSWrite, "moves")
		x.below(0, call.FSWrite, true)
	case call.OpFileDelete:
		x.files(strs, call.FSDelete, "deletes")
		x.facts.Irreversible = true
	case call.OpPatch:
		x.patch(strs)
	case call.OpWebFetch:
		x.urls(strs)
	case call.OpWebSearch:
		x.need(call.NetEgress, "web search", call.Evidence{Where: "operation", Text: x.call.Operation})
		x.facts.Words = "searches the web"
	case call.OpRun:
		x.run()
	case call.OpConnect:
		x.connect()
	case call.OpNote:
		x.facts.Class, x.facts.Words = "safe", "keeps notes, or looks after what it started"
	case call.OpTask:
		x.task(strs)
	default:
		if !x.upstream(strs) {
			x.other(strs)
		}
	}
}

// operation is what the call does: what its tool is known to do, or what the
// operator says that it does.
func (x *extractor) operation() string {
	if op, ok := x.opts.Tools[x.call.Operation]; ok {
		return op
	}
	return x.call.Operation
}

// unknown describes a call whose effect cannot be told from its words.
func (x *extractor) unknown(words string, code bool) {
	x.facts.Class, x.facts.Words, x.facts.TakesCode = "unknown", words, code
}

// pathFields are the names of arguments that hold a path.
var pathFields = fields(`path file_path filePath file filename notebook_path notebookPath absolute_path AbsolutePath target_file TargetFile
	dir_path dirPath directory DirectoryPath SearchPath SearchDirectory dir paths file_paths filePaths source destination old_path
	new_path relative_workspace_path relative_path target_directories uri`)

// globFields are the names of arguments that pick files by a pattern.
var globFields = fields("glob include include_pattern includePattern file_pattern Includes query")

func fields(list string) map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(list) {
		m[name] = true
	}
	return m
}

// files describes a file tool by its path arguments.
func (x *extractor) files(strs []String, c call.Capability, verb string) {
	var words []string
	for _, s := range pathArgs(strs) {
		words = append(words, verb+" "+x.path(c, s))
	}
	if len(words) == 0 {
		// SWE-agent edits the file it opened last. Which that is no call says.
		x.need(c, "", call.Evidence{Where: "args", Text: "names no file"})
		x.facts.Words = verb + " a file that the call does not name"
		return
	}
	x.facts.Words = strings.Join(words, ", ")
}

// pathArgs finds the paths among the arguments: by the names of members, or
// in the line that SWE-agent writes its tools in.
func pathArgs(strs []String) []String {
	var found []String
	for _, s := range strs {
		if !s.Key && pathFields[s.Name] && s.Text != "" {
			found = append(found, s)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, s := range strs {
		if s.Key || s.Name != "command" {
			continue
		}
		words := lineWords(s.Text)
		switch {
		case len(words) > 1 && (words[0] == "open" || words[0] == "create" || words[0] == "filemap"):
			found = append(found, String{Where: s.Where, Name: s.Name, Text: words[1]})
		case len(words) > 2 && (strings.HasPrefix(words[0], "search_") || words[0] == "find_file"):
			found = append(found, String{Where: s.Where, Name: s.Name, Text: words[2]})
		}
	}
	return found
}

// lineWords splits a line at its blanks; quotes hold words together.
func lineWords(line string) []string {
	line, _, _ = strings.Cut(line, "\n")
	var words []string
	for line = strings.TrimLeft(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		end := strings.IndexAny(line, " \t")
		if q := line[0]; q == '"' || q == '\'' {
			if close := strings.IndexByte(line[1:], q); close >= 0 {
				words, line = append(words, line[1:1+close]), line[close+2:]
				continue
			}
		}
		if end < 0 {
			end = len(line)
		}
		words, line = append(words, line[:end]), line[end:]
	}
	return words
}

// search describes a search: of the paths it names or of the working
// directory. A pattern that picks out files with credentials reads them.
func (x *extractor) search(strs []String) {
	var words []string
	for _, s := range pathArgs(strs) {
		words = append(words, "searches "+x.path(call.FSRead, s))
	}
	if len(words) == 0 {
		words = append(words, "searches "+x.path(call.FSRead, String{Text: ".", Where: "dir"}))
	}
	for _, s := range strs {
		if !s.Key && globFields[s.Name] && picksSecrets(s.Text) {
			x.need(call.SecretsAccess, s.Text, call.Evidence{Where: s.Where, Text: s.Text})
		}
	}
	x.facts.Words = strings.Join(words, ", ")
}

// patchFields are the arguments that hold a patch.
var patchFields = fields("input patch patchText patch_text diff command cmd content")

// patch describes a patch by every path it touches.
func (x *extractor) patch(strs []String) {
	var changes []shell.Change
	for i, s := range strs {
		switch {
		case s.Key:
		case s.Name == "path" || s.Name == "move_path":
			changes = append(changes, shell.Change{Path: s.Text, Deletes: kindBeside(strs, i) == "delete"})
		case patchFields[s.Name] && shell.LooksLikePatch(s.Text):
			found, ok := shell.ParsePatch(s.Text)
			if !ok {
				x.unknown("applies a patch that cannot be read", false)
				x.need(call.FSWrite, "", call.Evidence{Where: s.Where, Text: "a patch that cannot be read"})
				return
			}
			changes = append(changes, found...)
		}
	}
	if len(changes) == 0 {
		x.unknown("applies a patch that names no file", false)
		x.need(call.FSWrite, "", call.Evidence{Where: "args", Text: "names no file"})
		return
	}
	x.change(changes)
}

// change adds what a list of changed files needs.
func (x *extractor) change(changes []shell.Change) {
	var words []string
	for _, ch := range changes {
		c, verb := call.FSWrite, "writes "
		if ch.Deletes {
			c, verb = call.FSDelete, "deletes "
			x.facts.Irreversible = true
		}
		words = append(words, verb+x.path(c, String{Where: "patch", Text: ch.Path}))
	}
	x.facts.Words = strings.Join(words, ", ")
}

// kindBeside finds the kind that stands in the same object as a path.
func kindBeside(strs []String, i int) string {
	parent := path.Dir(strs[i].Where)
	for _, s := range strs {
		if !s.Key && s.Name == "kind" && path.Dir(s.Where) == parent {
			return s.Text
		}
	}
	return ""
}

// urls describes a fetch by every address in it.
func (x *extractor) urls(strs []String) {
	found := false
	for _, s := range strs {
		switch {
		case s.Key:
		case s.Name == "url" || s.Name == "uri" || s.Name == "Url" || s.Name == "urls":
			found = true
			x.host(s.Text, call.Evidence{Where: s.Where, Text: s.Text})
		default:
			for _, u := range addresses(s.Text) {
				found = true
				x.host(u, call.Evidence{Where: s.Where, Text: u})
			}
		}
	}
	if !found {
		x.unknown("names no address", false)
	}
}

// addresses finds the URLs in a text.
func addresses(text string) []string {
	var out []string
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			return out
		}
		start := strings.LastIndexFunc(text[:i], func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '+') }) + 1
		end := i + 3
		for end < len(text) && !strings.ContainsRune(" \t\r\n\"'<>`|\\^{}", rune(text[end])) {
			end++
		}
		if start < i {
			out = append(out, strings.TrimRight(text[start:end], ".,;:!?)]"))
		}
		text = text[end:]
	}
}

// task describes the start of a sub-agent. It does nothing by itself: what the
// sub-agent does comes to the gate as calls of its own, under the rights and
// the taint of whoever started it. One that is to run without its checks or
// on another machine is out of the gate's sight.
func (x *extractor) task(strs []String) {
	for _, s := range strs {
		if s.Key {
			continue
		}
		away := s.Name == "isolation" && s.Text == "remote" || s.Name == "mode" && strings.HasPrefix(s.Text, "bypass") ||
			s.Name == "environment" || s.Name == "sandbox"
		if away {
			x.unknown("starts an agent where the gate does not see what it does: "+s.Name+" "+s.Text, true)
			return
		}
	}
	x.facts.Class, x.facts.Words = "safe", "starts a sub-agent, whose own calls come to the gate"
}
