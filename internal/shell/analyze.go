package shell

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
	"mvdan.cc/sh/v3/syntax"
)

// The limits. Reaching one makes the command at least unknown; what was seen
// until then is still judged.
const (
	MaxBytes    = 64 << 10
	MaxCommands = 256
	maxDepth    = 48
	maxEffects  = 1024
	maxPieces   = 4 * MaxCommands
	// maxExpanded bounds the text that values, alternatives and nested code may produce.
	maxExpanded = 4 * MaxBytes
)

// analyzer carries one analysis after the other. What it has besides the job
// are stacks that every command pushes to and releases, and that the next
// analysis takes over.
type analyzer struct {
	job
	hits     []hit
	operands []word
	words    []word
	log      []undo
	quick    quick
	reader   strings.Reader
}

// job is what belongs to one analysis.
type job struct {
	kb    *knowledge.Base
	opts  Options
	world World
	out   *Analysis
	st    state
	roots []string

	// base is added to positions of the text being parsed; fixed, if set, is
	// the span of everything in it, because the text does not stand in the
	// source byte for byte.
	base  int
	fixed *Span

	cur  int // index of the command effects are added to, or -1
	seen int // simple commands in the text
	// expected is a guess at their number, to make room in one go.
	expected int
	depth    int
	spent    int
	via      []string
	remote   int
	forks    int // pipelines and background commands around the current one

	loopAssigned map[string]bool
	wordAssigned map[string]bool // names that are given something else than numbers
	loopDirs     bool            // a loop or function changes directory
	anyDirs      bool            // something changes directory
	inFunc       *function
	stdin        output
	notedLimit   bool
	picks        []string // what the command reads of what lies in directories; nil is all
	plainCode    bool     // an interpreter is told nothing but its code
	isolated     bool     // Python was told not to look for modules in the working directory

	// args and effects are cut into pieces that the result keeps.
	args    []Arg
	effects []Effect
}

// output is what is known of what a command prints, or of what a command
// gets on its standard input.
type output struct {
	text    string
	known   bool
	plain   bool   // one harmless word
	number  bool   // one number
	listing bool   // names of files below root
	root    string // for listing
	network bool   // comes from the network
	given   bool   // there is something, known or not
	span    Span
	at      int // where text stands in the source, or -1
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser() }}

// analyzers keeps the stacks of finished analyses for the next ones.
var analyzers = sync.Pool{New: func() any { return new(analyzer) }}

// Analyze says what a command line would do.
func Analyze(cmd string, opts Options) *Analysis {
	a := newAnalyzer(opts)
	a.run(cmd)
	return a.release()
}

// release gives the analyser back and returns the result.
func (a *analyzer) release() *Analysis {
	out := a.out
	a.hits, a.operands, a.words, a.log = emptied(a.hits), emptied(a.operands), emptied(a.words), emptied(a.st.log)
	a.quick.text = ""
	a.quick.empty()
	a.job = job{}
	analyzers.Put(a)
	return out
}

// emptied is a stack for the next analysis; one that grew large is left to
// the collector.
func emptied[T any](s []T) []T {
	if cap(s) > 256 {
		return nil
	}
	return s[:0]
}

func newAnalyzer(opts Options) *analyzer {
	kb := opts.Knowledge
	if kb == nil {
		kb = knowledge.Builtin()
	}
	a := analyzers.Get().(*analyzer)
	a.kb, a.opts, a.world, a.cur, a.st.log = kb, opts, opts.World, -1, a.log
	a.out = &Analysis{Complete: true, Dialect: opts.Dialect}
	a.roots = opts.Workspace
	if len(a.roots) == 0 && opts.Cwd != "" {
		a.roots = []string{opts.Cwd}
	}
	a.st.cwd = directory{abs: opts.Cwd}
	return a
}

func (a *analyzer) run(cmd string) {
	text := cmd
	if len(text) > MaxBytes {
		a.incomplete(NoteLimit, "the command is longer than 64 KiB", Span{MaxBytes, len(cmd)})
		text = text[:MaxBytes]
		for len(text) > 0 && !utf8.ValidString(text[len(text)-min(len(text), utf8.UTFMax):]) {
			text = text[:len(text)-1]
		}
	}
	if d, why := foreignDialect(text, a.opts.Dialect); d == Zsh || d == PowerShell {
		a.out.Dialect = d
		a.incomplete(NoteDialect, why, Span{0, len(cmd)})
	}
	a.script(text)
	a.finish()
}

// survey looks over a text once before it is parsed: how many commands it may
// have, whether there are loops or functions in it that may assign, and
// whether there is anything but printable ASCII in it.
func survey(text string) (commands int, loops, odd bool) {
	commands = 1
	assigns := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ';', '|', '\n', '`':
			commands++
		case '(':
			commands++
			if strings.HasPrefix(text[i:], "()") || strings.HasPrefix(text[i:], "((") {
				loops, assigns = true, true
			}
		case '&':
			if i > 0 && text[i-1] != '>' && text[i-1] != '&' {
				commands++
			}
		case '=':
			assigns = true
		case 'd':
			loops = loops || strings.HasPrefix(text[i:], "done")
			assigns = assigns || i > 0 && (text[i-1] == 'c' || text[i-1] == 'a' || text[i-1] == 'h') // cd, read, pushd
		case 'p':
			assigns = assigns || strings.HasPrefix(text[i:], "popd") || strings.HasPrefix(text[i:], "printf")
		case 'm', 'g':
			assigns = assigns || strings.HasPrefix(text[i:], "mapfile") || strings.HasPrefix(text[i:], "getopts")
		case 'f':
			loops = loops || strings.HasPrefix(text[i:], "function")
		default:
			odd = odd || text[i] < ' ' && text[i] != '\t' || text[i] >= 0x7f
		}
	}
	return min(commands, 16), loops && assigns, odd
}

// script parses a text and follows it. If it does not parse, what came before
// the error is followed, and the rest is searched piece by piece.
func (a *analyzer) script(text string) {
	commands, loops, odd := survey(text)
	if a.expected == 0 {
		a.expected = commands
	}
	if odd && a.depth == 0 {
		a.characters(text)
	}
	if a.opts.Dialect == Bash && !odd {
		before := a.quick.memory
		list, ok := a.quick.parse(text)
		if ok {
			a.stmts(list)
		}
		if a.depth > 0 || !ok {
			a.quick.memory = before
		}
		if ok {
			return
		}
	}
	p := parsers.Get().(*syntax.Parser)
	lang := a.variant()
	if lang != syntax.LangBash {
		p = syntax.NewParser(syntax.Variant(lang))
	}
	a.reader.Reset(text)
	file, err := p.Parse(&a.reader, "")
	if err == nil {
		if loops {
			a.collectLoops(file)
		}
		a.stmts(file.Stmts)
	} else {
		a.incomplete(NoteParse, "does not parse: "+err.Error(), Span{a.base, a.base + len(text)})
		a.recover(text)
	}
	if lang == syntax.LangBash {
		parsers.Put(p)
	}
}

func (a *analyzer) variant() syntax.LangVariant {
	switch a.opts.Dialect {
	case POSIX:
		return syntax.LangPOSIX
	case Mksh:
		return syntax.LangMirBSDKorn
	}
	return syntax.LangBash
}

// recover looks for commands in a text that does not parse, so that what can
// be recognised as harmful still is. Nothing found here can make it safe.
func (a *analyzer) recover(text string) {
	if a.depth > 0 {
		return
	}
	p := syntax.NewParser()
	start := 0
	base := a.base
	for i, pieces := 0, 0; i <= len(text) && pieces < maxPieces; i++ {
		if i < len(text) && !strings.ContainsRune(";&|\n()", rune(text[i])) {
			continue
		}
		piece := text[start:i]
		if strings.TrimSpace(piece) != "" {
			pieces++
			if file, err := p.Parse(strings.NewReader(piece), ""); err == nil {
				a.base = base + start
				a.stmts(file.Stmts)
			}
		}
		start = i + 1
	}
	a.base = base
}

// nested follows code that stands in a word.
func (a *analyzer) nested(code string, at int, span Span) {
	if a.depth >= maxDepth || !a.spend(len(code)) {
		a.limit("code is nested too deeply", span)
		return
	}
	base, fixed, loops, words := a.base, a.fixed, a.loopAssigned, a.wordAssigned
	if at >= 0 {
		a.base, a.fixed = at, nil
	} else {
		a.fixed = &span
	}
	a.depth++
	a.script(code)
	a.depth--
	if words != nil {
		for name := range a.wordAssigned {
			words[name] = true
		}
	}
	a.base, a.fixed, a.loopAssigned, a.wordAssigned = base, fixed, loops, words
}

// spend counts text the analysis produces; past the bound nothing more is
// expanded, which keeps every input linear.
func (a *analyzer) spend(n int) bool {
	a.spent += n
	return a.spent <= maxExpanded
}

func (a *analyzer) limit(why string, span Span) {
	if !a.notedLimit {
		a.notedLimit = true
		a.incomplete(NoteLimit, why, span)
	}
}

func (a *analyzer) incomplete(code NoteCode, why string, span Span) {
	a.out.Complete = false
	a.note(code, why, span)
}

// note records a remark. Every note but a deferred one keeps the command from
// being safe.
func (a *analyzer) note(code NoteCode, text string, span Span) {
	if len(a.out.Notes) < 64 {
		a.out.Notes = append(a.out.Notes, Note{code, text, span})
	}
	if code != NoteDeferred && a.out.Class < ClassUnknown {
		a.out.Class = ClassUnknown
	}
}

// finish joins the classes of all commands.
func (a *analyzer) finish() {
	class := max(a.out.Class, ClassSafe)
	for i := range a.out.Commands {
		c := &a.out.Commands[i]
		c.Class = ClassSafe
		for j := range c.Effects {
			c.Class = max(c.Class, c.Effects[j].Class)
		}
		class = max(class, c.Class)
	}
	a.out.Class = class
}

// add records an effect of the current command.
func (a *analyzer) add(e Effect) {
	cur := a.cur
	if cur < 0 {
		// A redirection, an assignment or a test: there is no program.
		a.out.Commands = append(a.out.Commands, Command{Span: e.Span, Via: a.via, Remote: a.remote > 0})
		cur = len(a.out.Commands) - 1
	}
	c := &a.out.Commands[cur]
	if len(c.Effects) >= maxEffects && e.Class < ClassDestructive {
		a.limit("a command has more than 1024 effects", e.Span)
		return
	}
	if c.Effects == nil {
		// Most commands have one: cut room for it from a larger piece.
		if cap(a.effects) == len(a.effects) {
			a.effects = make([]Effect, 0, 1+a.expected/2)
		}
		n := len(a.effects)
		a.effects = a.effects[:n+1]
		c.Effects = a.effects[n : n : n+1]
	}
	c.Effects = append(c.Effects, e)
}
