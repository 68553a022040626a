package match

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxExpansions bounds what the braces of one glob may multiply out to.
const maxExpansions = 64

// Errors of path globs.
var (
	ErrGlobSyntax   = errors.New("unclosed bracket, brace or escape")
	ErrGlobBraces   = fmt.Errorf("braces stand for more than %d patterns", maxExpansions)
	ErrGlobParent   = errors.New(`".." after a wildcard cannot be resolved`)
	ErrGlobTrailing = errors.New(`ends in a slash and would match nothing: write "dir" for the directory or "dir/**" for all in it`)
)

// A Glob is a compiled path glob, bound to absolute, clean slash paths. Syntax and meaning are
// those of doublestar: "*" and "?" stay inside a path element, "**" as a whole element stands for
// any number of them (so "src/**" holds src itself), "[a-z]", "[^a]" and "{a,b}" as usual, "\"
// takes the next character literally.
type Glob struct {
	src   string
	progs [][]token
	m     *machine
	// Most patterns are one name or one tree; both are answered without the machine.
	exact string
	tree  string
}

// CompileGlob compiles a pattern. A leading "~/" is bound to base.Home, a relative pattern to
// base.Dir; "." and ".." elements are resolved now, so that the result never depends on where it
// is asked from later.
func CompileGlob(base Base, pattern string) (Glob, error) {
	g, err := compileGlob(base, pattern)
	if err != nil {
		return Glob{}, fmt.Errorf("path pattern %q: %w", pattern, err)
	}
	return g, nil
}

func compileGlob(base Base, pattern string) (Glob, error) {
	if err := checkPattern(pattern); err != nil {
		return Glob{}, err
	}
	flat, err := expandBraces(pattern)
	if err != nil {
		return Glob{}, err
	}
	g := Glob{src: pattern}
	for _, p := range flat {
		bound, err := bindGlob(base, p)
		if err != nil {
			return Glob{}, err
		}
		prog, err := parseGlob(bound)
		if err != nil {
			return Glob{}, err
		}
		g.progs = append(g.progs, prog)
	}
	g.m = newMachine(g.progs...)
	if len(flat) == 1 {
		lit, rest := literalPrefix(g.progs[0])
		switch {
		case len(rest) == 1:
			g.exact = lit
		case len(rest) == 4 && rest[0].kind == tokSkip && rest[2].kind == tokStarAll && lit != "":
			g.tree = lit
		}
	}
	return g, nil
}

// literalPrefix returns the literal text a program starts with, and the tokens after it.
func literalPrefix(prog []token) (string, []token) {
	var b strings.Builder
	for i, t := range prog {
		if t.kind != tokLit {
			return b.String(), prog[i:]
		}
		b.WriteRune(t.r)
	}
	return b.String(), nil
}

// expandBraces multiplies out {a,b}. Alternatives may hold slashes and "**", whose meaning depends
// on their neighbours, so text is expanded first and parsed afterwards.
func expandBraces(p string) ([]string, error) {
	done, todo := []string(nil), []string{p}
	for len(todo) > 0 {
		cur := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, alts, end, err := firstBraces(cur)
		if err != nil {
			return nil, err
		}
		if open < 0 {
			done = append(done, cur)
		} else {
			for i := len(alts) - 1; i >= 0; i-- {
				todo = append(todo, cur[:open]+alts[i]+cur[end:])
			}
		}
		if len(done)+len(todo) > maxExpansions {
			return nil, ErrGlobBraces
		}
	}
	return done, nil
}

// firstBraces finds the first brace group outside brackets and escapes.
func firstBraces(p string) (open int, alts []string, end int, err error) {
	open, depth, from := -1, 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
			if i == len(p) {
				return 0, nil, 0, ErrGlobSyntax
			}
		case '[':
			n, err := skipClass(p[i:])
			if err != nil {
				return 0, nil, 0, err
			}
			i += n - 1
		case '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case ',':
			if depth == 1 {
				alts, from = append(alts, p[from:i]), i+1
			}
		case '}':
			if depth == 0 {
				continue // a brace that closes nothing stands for itself
			}
			if depth--; depth == 0 {
				return open, append(alts, p[from:i]), i + 1, nil
			}
		}
	}
	if depth > 0 {
		return 0, nil, 0, ErrGlobSyntax
	}
	return -1, nil, 0, nil
}

// skipClass returns the length of the bracket expression p starts with.
func skipClass(p string) (int, error) {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	for start := i; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case ']':
			if i > start {
				return i + 1, nil
			}
			return 0, ErrGlobSyntax
		}
	}
	return 0, ErrGlobSyntax
}

// bindGlob makes a flat pattern absolute and resolves its "." and ".." elements.
func bindGlob(base Base, p string) (string, error) {
	switch {
	case p == "":
		return "", ErrEmptyPattern
	case strings.HasPrefix(p, "/"):
	case p == "~" || strings.HasPrefix(p, "~/"):
		if !path.IsAbs(base.Home) {
			return "", ErrNoHome
		}
		p = escapeGlob(path.Clean(base.Home)) + p[1:]
	case strings.HasPrefix(p, "~"):
		return "", ErrOtherHome
	default:
		if !path.IsAbs(base.Dir) {
			return "", ErrNoBase
		}
		p = escapeGlob(path.Clean(base.Dir)) + "/" + p
	}
	if len(p) > 1 && strings.HasSuffix(p, "/") {
		return "", ErrGlobTrailing
	}
	var out []string
	for _, el := range strings.Split(p, "/") {
		switch el {
		case "", ".":
		case "..":
			if len(out) > 0 {
				if strings.ContainsAny(out[len(out)-1], `*?[`) {
					return "", ErrGlobParent
				}
				out = out[:len(out)-1]
			}
		default:
			if n := len(out); el != "**" || n == 0 || out[n-1] != el {
				out = append(out, el)
			}
		}
	}
	return "/" + strings.Join(out, "/"), nil
}

func escapeGlob(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]{},\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseGlob turns a flat, absolute pattern into a program.
func parseGlob(p string) ([]token, error) {
	var toks []token
	slash := token{kind: tokLit, r: '/'}
	elems := strings.Split(p[1:], "/")
	if p == "/" {
		elems = nil
	}
	toks = append(toks, slash)
	for i, el := range elems {
		last := i == len(elems)-1
		if el == "**" && !last {
			// any number of whole elements, each with its slash
			toks = append(toks, token{kind: tokSkip, skip: 3}, token{kind: tokStarAll}, slash)
			continue
		}
		if el == "**" {
			if i == 0 {
				toks = append(toks, token{kind: tokStarAll})
				break
			}
			// "a/**" holds a itself, so the slash before it is optional
			toks = append(toks[:len(toks)-1], token{kind: tokSkip, skip: 3}, slash, token{kind: tokStarAll})
			break
		}
		more, err := parseElement(el)
		if err != nil {
			return nil, err
		}
		if toks = append(toks, more...); !last {
			toks = append(toks, slash)
		}
	}
	return append(toks, token{kind: tokAccept}), nil
}

func parseElement(el string) ([]token, error) {
	var toks []token
	rs := []rune(el)
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '*':
			if n := len(toks); n == 0 || toks[n-1].kind != tokStar {
				toks = append(toks, token{kind: tokStar})
			}
		case '?':
			toks = append(toks, token{kind: tokOne})
		case '[':
			c, n, err := parseClass(rs[i:])
			if err != nil {
				return nil, err
			}
			toks = append(toks, token{kind: tokClass, cls: c})
			i += n - 1
		case '\\':
			if i++; i == len(rs) {
				return nil, ErrGlobSyntax
			}
			toks = append(toks, token{kind: tokLit, r: rs[i]})
		default:
			toks = append(toks, token{kind: tokLit, r: rs[i]})
		}
	}
	return toks, nil
}

func parseClass(rs []rune) (*class, int, error) {
	c, i := &class{}, 1
	if i < len(rs) && (rs[i] == '!' || rs[i] == '^') {
		c.neg = true
		i++
	}
	next := func() (rune, bool) {
		if i < len(rs) && rs[i] == '\\' {
			i++
		}
		if i >= len(rs) {
			return 0, false
		}
		i++
		return rs[i-1], true
	}
	for i < len(rs) && rs[i] != ']' {
		lo, ok := next()
		if !ok {
			return nil, 0, ErrGlobSyntax
		}
		hi := lo
		if i+1 < len(rs) && rs[i] == '-' && rs[i+1] != ']' {
			i++
			if hi, ok = next(); !ok {
				return nil, 0, ErrGlobSyntax
			}
		}
		c.ranges = append(c.ranges, runeRange{lo, hi})
	}
	if i >= len(rs) || len(c.ranges) == 0 {
		return nil, 0, ErrGlobSyntax
	}
	return c, i + 1, nil
}

// String returns the pattern as it was written.
func (g Glob) String() string { return g.src }

// Exact returns the one path the glob names, if it names exactly one.
func (g Glob) Exact() (string, bool) { return g.exact, g.exact != "" }

// Tree returns the directory whose whole tree the glob names, if that is what it names.
func (g Glob) Tree() (string, bool) { return g.tree, g.tree != "" }

// Root returns the deepest directory under which everything the glob matches lies; for a glob that
// names one path, that path.
func (g Glob) Root() string {
	if g.m == nil {
		return "/"
	}
	if g.exact != "" {
		return g.exact
	}
	root := ""
	for i, p := range g.progs {
		lit, rest := literalPrefix(p)
		if whole := len(rest) == 1 || rest[0].kind == tokSkip && rest[1].kind == tokLit; !whole {
			lit = lit[:strings.LastIndexByte(lit, '/')]
		}
		if i == 0 {
			root = lit
		}
		for root != lit && !strings.HasPrefix(lit, root+"/") {
			root = root[:strings.LastIndexByte(root, '/')]
		}
	}
	if root == "" {
		return "/"
	}
	return root
}

// Match reports whether the glob holds p, an absolute clean path, compared exactly. Use it to
// allow. The zero Glob matches nothing, and nothing matches a path that is not clean.
func (g Glob) Match(p string) bool {
	return isClean(p) && g.matchClean(p)
}

// matchClean is Match for a path that is known to be clean.
func (g *Glob) matchClean(p string) bool {
	switch {
	case g.m == nil:
		return false
	case g.exact != "":
		return p == g.exact
	case g.tree != "":
		return strings.HasPrefix(p, g.tree) && (len(p) == len(g.tree) || p[len(g.tree)] == '/')
	}
	return g.m.run(p, false)
}

// MayMatch reports whether the glob holds p on a file system that ignores letter case or Unicode
// form. Use it to deny: what some file system takes for the same name is the same name.
func (g Glob) MayMatch(p string) bool {
	if g.m == nil {
		return false
	}
	return g.m.run(p, true) || g.m.run(norm.NFC.String(p), true) || g.m.run(norm.NFD.String(p), true)
}

// A PathSet is a set of globs; it holds what any of them holds.
type PathSet struct {
	globs []Glob
	m     *machine
}

// CompileSet compiles several patterns against the same base. It reports every bad pattern.
func CompileSet(base Base, patterns ...string) (PathSet, error) {
	var s PathSet
	var errs []error
	for _, p := range patterns {
		g, err := CompileGlob(base, p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.globs = append(s.globs, g)
	}
	if err := errors.Join(errs...); err != nil {
		return PathSet{}, err
	}
	return NewPathSet(s.globs...), nil
}

// NewPathSet makes a set of globs already compiled.
func NewPathSet(globs ...Glob) PathSet {
	var progs [][]token
	s := PathSet{}
	for _, g := range globs {
		if g.m != nil {
			s.globs = append(s.globs, g)
			progs = append(progs, g.progs...)
		}
	}
	s.m = newMachine(progs...)
	return s
}

// Len returns the number of globs.
func (s PathSet) Len() int { return len(s.globs) }

// Globs returns the globs in the order given.
func (s PathSet) Globs() []Glob { return append([]Glob(nil), s.globs...) }

// Match returns the first glob that holds p exactly.
func (s PathSet) Match(p string) (Glob, bool) {
	if !isClean(p) {
		return Glob{}, false
	}
	for i := range s.globs {
		if g := &s.globs[i]; g.matchClean(p) {
			return *g, true
		}
	}
	return Glob{}, false
}

// MayMatch returns the first glob that may hold p; see [Glob.MayMatch].
func (s PathSet) MayMatch(p string) (Glob, bool) {
	for _, g := range s.globs {
		if g.MayMatch(p) {
			return g, true
		}
	}
	return Glob{}, false
}

// Covers reports whether every clean path that narrow holds is held by wide too. Yes and No are
// proofs; Unknown means the question was too large, and counts as No for anyone who guards.
func Covers(wide, narrow PathSet) Answer {
	switch {
	case len(narrow.globs) == 0:
		return Yes
	case len(wide.globs) == 0:
		// still possibly Yes: narrow may hold no clean path at all
		return subset(newMachine(), narrow.m, cleanPaths)
	}
	return subset(wide.m, narrow.m, cleanPaths)
}
