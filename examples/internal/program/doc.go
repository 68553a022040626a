// Package program is the main function of the examples: an agent's tools,
// served over MCP on standard input and output, with the running gate in front.
//
// It parses the two options that all of them have, connects to the gate unless
// told not to, and serves until the client goes. A real program would do the
// same in its own main; the examples share it so that each shows its tool and
// nothing else.
//
// Start reading at [Main].
package program
