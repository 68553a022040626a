// Package session knows the agents, the sessions they work in, and the
// switches that stop them.
//
// An agent that comes over the network has a token, kept as a hash. A session
// is bound when it opens: to the agent's process, so that only what runs inside
// that process's tree speaks for it, or to the token that opened it. [Check]
// holds every later message against that bond. What runs in another process
// with a stolen or invented session id is foreign, and denied.
//
// [Registry.CheckStanding] is on the way of every call: it reads, inside the
// gate's transaction, the kill switch, danger blocks, the policy in force and
// whether the session has ended. On PostgreSQL it also holds them: whoever
// throws a switch waits for decisions that have read it, and no decision that
// starts later misses it. Where one of these rows is missing or does not bear
// the gate's signature, the answer is the one that stops.
//
// The package never decides a call and never ends a process. Reading who is at
// the other end of a socket is in peer_linux.go; everything else is functions
// on a store.Tx.
//
// Start reading at [Registry.Open] and [Registry.CheckStanding].
package session
