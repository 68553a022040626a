// Package match is the one place where names are compared: operation names, paths, hosts and
// Unicode text. Every other package asks here, so that a name cannot mean one thing to the rule
// that allows it and another to the code that acts on it.
//
// Three habits run through the package:
//
//   - Comparing is linear. Globs are compiled to a state machine that is simulated, never
//     backtracked, and every pattern and every path has a length it may not exceed.
//   - Rules that permit and rules that refuse read names differently. Match is exact and answers
//     yes only if every reading of the name fits: use it to allow. MayMatch is loose (letter case,
//     Unicode form, ports and addresses that cannot be known) and answers yes if any reading fits:
//     use it to deny.
//   - "Is this rule at least as wide as that one" is answered on meaning, not on spelling:
//     [Covers], [OpGlob.Covers] and [CoversHosts] say [Yes], [No] or [Unknown]. The zero Answer is
//     Unknown, and a caller that asks whether a change loosens must count it as loosening.
//
// The package does no I/O, keeps no clock, starts no goroutine. Symbolic links are followed
// through a [Linker] that the caller supplies; nothing is resolved by name.
//
// It never decides: it says what a name is (see [ParseHost], [CleanPath], [Inspect]) and which
// names a pattern holds. What follows from that is policy.
//
// Start reading at machine.go (the state machine under all globs), then glob.go and covers.go;
// host.go and addr.go for hosts; path.go for paths; fold.go for Unicode.
package match
