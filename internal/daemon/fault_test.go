package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestEveryFailureOfTheStoreDenies: whatever the store fails with, and at
// whichever statement of the transaction, the call is denied with that reason;
// afterwards calls go through again. Without the journal a call is a
// transaction of the database.
func TestEveryFailureOfTheStoreDenies(t *testing.T) {
	t.Parallel()
	d := &storetest.Driver{}
	home := shortDir(t)
	runDaemon(t, daemon.Options{Place: place.Place{Home: home}, WrapDriver: d.Wrap})
	t.Cleanup(func() { d.Before(nil) })
	c := client.Unix(place.Place{Home: home}.Socket(), "")
	look := &api.CallRequest{Operation: "list_elements"}
	submit := func() *api.CallResponse {
		t.Helper()
		got := &api.CallResponse{}
		if err := c.Do(context.Background(), "POST", "/v1/calls", look, got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := submit(); got.Verdict != gate.Allowed {
		t.Fatalf("before: %s", got.Message)
	}
	statements := []string{"BEGIN", "INSERT INTO open_call", "INSERT INTO audit_record", "COMMIT"}
	for _, fault := range []struct {
		err error
		why string
	}{
		{store.ErrFull, "full"}, {store.ErrReadOnly, "read-only"}, {store.ErrLocked, "locked"}, {store.ErrUnavailable, "cannot be reached"},
		{errors.New("something nobody thought of"), "could not record"},
	} {
		for _, statement := range statements {
			t.Run(fmt.Sprintf("%v at %s", fault.err, statement), func(t *testing.T) {
				var met sync.Once
				hit := false
				d.Before(func(query string) error {
					if query == storetest.JournalSync {
						return fault.err
					}
					if strings.HasPrefix(strings.TrimSpace(query), statement) && query != "BEGIN" {
						met.Do(func() { hit = true })
						return fault.err
					}
					return nil
				})
				got := submit()
				health := &api.Health{}
				if err := c.Do(context.Background(), "GET", "/v1/health", nil, health); err != nil {
					t.Fatal(err)
				}
				d.Before(nil)
				if !hit {
					t.Fatalf("no statement begins with %s", statement)
				}
				if got.Verdict != gate.Denied || got.Final || !strings.Contains(got.Message, fault.why) {
					t.Errorf("%s (final %v), want a denial for now that says %q", got.Message, got.Final, fault.why)
				}
				if fault.why != "could not record" && (health.Status != "degraded" || !strings.Contains(strings.Join(health.Problems, " "), fault.why)) {
					t.Errorf("health: %+v", health)
				}
				if got := submit(); got.Verdict != gate.Allowed {
					t.Errorf("afterwards: %s", got.Message)
				}
			})
		}
	}
	// What was denied is not open: nobody may report on it.
	d.Before(func(query string) error {
		if query == "COMMIT" || query == storetest.JournalSync {
			return store.ErrFull
		}
		return nil
	})
	got := submit()
	d.Before(nil)
	err := c.Do(context.Background(), "POST", "/v1/calls/"+got.CallID+"/outcome", &api.OutcomeRequest{Outcome: gate.Succeeded}, nil)
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("an outcome of a call that was never recorded: %v", err)
	}
}

// TestJournalFails: a call whose journal cannot be written goes into the
// database, and the next one into the journal again. Where the database cannot
// be written either, nothing is let through.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	d := &storetest.Driver{}
	home := shortDir(t)
	runDaemon(t, daemon.Options{Place: place.Place{Home: home}, WrapDriver: d.Wrap})
	t.Cleanup(func() { d.Before(nil) })
	c := client.Unix(place.Place{Home: home}.Socket(), "")
	submit := func() *api.CallResponse {
		t.Helper()
		got := &api.CallResponse{}
		if err := c.Do(context.Background(), "POST", "/v1/calls", &api.CallRequest{Operation: "list_elements"}, got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	submit() // what is looked up once is known from here on
	var journal, database atomic.Int64
	count := func(fails bool) func(string) error {
		journal.Store(0)
		database.Store(0)
		return func(query string) error {
			switch {
			case query == storetest.JournalSync:
				if journal.Add(1); fails {
					return store.ErrFull
				}
			case strings.HasPrefix(query, "INSERT INTO open_call"):
				database.Add(1)
			}
			return nil
		}
	}
	for range 3 {
		for _, fails := range []bool{false, true} {
			d.Before(count(fails))
			got := submit()
			d.Before(nil)
			if got.Verdict != gate.Allowed || journal.Load() == 0 || fails && database.Load() == 0 {
				t.Errorf("journal fails %v: %s; it was tried %d times, the database %d", fails, got.Message, journal.Load(), database.Load())
			}
		}
	}
	d.Before(func(query string) error {
		if query == storetest.JournalSync || strings.HasPrefix(query, "BEGIN IMMEDIATE") {
			return store.ErrFull
		}
		return nil
	})
	if got := submit(); got.Verdict != gate.Denied {
		t.Errorf("neither can be written: %s", got.Message)
	}
}
