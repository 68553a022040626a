// Command gatehouse-launch is what the gate starts around other programs: the
// second stage inside a sandbox, which locks the process in and becomes the
// confined command, and the supervisor of a job's processes. It is never called
// by hand.
//
// The main program can play these parts itself; this binary exists because it
// starts several times faster, and it is used when it lies beside the main one.
package main

import (
	"os"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
)

func main() {
	if launch.Requested() {
		launch.Main()
	}
	if supervise.Requested() {
		supervise.Main()
	}
	_, _ = os.Stderr.WriteString("gatehouse-launch is started by gatehouse, not by hand\n")
	os.Exit(2)
}
