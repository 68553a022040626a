package audit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// aloneStore is a store that nobody else writes to, and that keeps its memory from one write to the next.
func aloneStore(t *testing.T) *store.Store {
	t.Helper()
	opts := storetest.SQLite(t)
	opts.Alone, opts.Twice = true, false
	return storetest.Open(t, opts)
}

// A lone node's sequencer builds the tree from what it remembers: the same tree that the database holds, whatever was
// taken back in between, and from the database whenever it remembers less.
func TestSequencerRemembers(t *testing.T) {
	t.Parallel()
	s, keys := aloneStore(t), newKeys(t)
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
	other := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
	n := 0
	appends := func(write func(context.Context, func(*store.Tx) error) error, count int, fail error) {
		t.Helper()
		err := write(t.Context(), func(tx *store.Tx) error {
			for i := range count {
				if err := audit.Append(tx, example(n+i)); err != nil {
					return err
				}
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
		if fail == nil {
			n += count
		}
	}
	steps := func(q *audit.Sequencer, want int, fromMemory bool) {
		t.Helper()
		if got := audit.Remembers(t.Context(), q); got != fromMemory {
			t.Errorf("after %d records it remembers: %v", n, got)
		}
		if got, err := q.Step(t.Context()); err != nil || got != want {
			t.Fatalf("%d records were sequenced, want %d, error %v", got, want, err)
		}
	}
	undo := errors.New("undo")
	appends(s.Write, 3, nil)
	steps(q, 3, false) // it has not looked yet
	appends(s.WriteLight, 2, nil)
	steps(q, 2, true)
	steps(q, 0, true)
	appends(s.WriteLight, 300, nil)
	appends(s.WriteLight, 1, undo)
	appends(s.WriteLight, 1, nil)
	steps(q, 301, true)
	appends(s.WriteLight, 1, nil)
	appends(s.Write, 2, undo) // takes back the transaction, and with it all that is remembered
	appends(s.WriteLight, 1, nil)
	steps(q, 2, false)
	appends(s.WriteLight, 4, nil)
	steps(other, 4, false)
	appends(s.WriteLight, 1, nil)
	steps(q, 1, true) // what the other one took it remembers too, and is kept from taking it again
	appends(s.WriteLight, 1, nil)
	steps(q, 1, true)
	appends(s.WriteLight, 9000, nil) // more than is kept
	for {
		got, err := q.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got == 0 {
			break
		}
	}
	checkpoint(t, q)
	report := verify(t, s, keys, nil)
	if !report.OK() || int(report.Size) != n || report.Unsequenced != 0 {
		t.Errorf("%d records of %d, %v", report.Size, n, report.Problems)
	}
}

// What is remembered does not hide that somebody changed the tree in the database.
func TestSequencerRemembersNoOtherTree(t *testing.T) {
	t.Parallel()
	s, keys := aloneStore(t), newKeys(t)
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
	for i := range 2 {
		if err := s.WriteLight(t.Context(), func(tx *store.Tx) error { return audit.Append(tx, example(i)) }); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := disarm(tx); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE audit_head SET size = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteLight(t.Context(), func(tx *store.Tx) error { return audit.Append(tx, example(3)) }); err != nil {
		t.Fatal(err)
	}
	if !audit.Remembers(t.Context(), q) {
		t.Error("the test is about nothing: nothing is remembered")
	}
	if n, err := q.Step(t.Context()); !errors.Is(err, audit.ErrTampered) {
		t.Errorf("%d records were sequenced, error %v", n, err)
	}
}
