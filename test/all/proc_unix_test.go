//go:build unix

package main

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptEndsGrandchildren starts a shell that starts another process
// and checks that both are gone once the context has ended.
func TestInterruptEndsGrandchildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, done := &firstLineWriter{line: make(chan string, 1)}, make(chan error, 1)
	go func() {
		done <- command{args: []string{"sh", "-c", "sleep 60 & echo $!; wait"}, out: reader}.run(ctx)
	}()
	pid, err := strconv.Atoi(<-reader.line)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("an interrupted command reports success")
	}
	for range 100 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// firstLineWriter passes the first line on.
type firstLineWriter struct {
	buf  bytes.Buffer
	line chan string
}

func (w *firstLineWriter) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if line, _, ok := strings.Cut(w.buf.String(), "\n"); ok {
		select {
		case w.line <- line:
		default:
		}
	}
	return len(p), nil
}
