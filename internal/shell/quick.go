package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// Most commands that agents run are plain words, quoted or not, joined by
// pipes and lists. For these quick makes the tree that the parser would make,
// in memory that the next analysis uses again, at a fraction of the cost.
// Whatever it does not know to the byte it leaves to the parser. FuzzQuick
// holds the two trees against each other.
type quick struct {
	text string
	at   int
	memory
}

// memory is what the nodes are cut from. An analysis inside an analysis cuts on
// from where the one around it is, and gives back what it took.
type memory struct {
	stmts  []syntax.Stmt
	calls  []syntax.CallExpr
	binary []syntax.BinaryCmd
	words  []syntax.Word
	lits   []syntax.Lit
	single []syntax.SglQuoted
	double []syntax.DblQuoted
	parts  []syntax.WordPart
	args   []*syntax.Word
	list   []*syntax.Stmt
	redirs []syntax.Redirect
	redirP []*syntax.Redirect
}

// empty gives all of it to the next analysis; pieces that grew large are left
// to the collector.
func (m *memory) empty() {
	m.stmts, m.calls, m.binary, m.words, m.lits = emptied(m.stmts), emptied(m.calls), emptied(m.binary), emptied(m.words), emptied(m.lits)
	m.single, m.double, m.parts, m.args = emptied(m.single), emptied(m.double), emptied(m.parts), emptied(m.args)
	m.list, m.redirs, m.redirP = emptied(m.list), emptied(m.redirs), emptied(m.redirP)
}

// maxQuick is the longest text that is read here.
const maxQuick = 4096

// charClass says what a byte may be in a plain text.
type charClass uint8

const (
	charOther    charClass = iota // for the parser
	charPlain                     // part of a word
	charBlank                     // between words
	charQuote                     // ' or "
	charOperate                   // ; | &
	charRedirect                  // < >
)

var charClasses = func() (t [256]charClass) {
	for c := range t {
		switch b := byte(c); {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
			t[c] = charPlain
		}
	}
	for _, c := range []byte("_-./,:@%+^~*?=") {
		t[c] = charPlain
	}
	t[' '], t['\t'] = charBlank, charBlank
	t['\''], t['"'] = charQuote, charQuote
	t[';'], t['|'], t['&'] = charOperate, charOperate, charOperate
	t['<'], t['>'] = charRedirect, charRedirect
	return t
}()

// reserved begin something else than a command where a command begins.
var reserved = map[string]bool{
	"if": true, "then": true, "elif": true, "else": true, "fi": true, "for": true, "while": true, "until": true, "do": true,
	"done": true, "case": true, "esac": true, "in": true, "function": true, "select": true, "time": true, "coproc": true,
	"let": true, "declare": true, "local": true, "export": true, "readonly": true, "typeset": true, "nameref": true,
}

// cut takes one more from a piece of memory. Where that is used up the next
// piece takes over; what was cut from the old one stays as it is.
func cut[T any](s *[]T, v T) *T {
	if len(*s) == cap(*s) {
		*s = make([]T, 0, max(16, 2*cap(*s)))
	}
	*s = append(*s, v)
	return &(*s)[len(*s)-1]
}

func (q *quick) pos(at int) syntax.Pos { return syntax.NewPos(uint(at), 1, uint(at)+1) }

// parse reads a text, or says that it is one for the parser.
func (q *quick) parse(text string) (list []*syntax.Stmt, ok bool) {
	if len(text) > maxQuick {
		return nil, false
	}
	q.text, q.at = text, 0
	var all [8]*syntax.Stmt
	stmts := all[:0]
	for {
		q.blanks()
		if q.at == len(q.text) && len(stmts) > 0 {
			break
		}
		s, ok := q.andOr()
		if !ok {
			return nil, false
		}
		stmts = append(stmts, s)
		if q.at == len(q.text) {
			break
		}
		if q.text[q.at] != ';' || q.next(1) == ';' || q.next(1) == '&' || q.next(1) == '|' {
			return nil, false
		}
		s.Semicolon = q.pos(q.at)
		q.at++
	}
	if cap(q.list)-len(q.list) < len(stmts) {
		q.list = make([]*syntax.Stmt, 0, max(16, 2*len(stmts)))
	}
	start := len(q.list)
	q.list = append(q.list, stmts...)
	return q.list[start:], true
}

func (q *quick) blanks() {
	for q.at < len(q.text) && charClasses[q.text[q.at]] == charBlank {
		q.at++
	}
}

// next is the byte n further on, 0 at the end.
func (q *quick) next(n int) byte {
	if q.at+n < len(q.text) {
		return q.text[q.at+n]
	}
	return 0
}

// andOr reads pipelines joined by && and ||, which bind alike.
func (q *quick) andOr() (*syntax.Stmt, bool) {
	s, ok := q.pipeline()
	for ok && q.at < len(q.text) {
		op := syntax.AndStmt
		switch {
		case q.text[q.at] == '&' && q.next(1) == '&':
		case q.text[q.at] == '|' && q.next(1) == '|':
			op = syntax.OrStmt
		default:
			return s, true
		}
		at := q.at
		q.at += 2
		q.blanks()
		var y *syntax.Stmt
		if y, ok = q.pipeline(); ok {
			s = q.join(s, y, op, at)
		}
	}
	return s, ok
}

// pipeline reads commands joined by |.
func (q *quick) pipeline() (*syntax.Stmt, bool) {
	s, ok := q.command()
	for ok && q.at < len(q.text) && q.text[q.at] == '|' && q.next(1) != '|' && q.next(1) != '&' {
		at := q.at
		q.at++
		q.blanks()
		var y *syntax.Stmt
		if y, ok = q.command(); ok {
			s = q.join(s, y, syntax.Pipe, at)
		}
	}
	return s, ok
}

func (q *quick) join(x, y *syntax.Stmt, op syntax.BinCmdOperator, at int) *syntax.Stmt {
	b := cut(&q.binary, syntax.BinaryCmd{OpPos: q.pos(at), Op: op, X: x, Y: y})
	return cut(&q.stmts, syntax.Stmt{Position: x.Position, Cmd: b})
}

// command reads one simple command.
func (q *quick) command() (*syntax.Stmt, bool) {
	start := q.at
	var buf [12]*syntax.Word
	words := buf[:0]
	var redirBuf [4]*syntax.Redirect
	redirs := redirBuf[:0]
	for q.at < len(q.text) && charClasses[q.text[q.at]] != charOperate {
		if n := q.digits(); len(words) > 0 && charClasses[q.next(n)] == charRedirect {
			r, ok := q.redirect(n)
			if !ok {
				return nil, false
			}
			redirs = append(redirs, r)
		} else {
			w, ok := q.word(len(words) == 0)
			if !ok {
				return nil, false
			}
			words = append(words, w)
		}
		q.blanks()
	}
	if len(words) == 0 {
		return nil, false
	}
	if cap(q.args)-len(q.args) < len(words) {
		q.args = make([]*syntax.Word, 0, max(32, 2*len(words)))
	}
	from := len(q.args)
	q.args = append(q.args, words...)
	c := cut(&q.calls, syntax.CallExpr{Args: q.args[from:len(q.args):len(q.args)]})
	s := cut(&q.stmts, syntax.Stmt{Position: q.pos(start), Cmd: c})
	if len(redirs) > 0 {
		if cap(q.redirP)-len(q.redirP) < len(redirs) {
			q.redirP = make([]*syntax.Redirect, 0, max(16, 2*len(redirs)))
		}
		from := len(q.redirP)
		q.redirP = append(q.redirP, redirs...)
		s.Redirs = q.redirP[from:len(q.redirP):len(q.redirP)]
	}
	return s, true
}

// digits counts the digits here.
func (q *quick) digits() (n int) {
	for c := q.next(n); c >= '0' && c <= '9'; c = q.next(n) {
		n++
	}
	return n
}

// redirect reads a redirection of the plain kinds: to a file, from a file, and
// to another descriptor by its number. n digits stand before it.
func (q *quick) redirect(n int) (*syntax.Redirect, bool) {
	r := syntax.Redirect{OpPos: q.pos(q.at + n)}
	if n > 0 {
		r.N = cut(&q.lits, syntax.Lit{ValuePos: q.pos(q.at), ValueEnd: q.pos(q.at + n), Value: q.text[q.at : q.at+n]})
	}
	q.at += n
	switch q.text[q.at] {
	case '<':
		r.Op = syntax.RdrIn
	case '>':
		r.Op = syntax.RdrOut
	}
	number := false
	switch q.next(1) {
	case '&':
		if r.Op == syntax.RdrIn {
			return nil, false
		}
		r.Op, number = syntax.DplOut, true
		q.at++
	case '>':
		if r.Op == syntax.RdrIn {
			return nil, false
		}
		r.Op = syntax.AppOut
		q.at++
	}
	q.at++
	if !number {
		q.blanks()
	}
	start, digits := q.at, q.digits()
	if q.at == len(q.text) || charClasses[q.text[q.at]] != charPlain && charClasses[q.text[q.at]] != charQuote {
		return nil, false
	}
	w, ok := q.word(false)
	if !ok || number && q.at != start+digits {
		return nil, false
	}
	r.Word = w
	return cut(&q.redirs, r), true
}

// word reads one word. The first of a command must be plain and no keyword,
// and neither an assignment nor a pattern, which the parser tells apart.
func (q *quick) word(first bool) (*syntax.Word, bool) {
	var buf [6]syntax.WordPart
	parts := buf[:0]
	for q.at < len(q.text) {
		switch charClasses[q.text[q.at]] {
		case charPlain:
			start := q.at
			for q.at < len(q.text) && charClasses[q.text[q.at]] == charPlain {
				if first && q.text[q.at] == '=' {
					return nil, false
				}
				q.at++
			}
			value := q.text[start:q.at]
			if first && reserved[value] {
				return nil, false
			}
			parts = append(parts, cut(&q.lits, syntax.Lit{ValuePos: q.pos(start), ValueEnd: q.pos(q.at), Value: value}))
			continue
		case charQuote:
			p, ok := q.quoted()
			if !ok {
				return nil, false
			}
			parts = append(parts, p)
			continue
		case charOther, charRedirect:
			return nil, false
		}
		break // a blank or an operator
	}
	if cap(q.parts)-len(q.parts) < len(parts) {
		q.parts = make([]syntax.WordPart, 0, max(48, 2*len(parts)))
	}
	from := len(q.parts)
	q.parts = append(q.parts, parts...)
	return cut(&q.words, syntax.Word{Parts: q.parts[from:len(q.parts):len(q.parts)]}), true
}

// quoted reads a text in quotes that stands for itself.
func (q *quick) quoted() (syntax.WordPart, bool) {
	start, quote := q.at, q.text[q.at]
	for q.at++; q.at < len(q.text) && q.text[q.at] != quote; q.at++ {
		c := q.text[q.at]
		if c < ' ' && c != '\t' || c >= 0x7f || quote == '"' && (c == '$' || c == '`' || c == '\\') {
			return nil, false
		}
	}
	if q.at == len(q.text) {
		return nil, false
	}
	end := q.at
	q.at++
	value := q.text[start+1 : end]
	if quote == '\'' {
		return cut(&q.single, syntax.SglQuoted{Left: q.pos(start), Right: q.pos(end), Value: value}), true
	}
	d := syntax.DblQuoted{Left: q.pos(start), Right: q.pos(end)}
	if value != "" {
		if cap(q.parts) == len(q.parts) {
			q.parts = make([]syntax.WordPart, 0, 48)
		}
		from := len(q.parts)
		q.parts = append(q.parts, cut(&q.lits, syntax.Lit{ValuePos: q.pos(start + 1), ValueEnd: q.pos(end), Value: value}))
		d.Parts = q.parts[from : from+1 : from+1]
	}
	return cut(&q.double, d), true
}
