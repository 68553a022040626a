// Package serve serves an agent's tools over the Model Context Protocol.
//
// The tools are the same as in the program: the constraints, the argument
// gate, the interceptors and the gate stand before each call, and a denial is
// a result that the model reads, not a protocol error. Each MCP session is one
// invocation, so that usage constraints count within it. A tool that its
// constraints forbid is not listed.
//
// A gateway in front (gatehouse mcp, or /mcp of the daemon) holds the calls
// against its own policy as well. Serving says nothing about who may call:
// standard input and output belong to whoever started the program, and an HTTP
// handler is for its caller to protect.
//
// Start reading at [Stdio].
package serve
