// Package canary drives a real agent CLI with a scripted model, to see what
// the agent does rather than to read what its settings say.
//
// A [Model] listens on the loopback and speaks the four wires that the CLIs
// know (Anthropic messages, OpenAI responses and chat, Gemini). It makes
// the tool calls of a script, one a turn, and ends with a sentence. [CLI] knows
// how each CLI is pointed at it, and runs it.
//
// `gatehouse doctor` uses it to prove that a call through the installed CLI
// reaches the gate; the end-to-end tests use it for everything else. No byte
// leaves the machine, no account is used, and no setting of the CLI is changed:
// it is told by its environment and flags where the model is.
//
// The package decides nothing and knows nothing of the gate.
//
// Start reading at [Start] and [CLI.Run].
package canary
