package daemon_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
)

// shortDir makes a directory whose path is short enough for a socket in it.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// runDaemon runs a daemon in this process until the test ends, and returns
// when it answers.
func runDaemon(t testing.TB, opts daemon.Options) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	opts.Listen, opts.Log, opts.Ready = "127.0.0.1:0", slog.New(slog.DiscardHandler), func(url string) { ready <- url }
	go func() { done <- daemon.Run(ctx, opts) }()
	select {
	case <-ready:
	case err := <-done:
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the daemon ended: %v", err)
		}
	})
}
