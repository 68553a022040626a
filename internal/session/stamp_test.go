package session_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestStandingIsNeverStale: a light write relies on what it read before only
// while nobody has committed anything. A switch thrown by this process, and a
// row that another one edits, count from the next call on.
func TestStandingIsNeverStale(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	d := &storetest.Driver{}
	opts.Alone, opts.Wrap = true, d.Wrap
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{session.New(keys, nil), storetest.Open(t, opts), keys}
	h.write(t, h.Prepare)
	s, _, err := h.open(t, own(t, "host-1"))
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	d.Before(func(query string) error {
		if strings.HasPrefix(query, "SELECT version, mac FROM switches") {
			read.Add(1)
		}
		return nil
	})
	killed := func() bool {
		t.Helper()
		var st session.Standing
		err := h.s.WriteLight(context.Background(), func(tx *store.Tx) (err error) {
			st, err = h.CheckStanding(tx, call.Principal{Agent: s.Agent, Session: s.ID}, "machine")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return st.Kill
	}
	throw := func(h *hall, on bool) {
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, on, "ann", "drill") })
	}
	opts.Alone, opts.Wrap = false, nil
	other := &hall{session.New(keys, nil), storetest.Open(t, opts), keys} // as another process would
	for _, by := range []*hall{h, other, h, other} {
		killed()
		killed()
		before := read.Load()
		for range 3 {
			if killed() {
				t.Fatal("stopped with the switch off")
			}
		}
		if n := read.Load() - before; n != 0 {
			t.Errorf("the row of switches was read %d times though nothing was committed", n)
		}
		throw(by, true)
		for range 2 {
			if !killed() {
				t.Fatal("goes on with the switch on")
			}
		}
		throw(by, false)
	}
}
