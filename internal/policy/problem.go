package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a policy file, and where.
type Problem struct {
	// File is the name under which the file was read.
	File string `json:"file"`
	// Line and Column count from 1; they are 0 where the problem is about the
	// file as a whole.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what to write instead, "" if nothing better is known.
	Hint string `json:"hint,omitzero"`
}

// String writes the problem as file:line:column: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": " + p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is everything that is wrong, as one error.
type Problems []Problem

// Error lists the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// sorted brings problems into the order of the file and drops repetitions, so
// that the same file always gives the same report.
func (p Problems) sorted() Problems {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Hint, b.Hint),
		)
	})
	return slices.Compact(p)
}

// orNil returns the problems as an error, nil if there are none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p.sorted()
}
