package flight_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// TestAnswered: the answer to a question reaches every request that waits for
// it, once, and no other.
func TestAnswered(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		asked := func(question string) *flight.Record {
			t.Helper()
			return decide(t, s, r, flight.Record{Status: flight.Asked, CLI: "claude", Principal: coder, Request: question}, "x")
		}
		first, joined, other := asked("r_1"), asked("r_1"), asked("r_2")
		answer := func(question string, v flight.Verdict) {
			t.Helper()
			write(t, s, func(tx *store.Tx) error { return r.Answered(tx, question, v) })
		}
		answer("r_1", flight.Verdict{Status: flight.Approved, By: "ann"})
		answer("r_1", flight.Verdict{Status: flight.Denied, By: "eve", Words: "after the fact"})
		answer("r_3", flight.Verdict{Status: flight.Denied, By: "eve"})
		write(t, s, func(tx *store.Tx) error { return r.Runs(tx, joined.ID, flight.Run{JobID: "job_1"}) })
		check := func(id, status, state, by string, reasons int) {
			t.Helper()
			err := s.Read(t.Context(), func(tx *store.Tx) error {
				got, err := r.Get(tx, coder, id)
				if err == nil && (got.Status != status || got.State != state || got.DecidedBy != by || len(got.Reasons) != reasons || got.DecidedAt.IsZero() != (status == flight.Asked)) {
					t.Errorf("%+v", got)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		check(first.ID, flight.Approved, flight.Granted, "ann", 0)
		check(joined.ID, flight.Approved, flight.Started, "ann", 0)
		check(other.ID, flight.Asked, flight.Waiting, "", 0)
		answer("r_2", flight.Verdict{Status: flight.Expired, Words: "nobody answered"})
		check(other.ID, flight.Expired, flight.Refused, "", 1)
		if got := list(t, s, r, coder, flight.Filter{Status: flight.Approved}, "", 10); len(got.Approvals) != 2 {
			t.Errorf("%d approved", len(got.Approvals))
		}
	})
}
