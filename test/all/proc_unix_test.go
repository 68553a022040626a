//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestInterruptEndsGrandchildren starts a shell that starts another process,
// which keeps the output open. Were it to survive, waiting for the output would
// be given up with ErrWaitDelay.
func TestInterruptEndsGrandchildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &firstWrite{seen: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		done <- command{args: []string{"sh", "-c", "sleep 60 & echo started; wait"}, out: out}.run(ctx)
	}()
	<-out.seen
	cancel()
	if err := <-done; err == nil || errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("after the interrupt: %v", err)
	}
}

// TestEndCleansUp starts a shell that leaves a process behind, without its
// output, and looks whether it is still there.
func TestEndCleansUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := command{dir: dir, args: []string{"sh", "-c", "(sleep 1; touch alive) >/dev/null 2>&1 &"}}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(dir, "alive")); err == nil {
		t.Error("what the command left behind was not ended")
	}
}

// firstWrite tells when something was written.
type firstWrite struct{ seen chan struct{} }

func (w *firstWrite) Write(p []byte) (int, error) {
	select {
	case w.seen <- struct{}{}:
	default:
	}
	return len(p), nil
}
