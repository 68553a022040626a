// Package transcript reads what agents write down about their own sessions.
//
// A hook says what came to the gate; a transcript says what the agent did. Where
// the agent ran a tool that the gate never heard of, a hook was skipped, a tool
// has none, or a setting switched hooks off for a while: `gatehouse doctor`
// compares the two and names the difference.
//
// The package only reads, trusts nothing it finds (an agent can write its own
// transcript), and reads no more of a file than the names and ids of calls. A
// transcript proves nothing in the agent's favour; it can only speak against it.
//
// Claude Code and Codex write their calls down with the ids that their hooks
// carry. The others have no such ids, and are not compared.
//
// Start reading at [Sessions].
package transcript
