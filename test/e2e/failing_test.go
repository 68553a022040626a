package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// fails submits calls until the store is found to fail, and checks that the
// denial says why. What was let through before is on record and returned.
func (w *world) fails(why string) (told []string) {
	w.t.Helper()
	for n := 0; ; n++ {
		if n == 20_000 {
			w.t.Fatalf("%d calls went through though the store should have failed", n)
		}
		got := &api.CallResponse{}
		err := w.agent.Do(context.Background(), "POST", "/v1/calls", memo(n), got)
		switch {
		case err != nil:
			// The door itself could not be opened; the reason is the same.
			if s := status(err); s != 503 && s != 507 || !strings.Contains(err.Error(), why) {
				w.t.Fatalf("while the store fails: %d %v, want %q", s, err, why)
			}
			return told
		case got.Verdict == gate.Allowed:
			told = append(told, got.CallID)
		case got.Verdict == gate.Denied:
			if !strings.Contains(got.Message, why) || !strings.Contains(got.Message, "nothing is let through") {
				w.t.Fatalf("while the store fails: %s, want %q", got.Message, why)
			}
			if got.Final {
				w.t.Error("the denial is final, though the cause may go away")
			}
			return told
		default:
			w.t.Fatalf("while the store fails: %s", got.Message)
		}
	}
}

// health is what the gate says of itself.
func (w *world) health() *api.Health {
	w.t.Helper()
	h := &api.Health{}
	if err := w.Client("").Do(context.Background(), "GET", "/v1/health", nil, h); err != nil {
		w.t.Fatal(err)
	}
	return h
}

// recovers checks that calls go through again, and that everything that was
// told before is still on record, once.
func (w *world) recovers(told []string) {
	w.t.Helper()
	eventually(w.t, "calls go through again", func() bool {
		got := &api.CallResponse{}
		err := w.agent.Do(context.Background(), "POST", "/v1/calls", memo("again"), got)
		return err == nil && got.Verdict == gate.Allowed
	})
	for _, id := range told {
		page := &api.LogPage{}
		w.do("GET", "/v1/log/calls/"+id, nil, page)
		if len(page.Records) != 1 || page.Records[0].Outcome != "allowed" {
			w.t.Errorf("%s was let through before; its records are %+v", id, page.Records)
		}
	}
	if h := w.health(); h.Status != "ok" {
		w.t.Errorf("health after the cause is gone: %+v", h)
	}
	w.verify()
}

// TestDiskFull fills the file system that the gate's data are on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	g := gatetest.New(t)
	if err := syscall.Mount("tmpfs", g.Home, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		g.Stop()
		if err := syscall.Unmount(g.Home, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	g.Up()
	w := people(t, g)
	before := w.want(gate.Allowed, memo("again")).CallID
	ballast := filepath.Join(g.Home, "ballast")
	fill(t, ballast)
	told := append(w.fails("full"), before)
	if h := w.health(); h.Status != "degraded" || !strings.Contains(strings.Join(h.Problems, " "), "full") {
		t.Errorf("health on a full disk: %+v", h)
	}
	if out, _, code := w.Run("doctor"); code != 1 || !strings.Contains(out, "full") {
		t.Errorf("doctor on a full disk: %d\n%s", code, out)
	}
	if err := w.person.Do(context.Background(), "POST", "/v1/agents", &api.NameRequest{Name: "more"}, &api.SecretResponse{}); status(err) != 507 {
		t.Errorf("a person's act on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.recovers(told)

	// A crash while it is full loses nothing either.
	fill(t, ballast)
	told = append(w.fails("full"), told...)
	w.Kill()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.Up()
	w.recovers(nil)
	if page := (&api.LogPage{}); len(told) > 0 {
		w.do("GET", "/v1/log/calls/"+told[0], nil, page)
		if len(page.Records) == 0 {
			t.Errorf("%s is gone", told[0])
		}
	}
}

// fill writes a file until nothing more fits.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

// TestLockedDatabase: another program holds the database for longer than the
// gate waits.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	w := begin(t)
	before := w.want(gate.Allowed, memo("again")).CallID
	conn, err := w.Database().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	told := append(w.fails("locked"), before)
	if h := w.health(); h.Status != "degraded" || !strings.Contains(strings.Join(h.Problems, " "), "locked") {
		t.Errorf("health with a locked database: %+v", h)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	w.recovers(told)
}

// TestDatabaseServerFails: the server is killed, and comes back.
func TestDatabaseServerFails(t *testing.T) {
	t.Parallel()
	cluster := storetest.NewCluster(t)
	w := begin(t, "--database", cluster.DSN("postgres"), "--node", "a")
	before := w.want(gate.Allowed, memo("again")).CallID
	asked := w.want(gate.Pending, create("notes"))
	cluster.Kill()
	told := append(w.fails("cannot be reached"), before)
	if h := w.health(); h.Status != "degraded" {
		t.Errorf("health without a database: %+v", h)
	}
	cluster.Start(t)
	w.recovers(told)

	// What waited through all of this still waits, and is used once.
	w.approve(asked.Request)
	w.want(gate.Allowed, create("notes"))
	w.want(gate.Pending, create("notes"))
}

// TestTheFlowOnPostgreSQL is the README's promise on the other database.
func TestTheFlowOnPostgreSQL(t *testing.T) {
	t.Parallel()
	flow(t, begin(t, "--database", storetest.Postgres(t).DSN, "--node", "a"))
}
