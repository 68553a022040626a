// Command bench measures what the product promises about speed and prints each
// figure beside a baseline of the same run, because a figure alone says more
// about the machine than about the program.
//
//	make bench            or  go run ./bench
//	go run ./bench --only decide --json
//
// The figures are data in figures.go. Most come from benchmarks of the packages,
// run through go test -bench; the daemon's start and its memory are measured on
// the built program (daemon.go). A missed bar is printed, and with --strict it
// is the exit code as well; without it the machine's mood would decide whether
// a change may go in.
//
// Start reading at figures.go.
package main
