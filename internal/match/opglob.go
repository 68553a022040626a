package match

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPattern is the longest glob, in bytes, that compiles.
const MaxPattern = 1024

// Errors of patterns. Each is wrapped with the pattern it is about.
var (
	ErrEmptyPattern = errors.New("the pattern is empty")
	ErrLongPattern  = fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	ErrBadUTF8      = errors.New("not valid UTF-8")
	ErrNUL          = errors.New("contains a NUL byte")
)

// An OpGlob is a compiled glob over operation or tool names: "*" stands for any run of
// characters, "?" for one, everything else for itself, case included.
type OpGlob struct {
	src   string
	exact bool
	m     *machine
}

// CompileOp compiles a glob over names.
func CompileOp(pattern string) (OpGlob, error) {
	if err := checkPattern(pattern); err != nil {
		return OpGlob{}, fmt.Errorf("name pattern %q: %w", pattern, err)
	}
	g := OpGlob{src: pattern, exact: !strings.ContainsAny(pattern, "*?")}
	var toks []token
	for _, r := range pattern {
		switch {
		case r == '*':
			if n := len(toks); n == 0 || toks[n-1].kind != tokStarAll {
				toks = append(toks, token{kind: tokStarAll})
			}
		case r == '?':
			toks = append(toks, token{kind: tokOneAll})
		default:
			toks = append(toks, token{kind: tokLit, r: r})
		}
	}
	g.m = newMachine(append(toks, token{kind: tokAccept}))
	return g, nil
}

func checkPattern(p string) error {
	switch {
	case p == "":
		return ErrEmptyPattern
	case len(p) > MaxPattern:
		return ErrLongPattern
	case !utf8.ValidString(p):
		return ErrBadUTF8
	case strings.IndexByte(p, 0) >= 0:
		return ErrNUL
	}
	return nil
}

// String returns the pattern as it was written.
func (g OpGlob) String() string { return g.src }

// Exact reports whether the pattern has no wildcard and so names one operation.
func (g OpGlob) Exact() bool { return g.exact }

// Match reports whether name is in the pattern. The zero OpGlob matches nothing.
func (g OpGlob) Match(name string) bool {
	if g.m == nil {
		return false
	}
	if g.exact {
		return g.src == name
	}
	return utf8.ValidString(name) && g.m.run(name, false)
}

// Covers reports whether every name that narrow matches is matched by g too.
func (g OpGlob) Covers(narrow OpGlob) Answer {
	switch {
	case narrow.m == nil:
		return Yes
	case g.m == nil:
		return No
	}
	return subset(g.m, narrow.m, anyText)
}
