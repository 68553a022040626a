// Package hook puts the gate in front of agents through their own hooks.
//
// Each agent has a file of its own that knows two things: how that agent's
// events read, and how it wants to be answered ([agent]). Everything between
// is the same for all of them and stands in handle.go: an event is bound to a
// session by the process that sent it, made a call, submitted to the gate, and
// answered with allow, block, the host's own question, or "later".
//
// Events are parsed strictly (duplicate names, invalid UTF-8, trailing data are
// refused); members of the envelope that nobody knows are ignored, because
// hosts add some with every release. The tool's input is taken whole. What
// cannot be read blocks.
//
// A block is exit code 2 with the reason on standard error, which is the one
// signal that all agents honour. An event that tells of the end of a call closes
// only what the gate opened in that session, and where the host ran something
// else than what was allowed, that is recorded and the session is stopped.
//
// The package keeps which calls are open in memory: a restart of the gate closes
// them as unknown anyway. It knows neither the store nor people.
//
// Start reading at [Hooks.Handle].
package hook
