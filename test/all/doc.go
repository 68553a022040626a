// Command all runs everything that says whether this repository is in order:
// formatting, vet, the build, the tests of all packages, the race detector,
// static analysis, known vulnerabilities, fuzzing and the end-to-end suites.
//
//	go run ./test/all
//
// It needs Go and nothing else. What the tests need besides is data in
// needs.go: what is missing it installs where it may (Debian packages as root,
// Node packages and Go tools into the user's cache directory), and what it may
// not install it names; the run then fails unless --allow-missing is given,
// because a suite that was left out must not look like one that passed.
//
// The steps are data in steps.go, and --list prints them. Steps that do not
// disturb each other run side by side. Every package and step gets one line
// when it is done, failures are printed in full, and the last line is the sum:
// "N passed, N failed, N skipped". A test with subtests is not counted itself,
// its subtests are; a check without tests, such as vet, counts as one. Packages
// under the race detector run, and count, a second time.
//
// The program never uses sudo, never writes into the work tree and never
// changes go.mod. It starts each child in a process group of its own and ends
// that group on an interrupt.
//
// Start reading at run in main.go; schedule.go decides what runs when,
// gotest.go reads the output of go test.
package main
