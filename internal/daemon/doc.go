// Package daemon is the running gate: it opens the store, the keys, the log
// and the policy, wires them to the gate and its surfaces, and serves until it
// is told to stop.
//
// [Run] is what `gatehouse up` does, and what tests and benchmarks start. One
// daemon owns a data directory; a second one on the same says so and ends.
// Everything else on the machine is a client of it.
//
// The package holds no rule of its own. state.go puts the state packages
// behind the gate's interfaces, doors.go says who is at the door, record.go
// writes events down with secrets taken out, policy.go watches the files.
//
// Start reading at [Run] in daemon.go.
package daemon
