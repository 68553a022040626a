// Package mcp is the front for agents that speak the Model Context Protocol.
//
// It stands before any number of MCP servers, the gate's own tools among them,
// and shows them as one server at /mcp, each also by itself at /mcp/NAME. Both
// generations of the protocol are served at the same address: up to 2025-11-25
// with a handshake and sessions, from 2026-07-28 on without. Neither is
// translated into the other.
//
// Messages are forwarded as the bytes they came in (package wire). Each is read
// once; what it asks for becomes a [call.Call], goes through the gate, and only
// what is allowed reaches the upstream (package link). The same admission
// decides about tools, prompts, resources, completions and subscriptions, and
// filters what lists show. How a question waits for a person follows what the
// client said it can do (wait.go). Definitions of tools are compared with what
// was pinned (pins.go), and what tools answer is scanned (output.go).
//
// The front knows its caller from the door (a token or a process) and from
// nothing in a message. It cannot approve anything, and credentials for
// upstreams pass it on their way out only.
//
// Start reading at [Front.ServeHTTP], then exchange.go.
package mcp
