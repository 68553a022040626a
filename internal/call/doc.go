// Package call is the vocabulary of the gate: what an agent wants to do and
// what is decided about it.
//
// A [Call] is one action in its one normal form. A [Vote] is what one voter
// says about it, a [Ballot] is what a whole stage says, and a [Decision] is
// the join of all ballots. A [Level] is one of four values whose zero value
// denies, so that a forgotten assignment, an unknown name and a failed parse
// all end in the same place.
//
// The package is a leaf: every other package may import it and it imports
// none of them. It does no I/O, starts no goroutine and reads no clock. It
// never decides anything by itself; package policy does.
//
// Start reading at [Level], then [Call] and its [Call.Digest], then
// [Decision]. The table of native operations is in operations.go.
package call
