// Package upstream keeps what the gate knows about the MCP servers behind it.
//
// An [Entry] says how a server is reached. Only approvers make one: whoever can
// name a command that the gate starts can make the gate run anything. Entries
// and pins bear the gate's signature, so that an edited database shows.
//
// A pin is what a server said about itself when it was first seen: the
// definition of each tool in canonical form, and the server's instructions.
// What a server says later is compared with it ([Registry.Compare]); what is new
// or different waits, hidden, until a person accepts it ([Registry.Accept]).
// Definitions whose words content validation objects to wait from the start.
//
// Credentials for upstreams are sealed and belong to one agent each. They are
// opened for the request that uses them and are shown to nobody.
//
// Start reading at [Entry].
package upstream
