// Package rules reads the rules that a person already has in an agent's own
// settings and writes them as rules of the gate's policy.
//
// Every agent has a form of its own: lists of strings such as Bash(git log:*),
// tables of prefixes, Starlark. Each is a file here. What comes out is a list of
// [Rule]s, those that deny first, and a list of everything that was found and
// could not be taken over, each with the reason. Nothing is left out in silence.
//
// A rule is never translated into one that approves more. Where an agent's way of
// matching is looser than the gate's, an approval becomes narrower; where it is
// stricter, or cannot be told (a regular expression, a condition that the gate
// does not know), the rule is listed and not taken over. A whole tool that may
// do as it likes is no rule that the gate gives.
//
// The package changes nothing: [Write] returns the text of a policy file, and
// what it loosens waits for an approver like every other change of the file.
//
// Begin with [Read].
package rules
