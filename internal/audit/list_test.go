package audit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// pages reads a list to its end and checks that each page but the last is full.
func pages(t *testing.T, log *audit.Log, f audit.Filter, limit int) []*audit.Record {
	t.Helper()
	var all []*audit.Record
	for cursor := ""; ; {
		page, err := log.List(t.Context(), f, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Records...)
		if page.Next == "" {
			return all
		}
		if len(page.Records) != limit {
			t.Fatalf("a page of %d records, not %d, has a next one", len(page.Records), limit)
		}
		cursor = page.Next
	}
}

// naive does what a list does by looking at every record.
func naive(all []*audit.Record, f audit.Filter) []string {
	var ids []string
	is := func(want, have string) bool { return want == "" || want == have }
	for _, r := range slices.Backward(all) {
		if is(f.Node, r.Node) && is(f.Kind, r.Kind) && is(f.Principal, r.Principal) && is(f.Session, r.Session) &&
			is(f.Surface, r.Surface) && is(f.Operation, r.Operation) && is(f.Level, r.Level) && is(f.Outcome, r.Outcome) &&
			is(f.Correlation, r.Correlation) && is(f.CallID, r.CallID) &&
			(f.From.IsZero() || !r.Time.Before(f.From)) && (f.Until.IsZero() || r.Time.Before(f.Until)) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func identifiers(records []*audit.Record) []string {
	var ids []string
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

// randomFilter combines values that records have, or nearly.
func randomFilter(rng *rand.Rand, all []*audit.Record) audit.Filter {
	var f audit.Filter
	pick := func(value func(*audit.Record) string, into *string) {
		switch rng.IntN(5) {
		case 0:
			*into = value(all[rng.IntN(len(all))])
		case 1:
			if rng.IntN(10) == 0 {
				*into = "nobody has this"
			}
		}
	}
	pick(func(r *audit.Record) string { return r.Node }, &f.Node)
	pick(func(r *audit.Record) string { return r.Kind }, &f.Kind)
	pick(func(r *audit.Record) string { return r.Principal }, &f.Principal)
	pick(func(r *audit.Record) string { return r.Session }, &f.Session)
	pick(func(r *audit.Record) string { return r.Surface }, &f.Surface)
	pick(func(r *audit.Record) string { return r.Operation }, &f.Operation)
	pick(func(r *audit.Record) string { return r.Level }, &f.Level)
	pick(func(r *audit.Record) string { return r.Outcome }, &f.Outcome)
	if rng.IntN(10) == 0 {
		f.Correlation = all[rng.IntN(len(all))].Correlation
	}
	if rng.IntN(10) == 0 {
		f.CallID = all[rng.IntN(len(all))].CallID
	}
	if rng.IntN(4) == 0 {
		f.From = all[rng.IntN(len(all))].Time
	}
	if rng.IntN(4) == 0 {
		f.Until = all[rng.IntN(len(all))].Time
	}
	return f
}

// checkLists compares lists under many filters with what looking at every record gives.
func checkLists(t *testing.T, log *audit.Log, all []*audit.Record, count int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for range count {
		f := randomFilter(rng, all)
		limit := []int{3, 50, 1000}[rng.IntN(3)]
		if f == (audit.Filter{}) || limit == 3 {
			limit = 997
		}
		if diff := cmp.Diff(naive(all, f), identifiers(pages(t, log, f, limit))); diff != "" {
			t.Fatalf("%+v in pages of %d (-want +got):\n%s", f, limit, diff)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		log := audit.New(s)
		q := audit.NewSequencer(log, audit.SequencerOptions{Keys: newKeys(t)})
		var all []*audit.Record
		for _, size := range []int{0, 1, 255, 256, 300, 4096, 4096 + 256 + 17} { // at and around the ends of blocks
			all = append(all, fill(t, s, len(all), size)...)
			checkpoint(t, q)
			if size > 0 {
				checkLists(t, log, all, 10)
			}
		}
		all = append(all, fill(t, s, len(all), len(all)+30)...) // some that have no index yet
		checkLists(t, log, all, 25)
	})
}

// TestListLarge reaches the largest tier of postings.
func TestListLarge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 66,000 records, which a short run leaves out")
	}
	s := storetest.Open(t, storetest.SQLite(t))
	log := audit.New(s)
	q := audit.NewSequencer(log, audit.SequencerOptions{Keys: newKeys(t)})
	var all []*audit.Record
	for from := 0; from < 66_000; from += 3000 {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			all = all[:from]
			for i := range 3000 {
				all = append(all, example(from+i))
			}
			return audit.Append(tx, all[from:]...)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	checkLists(t, log, all, 10)
}

// A list that is being read stays whole while records get their indexes and others arrive.
func TestListWhileGrowing(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		log := audit.New(s)
		q := audit.NewSequencer(log, audit.SequencerOptions{Keys: newKeys(t)})
		all := fill(t, s, 0, 40)
		checkpoint(t, q)
		all = append(all, fill(t, s, 40, 60)...)
		var got []string
		for cursor := ""; ; {
			page, err := log.List(t.Context(), audit.Filter{Surface: "mcp"}, cursor, 7)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, identifiers(page.Records)...)
			if cursor = page.Next; cursor == "" {
				break
			}
			fill(t, s, len(got)*100, len(got)*100+3)
			checkpoint(t, q)
		}
		if diff := cmp.Diff(naive(all, audit.Filter{Surface: "mcp"}), got); diff != "" {
			t.Errorf("the list (-want +got):\n%s", diff)
		}
	})
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	log := audit.New(storetest.Open(t, storetest.SQLite(t)))
	for _, limit := range []int{-1, 0, 1001} {
		if _, err := log.List(t.Context(), audit.Filter{}, "", limit); err == nil {
			t.Errorf("a list of %d was given", limit)
		}
	}
	if _, err := log.List(t.Context(), audit.Filter{}, "not a cursor", 10); err == nil {
		t.Error("a cursor from nowhere was taken")
	}
}

// Records whose times are out of order, as several nodes can make them, are still found by time.
func TestListByTimeOutOfOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	log := audit.New(s)
	base := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	rng := rand.New(rand.NewPCG(3, 4))
	var all []*audit.Record
	for i := range 1500 {
		r := example(i)
		r.Time = base.Add(time.Duration(i)*time.Second - time.Duration(rng.IntN(90))*time.Second)
		all = append(all, r)
	}
	err := s.Write(t.Context(), func(tx *store.Tx) error { return audit.Append(tx, all...) })
	if err != nil {
		t.Fatal(err)
	}
	checkpoint(t, audit.NewSequencer(log, audit.SequencerOptions{Keys: newKeys(t)}))
	for range 50 {
		f := audit.Filter{From: base.Add(time.Duration(rng.IntN(1500)) * time.Second)}
		f.Until = f.From.Add(time.Duration(rng.IntN(300)) * time.Second)
		f.Surface = []string{"", "mcp"}[rng.IntN(2)]
		if diff := cmp.Diff(naive(all, f), identifiers(pages(t, log, f, 20))); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", fmt.Sprint(f), diff)
		}
	}
}
