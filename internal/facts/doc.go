// Package facts says what a call needs and how risky it is.
//
// [Extract] is a pure function of a [call.Call] and an observed [World]: what
// the content scan found, which capabilities with which scopes the call
// requires, which paths, hosts and programs it touches, whether it takes code,
// whether it can be undone, whether it reaches the gate itself. Facts are
// descriptions, never decisions: package policy decides.
//
// What could not be found out is stated as such and counts against the call.
// The package does no I/O; whatever it must know about the machine it asks
// the World, and what the World answered goes into the world digest, so that
// an approval given in one world is not used in another.
//
// Start reading at [Facts] and [Extract].
package facts
