package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// mounted puts a shell command, which may mount things, before the daemon, in
// a namespace of its own. Skips where that is not to be had.
func mounted(t *testing.T, command string, args ...string) []string {
	t.Helper()
	wrap := append([]string{"unshare", "--map-root-user", "--mount", "sh", "-ec", command + `; shift ` + fmt.Sprint(len(args)-1) + `; exec "$@"`}, args...)
	if out, err := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-ec", "mount -t tmpfs none /mnt").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v %s", err, out)
	}
	return wrap
}

// allowed counts the calls that the gate said it let through, and checks in
// the end that all of them are on record.
type allowed struct {
	*world
	n int
}

func (a *allowed) submit() *api.CallResponse {
	a.t.Helper()
	got := a.world.submit(callOf("list_elements", ""))
	if got.Verdict == gate.Allowed {
		a.n++
	}
	return got
}

func (a *allowed) denied(words string) {
	a.t.Helper()
	got := a.submit()
	if got.Verdict != gate.Denied || got.Final || !strings.Contains(got.Message, words) {
		a.t.Errorf("%s (final %v), want a denial for now that says %q", got.Message, got.Final, words)
	}
	health := &api.Health{}
	a.do("GET", "/v1/health", nil, health)
	if health.Status != "degraded" || !strings.Contains(strings.Join(health.Problems, " "), words) {
		a.t.Errorf("health: %+v", health)
	}
}

func (a *allowed) onRecord() {
	a.t.Helper()
	a.verify()
	page, n := &api.LogPage{}, 0
	for next := ""; ; next = page.Next {
		page = &api.LogPage{}
		a.do("GET", "/v1/log?operation=list_elements&outcome=allowed&limit=500&cursor="+next, nil, page)
		n += len(page.Records)
		if page.Next == "" {
			break
		}
	}
	if n < a.n {
		a.t.Errorf("%d calls were let through, %d are on record", a.n, n)
	}
}

// TestDiskFullForReal: the daemon's disk fills up. Calls are denied for that
// reason, nothing recorded is lost, and when there is room they go through.
func TestDiskFullForReal(t *testing.T) {
	t.Parallel()
	g := gatetest.New(t)
	home := g.Home
	g.Wrap = mounted(t, `mount -t tmpfs -o size=24m none "$0"`, home)
	if err := g.Launch(); err != nil {
		t.Fatal(err)
	}
	// The disk is the daemon's alone; this is how others get at it.
	g.Home = fmt.Sprintf("/proc/%d/root%s", g.PID(), home)
	eventually(t, "the gate answers", func() bool { return g.Client("").Do(t.Context(), "GET", "/v1/health", nil, nil) == nil })
	a := &allowed{world: people(t, g)}
	for range 20 {
		a.submit()
	}
	filler, err := os.Create(filepath.Join(g.Home, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	for block := make([]byte, 4096); ; {
		if _, err := filler.Write(block); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; ; n++ { // what the database has room for already still fits
		if got := a.submit(); got.Verdict != gate.Allowed {
			break
		}
		if n == 5000 {
			t.Fatal("the disk is full, and calls are let through")
		}
	}
	a.denied("full")
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "calls go through again", func() bool { return a.submit().Verdict == gate.Allowed })
	a.onRecord()
}

// TestReadOnlyForReal: a gate whose database cannot be written does not start,
// and says why; one whose server turns into a standby denies for that reason,
// and goes on when it is the primary again. The same with a server that dies.
func TestReadOnlyForReal(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.want(gate.Allowed, callOf("list_elements", ""))
		w.Stop()
		w.Wrap = mounted(t, `mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"`, filepath.Join(w.Home, "gatehouse.db"))
		if err := w.TryUp(); err == nil {
			t.Fatal("a gate runs on a database that it cannot write")
		}
		if !strings.Contains(w.Log(), "read-only") {
			t.Errorf("it does not say why: %s", w.Log())
		}
		w.Wrap = nil
		w.Up()
		w.want(gate.Allowed, callOf("list_elements", ""))
		w.verify()
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		c := storetest.NewCluster(t)
		a := &allowed{world: people(t, gatetest.Start(t, "--database", c.DSN("postgres"), "--node", "a"))}
		a.submit()
		c.ReadOnly(t, true)
		a.denied("read-only")
		c.ReadOnly(t, false)
		eventually(t, "calls go through again", func() bool { return a.submit().Verdict == gate.Allowed })
		c.Exec(t, `ALTER DATABASE postgres SET default_transaction_read_only = on`)
		c.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`)
		eventually(t, "the gate notices", func() bool { return a.submit().Verdict == gate.Denied })
		a.denied("read-only")
		c.Exec(t, `BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT`)
		c.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`)
		eventually(t, "calls go through again", func() bool { return a.submit().Verdict == gate.Allowed })
		c.Kill()
		a.denied("cannot be reached")
		c.Start(t)
		eventually(t, "calls go through again", func() bool { return a.submit().Verdict == gate.Allowed })
		a.onRecord()
	})
}
