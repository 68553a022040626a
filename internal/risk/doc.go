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
// A request to an agent CLI has a score of its own, by the table in
// dispatch.toml: OfDispatch. The profile "classic" is the public skill's to the
// point; "hardened" never scores lower, folds look-alikes, knows the other forms
// of the words and reads the commands in a prompt with the shell analyser. Every
// factor says which bytes of the prompt it rests on. ReadVerdict reads the last
// line of a reviewer's answer.
//
// It is pure: no I/O, no clock, and linear in the text. Start reading at Of and
// OfDispatch.
package risk
