// Package connect writes the gate's hook into agents' own settings, and takes
// it out again.
//
// Each agent has a file here that says where its settings lie and what goes into
// them. A [Plan] is made first and shows what every file would become; applying
// it keeps a copy of what was there. Connecting twice changes nothing the second
// time, undoing leaves what others wrote untouched, and what cannot be parsed is
// not touched at all.
//
// The hook's command line ([Hook]) names everything by absolute path: the hook,
// the gate's socket and its user. Nothing of it comes from the environment of
// the agent that runs it.
//
// [Rules] reads the rules that a person already has in an agent's settings and
// writes them as rules of the gate, to be looked at and accepted; it approves
// nothing. [Inspect] says what is connected, by reading; that something holds is
// for package canary to prove.
//
// Start reading at [Make].
package connect
