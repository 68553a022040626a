// Gatehouse is one gate for every action an AI agent takes: it describes,
// decides, asks a person about, confines and records it.
//
// This package is the command tree and nothing else: one file per command,
// each a thin client of the daemon's API. Only `gatehouse up` opens the store
// or a key; every other command may have been started by an agent, so what it
// can do is what its credential can do.
//
// Start reading at newRoot in root.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Exit codes. Decisions have codes of their own, so that scripts can tell a
// denial from a failure.
const (
	exitAllow = 0
	exitUsage = 2
	exitError = 3
	exitAsk   = 10
	exitDeny  = 20
)

func main() {
	sandbox.MaybeLaunch() // first: inside a sandbox this process is its second stage
	if supervise.Requested() {
		supervise.Main() // or the supervisor of a job's processes
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(err))
}

// exitError carries an exit code that is no failure.
type codeError int

func (c codeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }

func exitCode(err error) int {
	var code codeError
	var usage usageError
	switch {
	case err == nil:
		return exitAllow
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "gatehouse: "+errorText(err))
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}
