package gatetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// CLI finds an agent's program, which `go run ./test/all` installs into its
// cache and names in a variable: GATEHOUSE_CLI_CLAUDE and so on.
func CLI(t testing.TB, name string) canary.CLI {
	t.Helper()
	variable := "GATEHOUSE_CLI_" + strings.ToUpper(name)
	folder := os.Getenv(variable)
	if folder == "" {
		needtest.Missing(t, variable+" names no folder with the CLI "+name)
	}
	program := filepath.Join(folder, "node_modules", ".bin", name)
	if _, err := os.Stat(program); err != nil {
		needtest.Missing(t, "the CLI "+name+" could not be had: "+err.Error())
	}
	return canary.CLI{Name: name, Program: program}
}

// Present keeps a person's channel open while the test runs.
func (g *Gate) Present(credential string) {
	g.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	joined, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		first := true
		_ = g.Client(credential).Watch(ctx, func() error { // it ends when the test does
			if first {
				close(joined)
			}
			first = false
			return nil
		})
	}()
	g.t.Cleanup(func() { leave(); <-left })
	<-joined
}

// Pending waits for a question of whoever works for the test. The test fails if
// they end without one.
func Pending[T any](g *Gate, credential string, ended <-chan T) admin.Request {
	g.t.Helper()
	for {
		list := &api.ApprovalList{}
		if err := g.Client(credential).Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, list); err != nil {
			g.t.Fatal(err)
		}
		if len(list.Requests) > 0 {
			return list.Requests[0]
		}
		select {
		case end := <-ended:
			g.t.Fatalf("it ended without a question: %+v", end)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Approve says yes to a request, once.
func (g *Gate) Approve(credential string, r admin.Request) {
	g.t.Helper()
	if err := g.Client(credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil); err != nil {
		g.t.Fatal(err)
	}
}

// Records lists the log's records of a kind.
func (g *Gate) Records(credential, kind string) []admin.Record {
	g.t.Helper()
	page := &api.LogPage{}
	if err := g.Client(credential).Do(context.Background(), "GET", "/v1/log?limit=200&kind="+kind, nil, page); err != nil {
		g.t.Fatal(err)
	}
	return page.Records
}
