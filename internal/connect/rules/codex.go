package rules

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// readCodex reads the rules files of Codex, and what its settings say about its
// own questions.
func readCodex(f *Found, p connect.Place) error {
	files, err := filepath.Glob(within(p, ".codex", "rules", "*.rules"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := readFile(file)
		if err != nil {
			return err
		}
		f.codexRules(filepath.Base(file), string(text))
	}
	text, err := readFile(within(p, ".codex", "config.toml"))
	if err != nil || text == nil {
		return err
	}
	var in struct {
		Approval any    `toml:"approval_policy"`
		Sandbox  string `toml:"sandbox_mode"`
		Projects map[string]struct {
			Trust string `toml:"trust_level"`
		} `toml:"projects"`
	}
	if err := toml.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("config.toml of Codex: %w", err)
	}
	if in.Approval != nil {
		f.skip(fmt.Sprint("approval_policy ", in.Approval), elsewhere)
	}
	if in.Sandbox != "" {
		f.skip("sandbox_mode "+in.Sandbox, "it is about the agent's own sandbox, which stays as it is")
	}
	for _, dir := range slices.Sorted(maps.Keys(in.Projects)) {
		f.skip("trust_level "+in.Projects[dir].Trust+" of "+dir, "it says whether Codex reads the project's settings; the gate's policy trusts a project's file by `gatehouse policy trust`")
	}
	return nil
}

// codexLevels are the decisions of Codex.
var codexLevels = map[string]string{"": allow, "allow": allow, "prompt": ask, "forbidden": deny, "deny": deny}

// codexRules reads a rules file. It is Starlark, a language; of it the calls of
// prefix_rule and network_rule with plain values are read, and every other
// statement is listed.
func (f *Found) codexRules(file, text string) {
	r := &starlark{text: text}
	for {
		st, ok := r.next()
		if !ok {
			return
		}
		from := file + " " + st.text
		level, known := codexLevels[st.word("decision")]
		switch {
		case st.args == nil || !known:
			f.skip(from, "it is not a plain prefix_rule or network_rule")
		case st.name == "prefix_rule":
			f.codexPrefix(from, level, st.args["pattern"])
		case st.name == "network_rule":
			f.codexHost(from, level, st.word("host"), st.word("protocol"))
		default:
			f.skip(from, notKnown)
		}
	}
}

// maxCommands bounds how many rules the alternatives of one pattern become.
const maxCommands = 64

// codexPrefix takes over a pattern: words, each of which may be a list of
// alternatives.
func (f *Found) codexPrefix(from, level string, pattern any) {
	tokens, ok := pattern.([]any)
	if !ok || len(tokens) == 0 {
		f.skip(from, "its pattern is not a list of words")
		return
	}
	commands := []string{""}
	for _, t := range tokens {
		var next []string
		for _, word := range words(t) {
			for _, c := range commands {
				next = append(next, strings.TrimSpace(c+" "+quoted(word)))
			}
		}
		if commands = next; len(commands) == 0 || len(commands) > maxCommands {
			f.skip(from, "its pattern stands for none or too many commands")
			return
		}
	}
	for _, c := range commands {
		f.prefix(from, level, c)
	}
}

// quoted writes a word as it stands in a command.
func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`|&;<>()") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// codexPorts are the ports of the protocols that a network_rule can name.
var codexPorts = map[string]string{"https": ":443", "http": ":80"}

func (f *Found) codexHost(from, level, host, protocol string) {
	port, ok := codexPorts[protocol]
	if !ok || host == "" {
		f.skip(from, "the gate knows hosts and ports, not "+strconv.Quote(protocol))
		return
	}
	f.add(Rule{From: from, Level: level, Host: host + port})
}

// starlark reads calls with plain values from a file.
type starlark struct {
	text string
	at   int
}

// statement is one statement of the file; args is nil if it is not a call with
// named plain values.
type statement struct {
	name string
	text string
	args map[string]any
}

// word is an argument that is a text, "" if it is none.
func (s *statement) word(name string) string {
	w, _ := s.args[name].(string)
	return w
}

// next returns the next statement.
func (r *starlark) next() (statement, bool) {
	r.space()
	start := r.at
	if start >= len(r.text) {
		return statement{}, false
	}
	name := r.identifier()
	st := statement{name: name}
	if name != "" && r.take('(') {
		st.args = r.arguments()
	}
	if st.args == nil { // to the end of the line, and of what is open there
		r.at = start
		for depth := 0; r.at < len(r.text) && (depth > 0 || r.text[r.at] != '\n'); r.at++ {
			depth += strings.Count("([{", r.text[r.at:r.at+1]) - strings.Count(")]}", r.text[r.at:r.at+1])
		}
	}
	st.text = strings.Join(strings.Fields(r.text[start:r.at]), " ")
	return st, true
}

// arguments reads named values up to the closing bracket, nil if there is
// anything else.
func (r *starlark) arguments() map[string]any {
	args := map[string]any{}
	for {
		r.space()
		if r.take(')') {
			return args
		}
		name := r.identifier()
		r.space()
		if name == "" || !r.take('=') {
			return nil
		}
		v, ok := r.value()
		if !ok || args[name] != nil {
			return nil
		}
		args[name] = v
		r.space()
		if !r.take(',') && (r.at >= len(r.text) || r.text[r.at] != ')') {
			return nil
		}
	}
}

// value reads a text or a list of values.
func (r *starlark) value() (any, bool) {
	r.space()
	if r.at >= len(r.text) {
		return nil, false
	}
	if q := r.text[r.at]; q == '"' || q == '\'' {
		end := r.at + 1
		for end < len(r.text) && r.text[end] != q {
			if r.text[end] == '\\' || r.text[end] == '\n' {
				return nil, false // an escape, or three quotes: more than is read here
			}
			end++
		}
		if end >= len(r.text) {
			return nil, false
		}
		text := r.text[r.at+1 : end]
		r.at = end + 1
		return text, r.at >= len(r.text) || r.text[r.at] != q
	}
	if !r.take('[') {
		return nil, false
	}
	list := []any{}
	for {
		r.space()
		if r.take(']') {
			return list, true
		}
		v, ok := r.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
		r.space()
		if !r.take(',') && (r.at >= len(r.text) || r.text[r.at] != ']') {
			return nil, false
		}
	}
}

// space passes over white space and comments.
func (r *starlark) space() {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '#':
			for r.at < len(r.text) && r.text[r.at] != '\n' {
				r.at++
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			r.at++
		default:
			return
		}
	}
}

func (r *starlark) take(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *starlark) identifier() string {
	start := r.at
	for r.at < len(r.text) && (r.text[r.at] == '_' || r.text[r.at] >= 'a' && r.text[r.at] <= 'z' || r.text[r.at] >= 'A' && r.text[r.at] <= 'Z' || r.at > start && r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}
	return r.text[start:r.at]
}
