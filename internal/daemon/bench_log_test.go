package daemon_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit/audittest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// BenchmarkLogPage measures what an approver waits for who asks for the newest
// 50 of a million records, under filters that match all, ten and none, and how
// far the three are apart.
func BenchmarkLogPage(b *testing.B) {
	home := b.TempDir()
	if err := os.CopyFS(home, os.DirFS(audittest.Million(b))); err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		b.Fatal(err)
	}
	// Unix sockets have short names.
	short, err := os.MkdirTemp("", "gh-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(short) })
	link := filepath.Join(short, "g")
	if err := os.Symlink(home, link); err != nil {
		b.Fatal(err)
	}
	person := serveLog(b, link)
	cases := []struct {
		name, query string
		want        int
	}{
		{"all", "", 50},
		{"ten", "&operation=" + audittest.RareOperation, audittest.Rare},
		{"none", "&operation=no-such", 0},
		{"none by two common values", "&surface=mcp&kind=start", 0},
	}
	for _, c := range cases {
		page := &api.LogPage{}
		if err := person.Do(context.Background(), "GET", "/v1/log?limit=50"+c.query, nil, page); err != nil || len(page.Records) != c.want {
			b.Fatalf("%s: %d records, %v", c.name, len(page.Records), err)
		}
	}
	// The gate is measured, not the client's reading of the answer.
	quickest := make([]time.Duration, len(cases))
	for round := range max(b.N, 101) {
		for i, c := range cases {
			start := time.Now()
			err := person.Stream(context.Background(), "/v1/log?limit=50"+c.query, io.Discard)
			took := time.Since(start)
			if err != nil {
				b.Fatal(err)
			}
			if round == 0 || took < quickest[i] {
				quickest[i] = took
			}
		}
	}
	for i, c := range cases {
		b.Logf("%-28s %s", c.name, quickest[i])
	}
	b.ReportMetric(float64(quickest[0].Microseconds()), "µs-all")
	b.ReportMetric(float64(slices.Max(quickest))/float64(slices.Min(quickest)), "slowest/quickest")
}

// serveLog runs a daemon on a directory and returns an approver's client.
func serveLog(b *testing.B, home string) *client.Client {
	b.Helper()
	runDaemon(b, daemon.Options{Place: place.Place{Home: home}, Node: audittest.Node})
	socket := place.Place{Home: home}.Socket()
	got := &api.SecretResponse{}
	if err := client.Unix(socket, "").Do(b.Context(), "POST", "/v1/approvers", &api.NameRequest{Name: "ann"}, got); err != nil {
		b.Fatal(err)
	}
	return client.Unix(socket, got.Secret)
}
