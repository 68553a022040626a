// Package knowledge holds what the shell analyser knows about programs, as
// data: which options a program has and how many words each takes, what its
// operands are, what it does to files, networks and processes, and which
// paths and environment variables matter.
//
// The tables are TOML files, one per family, embedded from data/. A program
// entry says how its options are written (style), what the program does by
// itself (does), one token per option (opts), what the operands are
// (operands), subcommands (sub) and conditions that change all of that (when).
// The token language of opts and operands is described at parseOptions and
// parseOperands; docs/shell.md explains it to people who add a file.
//
// The package never looks at a command line and never decides anything: the
// engine in package shell interprets the tables. What a table does not
// mention is unknown to the engine, and unknown is never safe; so a table is
// wrong on the dangerous side only when it lists something harmful as
// harmless.
//
// Users add files of their own (Load). A file may add programs or, with
// extend = true, tighten a built-in one; replacing a built-in entry is
// possible, and every change that can loosen is reported, so that the policy
// layer can hold it back until a person has seen it.
//
// Start reading at schema.go (what a file contains), then base.go.
package knowledge
