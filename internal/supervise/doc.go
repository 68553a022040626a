// Package supervise is the supervisor of one job's processes, and what the gate
// needs to speak with it and to find what one left behind.
//
// A supervisor is the reaper of everything that is started below it, double
// forks and new sessions included. Its socket is its only tie to the gate: an
// [Order] comes in, a [Word] goes out when all of the tree is dead. When the
// gate goes away, or closes its half, the supervisor kills the whole tree and
// goes only when nothing is left. Where a cgroup can be made, the tree is in one
// and dies at a single stroke (cgroup.go); the processes are looked for all the
// same, since a tree that may leave its cgroup must not outlive its job.
//
// What it never does: decide, read a prompt or a result (the streams are the
// child's own), or start a second order. It imports next to nothing, no fmt and
// no encoding, because its start is paid for by requests: it is a part of
// gatehouse-launch, which starts several times faster than the main program.
//
// Start reading at Main in main_linux.go; process_linux.go knows processes.
package supervise
