// Package conformance runs the official MCP conformance suite through the gate.
//
// The suite speaks to a server directly and then to the same server behind the
// real binary, with a policy and the durable log on. Whatever the server passes
// by itself it must pass behind the gate. Both generations of the protocol are
// run, with the server reached over HTTP and as a process.
//
// The suite and the server come from their registries; `go run ./test/all`
// installs them into its cache and names them in variables. Without these the
// tests are skipped and say so.
package conformance
