package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestGrantsNarrowFirst: what is offered begins narrow, shows which earlier
// calls it would have covered, counts its uses, and ends when it is cleared.
func TestGrantsNarrowFirst(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := realDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "src", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	touch := func(name string) *api.CallRequest { return shellIn(dir, "touch "+name) }
	w.approve(w.want(gate.Pending, touch("src/first.go")).Request)
	w.done(w.want(gate.Allowed, touch("src/first.go")))
	w.approve(w.want(gate.Pending, touch("notes.md")).Request)
	w.done(w.want(gate.Allowed, touch("notes.md")))

	asked := w.want(gate.Pending, touch("src/second.go")).Request
	var r admin.Request
	w.do("GET", "/v1/approvals/"+asked, nil, &r)
	if len(r.Offers) < 3 || r.Offers[1].Words != "writes under ./src for this session" || !strings.HasPrefix(r.Offers[2].Words, "writes anywhere in the workspace") {
		t.Fatalf("offered: %+v", r.Offers)
	}
	covered := func(offer int) string {
		var all []string
		for _, p := range r.History[offer] {
			all = append(all, p.Words)
		}
		return strings.Join(all, "; ")
	}
	if got := covered(1); !strings.Contains(got, "src/first.go") || strings.Contains(got, "notes.md") {
		t.Errorf("writes under ./src would have covered %q", got)
	}
	if got := covered(2); !strings.Contains(got, "src/first.go") || !strings.Contains(got, "notes.md") {
		t.Errorf("writes anywhere would have covered %q", got)
	}

	w.take(asked, 1)
	w.done(w.want(gate.Allowed, touch("src/second.go")))
	w.done(w.want(gate.Allowed, touch("src/deep/third.go")))
	w.want(gate.Pending, touch("other.md"))
	list := &api.GrantList{}
	w.do("GET", "/v1/grants", nil, list)
	var session string
	for _, g := range list.Grants {
		if g.Words == "writes under ./src for this session" {
			session = g.Principal.Session
			if g.Uses != 2 || g.Expires.IsZero() {
				t.Errorf("the grant was used %d times and expires %s", g.Uses, g.Expires)
			}
		}
	}
	w.Must("grants", "clear", session, "--credential-file", w.key)
	w.want(gate.Pending, touch("src/fourth.go"))
}
