// Package aql performs the gate's own operations.
//
// [Native] is a table: the name of an operation, the parameters it takes and
// the function that performs it. The table is made of groups, one file each
// (gatekeeper.go, elements.go, activation.go …); a group is a struct that
// holds what its operations stand on and lists them in its method Operations.
// [New] puts the groups together and refuses a name that is not in the table
// of [call.Operations], or that two groups claim.
//
// [Tools] is how agents call them: the MCP tools, single operations and
// batches. Every operation goes through the gate first; what runs here has
// been let through and its allow is durable. Nothing here decides anything.
//
// Parameters are read strictly, before the gate is asked: a member that an
// operation does not take is refused with the nearest that it does.
//
// What an answer holds is the caller's own: no other agent's requests, no
// arguments of other calls, no code and no credential.
package aql
