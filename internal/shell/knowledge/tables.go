package knowledge

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// tableFiles are the files of data/ that do not describe programs.
var tableFiles = map[string]bool{"paths.toml": true, "variables.toml": true, "code.toml": true, "capabilities.toml": true}

// tables are the facts that do not belong to one program.
type tables struct {
	paths     pathTable
	variables variableTable
	code      map[string]codeTable
	implied   impliedTable
}

// Tag says why a path matters.
type Tag uint8

// The tags of paths.
const (
	TagNone    Tag = iota
	TagSecret      // credentials: reading it is more than a read
	TagStartup     // what it contains runs later: start-up files, hooks, units, agent settings
	TagSystem      // belongs to the system: writing there is not work on a project
	TagDevice      // a device: writing there destroys what is on it
	TagTemp        // temporary directories
	TagNull        // /dev/null and the standard streams
	TagHistory     // records of what was done
	TagUser        // personal data: mail, messages, contacts
)

var tagNames = map[string]Tag{
	"secret": TagSecret, "startup": TagStartup, "system": TagSystem, "device": TagDevice, "temp": TagTemp, "null": TagNull,
	"history": TagHistory, "user": TagUser,
}

type rawPaths struct {
	Path []struct {
		Tag     string   `toml:"tag"`
		Names   []string `toml:"names"`   // a component anywhere in the path
		Pairs   []string `toml:"pairs"`   // two or more components in a row
		Suffix  []string `toml:"suffix"`  // end of the last component
		Prefix  []string `toml:"prefix"`  // beginning of the last component
		Under   []string `toml:"under"`   // an absolute path and everything below it
		Exactly []string `toml:"exactly"` // an absolute path
		Except  []string `toml:"except"`  // last components that do not count
	} `toml:"path"`
}

type pathTable struct {
	names   map[string]component
	initial [256]bool // the first bytes of names, to skip the look-up of most
	suffix  []affix
	prefix  []affix
	under   []affix
	exactly map[string]Tag
	except  map[string]bool
}

// component is what one name in a path says.
type component struct {
	tag   Tag
	pairs []pair
}

type pair struct {
	rest string
	tag  Tag
}

type affix struct {
	text string
	tag  Tag
}

func compilePaths(raw *rawPaths) (pathTable, error) {
	t := pathTable{
		names: map[string]component{}, exactly: map[string]Tag{}, except: map[string]bool{},
	}
	for _, r := range raw.Path {
		tag, ok := tagNames[r.Tag]
		if !ok {
			return t, fmt.Errorf("unknown tag %q", r.Tag)
		}
		for _, n := range r.Names {
			c := t.names[n]
			c.tag = tag
			t.names[n] = c
		}
		for _, p := range r.Pairs {
			first, rest, ok := strings.Cut(p, "/")
			if !ok {
				return t, fmt.Errorf("pair %q has one component", p)
			}
			c := t.names[first]
			c.pairs = append(c.pairs, pair{rest, tag})
			t.names[first] = c
		}
		for _, s := range r.Suffix {
			t.suffix = append(t.suffix, affix{s, tag})
		}
		for _, s := range r.Prefix {
			t.prefix = append(t.prefix, affix{s, tag})
		}
		for _, s := range r.Under {
			t.under = append(t.under, affix{s, tag})
		}
		for _, s := range r.Exactly {
			t.exactly[s] = tag
		}
		for _, s := range r.Except {
			t.except[s] = true
		}
	}
	for n := range t.names {
		t.initial[n[0]] = true
	}
	return t, nil
}

// Tags of a path: what its names say, and what place it is in.
type Tags struct{ Name, Place Tag }

// Secret is the tag of credentials if one of the tags is that, else none.
func (t Tags) Secret() Tag {
	if t.Name == TagSecret || t.Place == TagSecret {
		return TagSecret
	}
	return TagNone
}

// PathTags says what is known of a cleaned path, absolute, relative or
// beginning with "~".
func (b *Base) PathTags(path string) Tags {
	t := &b.tables.paths
	var tags Tags
	if path == "" {
		return tags
	}
	if path[0] == '/' {
		tags.Place = t.place(path)
	}
	rest := path
	for rest != "" {
		var name string
		name, after, _ := strings.Cut(rest, "/")
		rest = after
		if name == "" || !t.initial[name[0]] {
			continue
		}
		c, ok := t.names[name]
		if !ok {
			continue
		}
		for _, p := range c.pairs {
			if after == p.rest || strings.HasPrefix(after, p.rest) && after[len(p.rest)] == '/' {
				tags.Name = p.tag
				return tags
			}
		}
		if c.tag != TagNone && !t.except[lastComponent(path)] {
			tags.Name = c.tag
			return tags
		}
	}
	last := lastComponent(path)
	if tag := t.affix(last); tag != TagNone && !t.except[last] {
		tags.Name = tag
	}
	return tags
}

// affix looks at the beginning and the end of the last component.
func (t *pathTable) affix(last string) Tag {
	if last == "" {
		return TagNone
	}
	end := last[len(last)-1]
	for i := range t.suffix {
		if s := t.suffix[i].text; s[len(s)-1] == end && strings.HasSuffix(last, s) {
			return t.suffix[i].tag
		}
	}
	for i := range t.prefix {
		if s := t.prefix[i].text; s[0] == last[0] && strings.HasPrefix(last, s) {
			return t.prefix[i].tag
		}
	}
	return TagNone
}

func (t *pathTable) place(path string) Tag {
	if tag, ok := t.exactly[path]; ok {
		return tag
	}
	best, tag := 0, TagNone
	for i := range t.under {
		u := &t.under[i]
		if len(u.text) > best && strings.HasPrefix(path, u.text) && (len(path) == len(u.text) || path[len(u.text)] == '/') {
			best, tag = len(u.text), u.tag
		}
	}
	return tag
}

// GlobMayBeSecret says that a pattern could match a file that holds
// credentials: all of it a place where they are kept, or a part of it the name
// of one. Patterns that say nothing but an ending could match anything, and
// are taken for what they most likely mean.
func (b *Base) GlobMayBeSecret(pattern string) bool {
	t := &b.tables.paths
	if strings.HasPrefix(pattern, "/") {
		for p, tag := range t.exactly {
			if tag == TagSecret && globMatches(pattern, p) {
				return true
			}
		}
		for i := range t.under {
			u := &t.under[i]
			if n := strings.Count(u.text, "/"); u.tag == TagSecret && globMatches(firstComponents(pattern, n), u.text) {
				return true
			}
		}
	}
	for name := range strings.SplitSeq(pattern, "/") {
		if !strings.ContainsAny(name, "*?[") || strings.Trim(name, "*") == "" || strings.HasPrefix(strings.TrimLeft(name, "*"), ".") && name[0] == '*' {
			continue
		}
		for secret, c := range t.names {
			if c.tag == TagSecret && globMatches(name, secret) {
				return true
			}
		}
	}
	return false
}

// globMatches matches as the shell does; a pattern that is none matches.
func globMatches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// firstComponents are the first n components of an absolute path.
func firstComponents(p string, n int) string {
	for i := 1; i < len(p); i++ {
		if p[i] == '/' {
			if n--; n == 0 {
				return p[:i]
			}
		}
	}
	return p
}

func lastComponent(path string) string {
	path = strings.TrimSuffix(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

type rawVariables struct {
	Dangerous   []string `toml:"dangerous"`
	Bypass      []string `toml:"bypass"`
	Secret      []string `toml:"secret"`
	Harmless    []string `toml:"harmless"`
	GitKeys     []string `toml:"git_harmless"`
	Verbs       []string `toml:"destructive_verbs"`
	SecretVerbs []string `toml:"secret_verbs"`
	Plain       []string `toml:"plain"`
}

type variableTable struct {
	dangerous, bypass, secret, harmless, gitKeys, verbs, secretVerbs, plain patterns
}

// patterns are names with at most one star at either end.
type patterns struct {
	exact              map[string]bool
	prefix, suffix, in []string
}

func compilePatterns(list []string) patterns {
	p := patterns{exact: map[string]bool{}}
	for _, s := range list {
		core := strings.Trim(s, "*")
		switch {
		case strings.HasPrefix(s, "*") && strings.HasSuffix(s, "*"):
			p.in = append(p.in, core)
		case strings.HasSuffix(s, "*"):
			p.prefix = append(p.prefix, core)
		case strings.HasPrefix(s, "*"):
			p.suffix = append(p.suffix, core)
		default:
			p.exact[s] = true
		}
	}
	return p
}

func (p *patterns) match(s string) bool {
	if p.exact[s] {
		return true
	}
	for _, x := range p.prefix {
		if strings.HasPrefix(s, x) {
			return true
		}
	}
	for _, x := range p.suffix {
		if strings.HasSuffix(s, x) {
			return true
		}
	}
	for _, x := range p.in {
		if strings.Contains(s, x) {
			return true
		}
	}
	return false
}

// VariableKind says what setting or showing a variable means.
type VariableKind uint8

// The kinds of variables.
const (
	VariablePlain     VariableKind = iota
	VariableDangerous              // decides which program or code runs
	VariableBypass                 // gives an agent another configuration
)

// Variable says what setting the environment variable name means.
func (b *Base) Variable(name string) VariableKind {
	v := &b.tables.variables
	switch {
	case v.bypass.match(name):
		return VariableBypass
	case v.harmless.match(name):
		return VariablePlain
	case v.dangerous.match(name):
		return VariableDangerous
	}
	return VariablePlain
}

// SecretVariable says that the value of the variable is likely a credential.
func (b *Base) SecretVariable(name string) bool { return b.tables.variables.secret.match(name) }

// PlainVariable says that the value of a variable the command does not set is
// a word that never looks like an option.
func (b *Base) PlainVariable(name string) bool { return b.tables.variables.plain.match(name) }

// HarmlessGitKey says that a setting of git, in lower case, changes how things
// look or who is named, and never what runs.
func (b *Base) HarmlessGitKey(key string) bool { return b.tables.variables.gitKeys.match(key) }

// SecretVerb says that a word, as the name of a subcommand or of what it is to
// show, means that credentials are shown.
func (b *Base) SecretVerb(word string) bool { return b.tables.variables.secretVerbs.match(word) }

// DestructiveVerb says that a word, as the name of a subcommand, means that
// something is destroyed.
func (b *Base) DestructiveVerb(word string) bool { return b.tables.variables.verbs.match(word) }

type codeTable struct {
	Destructive []string `toml:"destructive"`
	Network     []string `toml:"network"`
	Write       []string `toml:"write"`
	Shell       []string `toml:"shell"`
}

// CodeWords gives the words that tell what inline code of a language does.
func (b *Base) CodeWords(language string) (destructive, network, write, shell []string) {
	c := b.tables.code[language]
	return c.Destructive, c.Network, c.Write, c.Shell
}

func loadTables(fsys fs.FS) (*tables, error) {
	var rp rawPaths
	var rv rawVariables
	var ri rawImplied
	t := &tables{}
	for _, f := range []struct {
		name string
		into any
	}{{"paths.toml", &rp}, {"variables.toml", &rv}, {"code.toml", &t.code}, {"capabilities.toml", &ri}} {
		data, err := fs.ReadFile(fsys, f.name)
		if err != nil {
			return nil, err
		}
		if err := strictTOML(data, f.into); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	var err error
	if t.paths, err = compilePaths(&rp); err != nil {
		return nil, fmt.Errorf("paths.toml: %w", err)
	}
	t.implied = ri.compile()
	t.variables = variableTable{
		dangerous: compilePatterns(rv.Dangerous), bypass: compilePatterns(rv.Bypass),
		secret: compilePatterns(rv.Secret), harmless: compilePatterns(rv.Harmless), gitKeys: compilePatterns(rv.GitKeys),
		verbs: compilePatterns(rv.Verbs), secretVerbs: compilePatterns(rv.SecretVerbs), plain: compilePatterns(rv.Plain),
	}
	return t, nil
}
