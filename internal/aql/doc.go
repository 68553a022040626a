// Package aql performs the gate's own operations.
//
// [Native.Run] is the effect of a native call that the gate has let through:
// it runs after the allow is durable and never decides anything itself. The
// operations it serves so far read and change nothing: they describe the
// operations, the policy and the caller's own standing. [Native.Serves] tells
// which they are; an operation that is in the table and not served here is
// refused by the surface before it is submitted, so that nothing is allowed
// and then not done.
//
// What an answer holds is the caller's own: no other agent's requests, no
// arguments of other calls, no code and no credential.
package aql
