// Package mcp serves the gate's own operations over the Model Context
// Protocol, at /mcp of the daemon.
//
// There is one tool per endpoint (mcp_aql_create, mcp_aql_read,
// mcp_aql_update, mcp_aql_delete, mcp_aql_execute), each taking an operation
// and its parameters. Every call becomes a [call.Call] and goes through the
// gate like any other; only what is allowed is performed. What an agent is
// told on a denial or a question is the gate's message, as the result of the
// tool, not a protocol error: the model can read it and go on.
//
// The surface knows its caller from the door (a token or a process) and from
// nothing in the request. It cannot approve anything.
package mcp
