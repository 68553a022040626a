// Package shell reads a command line and says what it would do: which
// programs run, what they read, write, delete and contact, how certain that
// is, and which bytes of the text cause each effect.
//
// It is two-sided. A prover calls a command safe only when every word is
// literal, or its value is known to the analysis, or it stands in a data
// position of its program's table; when every program is known, every option
// is in its table, no variable that selects programs is set, and every
// redirection is accounted for. A detector looks for destruction and
// over-approximates. What neither can settle is unknown, and unknown is never
// safe.
//
// The package is pure: no file is opened, no process started, no clock read.
// What depends on the machine (which file a name runs, what a link points
// to, which settings a repository has) comes from a World; without one the
// words alone are judged.
//
// What programs do is data, in package knowledge. This package parses
// (analyze.go), follows control flow and values (walk.go, state.go, word.go),
// applies the tables (parse.go, engine.go, role.go) and holds the few programs that
// have a language of their own (handler_*.go, lang_*.go).
//
// Start reading at Analyze.
package shell
