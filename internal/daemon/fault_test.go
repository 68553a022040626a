package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
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
// afterwards calls go through again.
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
		if query == "COMMIT" {
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
