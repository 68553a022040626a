// Package gate takes one call from entry to record.
//
// [Gate.Submit] in gate.go reads top to bottom as the way of a call: it is
// described (facts), decided (policy), met by a person's grant or asked
// about, and recorded, all before anything runs. [Gate.Finish] closes what
// Submit let through. [Gate.Prepare] describes and decides without letting
// anything through, for a person who edits a call.
//
// The package declares the small interfaces it needs and imports neither a
// state package nor an effect: [Observer] answers questions about the
// machine, [State] holds what is durable, [Asker] knows whether a person can
// be reached and wakes up those who wait.
//
// An allow is one transaction ([State.Commit]) that reads the switches, the
// policy head, the session and the grants again, consumes the grant and
// appends the record. Nothing is answered before that transaction is durable,
// and whatever fails on the way is a denial with its reason.
package gate
