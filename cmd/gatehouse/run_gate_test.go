package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// answering answers requests as they come, by what they ask, and remembers
// them.
func answering(t *testing.T, g *gatetest.Gate, credential string, yes func(r *admin.Request) (offer int, ok bool)) (asked func() []string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	joined, left := make(chan struct{}), make(chan []string, 1)
	go func() {
		var words []string
		first := true
		c := g.Client(credential)
		_ = c.Watch(ctx, func() error { // it ends when the test does
			list := &api.ApprovalList{}
			if err := c.Do(ctx, "GET", "/v1/approvals?state=pending", nil, list); err != nil {
				return err
			}
			if first {
				first = false
				close(joined)
			}
			for i := range list.Requests {
				r := &list.Requests[i]
				words = append(words, r.Facts.Words)
				path, body := "/v1/approvals/"+r.ID+"/deny", any(&api.ReplyRequest{Digest: r.Digest, Text: "no"})
				if offer, ok := yes(r); ok {
					path, body = "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Offer: offer}
				}
				if err := c.Do(ctx, "POST", path, body, nil); err != nil {
					return err
				}
			}
			return nil
		})
		left <- words
	}()
	<-joined
	return func() []string { stop(); return <-left }
}

// TestAttack41LiveAsks: a host that was not declared is put before a person
// while the run waits, with the command that wants it; at most three times per
// run, and on record.
func TestAttack41LiveAsks(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "curl")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello from " + r.Host + "\n")) }))
	defer server.Close()
	// The gate takes receipts from its own program alone, and here that is the
	// one that runs the test.
	program, err := exec.LookPath("gatehouse")
	if err != nil {
		t.Fatal(err)
	}
	gate := gatetest.New(t)
	gate.Program = program
	gate.Up()
	credential, _ := gate.Enrol("ann")
	asked := answering(t, gate, credential, func(r *admin.Request) (int, bool) {
		return 1, strings.HasPrefix(r.Facts.Words, "yes.test:80 ")
	})
	dir, err := os.MkdirTemp("", "gh-ask-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a := &app{home: gate.Home}
	g, err := a.runGate(t.Context(), "")
	if err != nil || g == nil {
		t.Fatal(g, err)
	}
	s := sandbox.Spec{
		Command: []string{"sh", "-c", "for h in yes no yes yes other fourth yes; do curl -sS http://$h.test/; done"}, Dir: dir,
		Net: sandbox.Net{
			Mode: sandbox.NetHosts,
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.88.99.7")}, nil
			},
			Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
			},
		},
	}
	g.attach(&s, true)
	r, err := sandbox.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.end(r); err != nil {
		t.Error(err)
	}
	if got := strings.Count(string(r.Stdout), "hello from yes.test"); got != 4 {
		t.Errorf("%d of 4 answers of the approved host:\n%s\n%s", got, r.Stdout, r.Stderr)
	}
	if strings.Contains(string(r.Stdout), "hello from no.test") || strings.Contains(string(r.Stdout), "hello from fourth.test") {
		t.Errorf("a host was reached that nobody allowed:\n%s", r.Stdout)
	}
	words := asked()
	if len(words) != 3 || !strings.HasPrefix(words[0], "yes.test:80 wanted by sh -c ") {
		t.Errorf("%d questions: %q", len(words), words)
	}
	page := &api.LogPage{}
	if err := gate.Client(credential).Do(context.Background(), "GET", "/v1/log?operation=net.connect&limit=50", nil, page); err != nil {
		t.Fatal(err)
	}
	if len(page.Records) < 4 { // three questions, and one let through
		t.Errorf("%d records of connections", len(page.Records))
	}
}
