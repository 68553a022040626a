// Package launch is the second stage of a confined run: the last code of ours
// that executes before the command does.
//
// The first stage (package sandbox) builds namespaces or starts another
// back-end, and hands the second stage two descriptors: a sealed memory file
// with a Config, and one end of a socket pair. Main reads the one, locks the
// process in (limits, Landlock, seccomp, descriptors), proves over the other
// what it achieved, waits for the word to go on, and becomes the command.
// Without that word nothing is executed, so a run whose guarantees fall short
// of what was asked never starts.
//
// What it never does: decide. Every path, mask and filter instruction in the
// Config was computed outside. It also imports next to nothing (no fmt, no
// encoding, no net), because its start-up is paid on every run.
//
// Start reading at Main in main_linux.go; config.go is the wire form.
package launch
