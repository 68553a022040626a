// Package risk turns the effects of a call into a number from 0 to 100, with
// the evidence for it.
//
// The number comes from a table (table.toml): a base for the worst effect,
// additions for what makes it worse (nothing brings it back, it uses the
// network, it touches credentials, it acts as another user), and a cap. A
// person who asks why a call scored 75 gets the lines of the table that
// applied, each with the span of text that caused it.
//
// The package never decides: the number is an input to thresholds in the
// policy. It knows nothing of shells or tools either; callers describe
// effects in the small vocabulary of Effect, and FromShell does so for a
// command line.
//
// It is pure: no I/O, no clock. Start reading at Of.
package risk
