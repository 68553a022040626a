package observe

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// maxConfig is the largest configuration that is read.
const maxConfig = 1 << 20

// readGitConfig lists the settings of a file that make git run something. A
// missing file sets nothing.
func readGitConfig(file string) ([]shell.Setting, error) {
	data, err := ReadFile(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []shell.Setting
	err = parseGitConfig(string(data), func(section, name, key, value string) {
		if runnable(section, name, key) {
			out = append(out, shell.Setting{Key: joinKey(section, name, key), Value: value})
		}
	})
	return out, err
}

// errConfig is a file that git refuses to read. Whoever made it so may know of
// a git that does read it.
var errConfig = errors.New("a configuration that is not one")

// gitConfig reads git's format character by character as git does (config.c):
// whoever reads it line by line takes a continued value, or a name in quotes
// with a bracket in it, for the head of a section.
type gitConfig struct {
	text string
	at   int
}

// eof is what comes after the last character; git reads it as the end of the
// last line.
const eof = '\n'

// next returns the next character, with \r\n for one end of line.
func (p *gitConfig) next() byte {
	if p.at >= len(p.text) {
		p.at = len(p.text) + 1
		return eof
	}
	c := p.text[p.at]
	p.at++
	if c == '\r' && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
		return '\n'
	}
	return c
}

func (p *gitConfig) ended() bool { return p.at > len(p.text) }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isKey(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }

// parseGitConfig calls set for every setting: section and key in lower case,
// the name of a section as it stands.
func parseGitConfig(text string, set func(section, name, key, value string)) error {
	p := &gitConfig{text: strings.TrimPrefix(text, "\ufeff")}
	var section, name string
	for !p.ended() {
		switch c := p.next(); {
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			var ok bool
			if section, name, ok = p.section(); !ok {
				return errConfig
			}
		case isAlpha(c):
			key, value, ok := p.setting(c)
			if !ok {
				return errConfig
			}
			set(section, name, key, value)
		default:
			return errConfig
		}
	}
	return nil
}

func (p *gitConfig) skipLine() {
	for p.next() != '\n' {
	}
}

// section reads [section], [section "name"] and the old [section.name].
func (p *gitConfig) section() (section, name string, ok bool) {
	var b strings.Builder
	for {
		c := p.next()
		switch {
		case c == ']':
			section, name, _ = strings.Cut(strings.ToLower(b.String()), ".")
			return section, name, true
		case c == ' ' || c == '\t' || c == '\r':
			name, ok = p.quotedName()
			return strings.ToLower(b.String()), name, ok
		case !isKey(c) && c != '.':
			return "", "", false
		}
		b.WriteByte(c)
	}
}

// quotedName reads what follows the blank in [section "name"].
func (p *gitConfig) quotedName() (name string, ok bool) {
	c := p.next()
	for c == ' ' || c == '\t' || c == '\r' {
		c = p.next()
	}
	if c != '"' {
		return "", false
	}
	var b strings.Builder
	for c = p.next(); c != '"'; c = p.next() {
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), p.next() == ']'
}

// setting reads a key that begins with c, and its value. A key alone is true.
func (p *gitConfig) setting(c byte) (key, value string, ok bool) {
	var b strings.Builder
	for ; isKey(c); c = p.next() {
		b.WriteByte(c)
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	key = strings.ToLower(b.String())
	switch c {
	case '\n':
		return key, "", true
	case '=':
		value, ok = p.value()
		return key, value, ok
	}
	return "", "", false
}

// value reads a value: to the end of the line, unless the end is escaped.
func (p *gitConfig) value() (value string, ok bool) {
	var b strings.Builder
	quoted := false
	for {
		c := p.next()
		switch {
		case c == '\n':
			return strings.TrimSpace(b.String()), !quoted
		case !quoted && (c == '#' || c == ';'):
			p.skipLine()
			return strings.TrimSpace(b.String()), true
		case c == '"':
			quoted = !quoted
		case c == '\\':
			switch c = p.next(); c {
			case '\n': // the value goes on
			case 't', 'b', 'n', '\\', '"':
				b.WriteByte('\\')
				b.WriteByte(c)
			default:
				return "", false
			}
		default:
			b.WriteByte(c)
		}
	}
}
