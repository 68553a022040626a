// Command gatehouse-launch is the second stage inside a sandbox: it locks the
// process in and becomes the confined command. It is never called by hand.
//
// The main program can play this part itself; this binary exists because it
// starts several times faster, and it is used when it lies beside the main one.
package main

import (
	"os"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

func main() {
	if launch.Requested() {
		launch.Main()
	}
	_, _ = os.Stderr.WriteString("gatehouse-launch is started by gatehouse, not by hand\n")
	os.Exit(2)
}
