// Package sandbox runs a process with no more than it declared.
//
// A Spec says what a command may read, write, reach and use up. Run starts it
// under a back-end that can hold all of that and refuses when there is none;
// the zero Spec asks for everything, and running unconfined takes an explicit
// flag. Whether a back-end holds a guarantee is never concluded from a file
// being present: the second stage inside the sandbox looks around, tries, and
// reports, and the command starts only after the first stage has compared the
// report with what the Spec needs. Result says what was achieved.
//
// Back-ends, best first: bubblewrap with Landlock and seccomp (bwrap_linux.go),
// Landlock and seccomp alone (landlock_linux.go), firejail, Podman or Docker,
// Wasm for .wasm tools, Seatbelt on macOS. docs/sandbox.md has a generated table
// of what each of them cannot hold.
//
// A program that uses this package calls MaybeLaunch first thing in main, so
// that it can play the second stage itself; a gatehouse-launch binary beside
// it is preferred because it starts faster.
//
// What this package never does: decide whether a command is a good idea, guess
// a refusal from output, widen a pattern, or follow a link it has not checked.
//
// Start reading at Run in run.go, then plan.go (what will be mounted), and
// internal/launch (the second stage).
package sandbox
