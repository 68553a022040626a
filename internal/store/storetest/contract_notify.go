package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

type memoKey struct{}

func testRemember(t *testing.T, opts store.Options) {
	s := open(t, opts)
	remember := func(v int, err error) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			tx.Remember(memoKey{}, v)
			return err
		}
	}
	var got any
	recall := func(tx *store.Tx) error { got = tx.Recall(memoKey{}); return nil }
	mustWrite(t, s, recall)
	if got != nil {
		t.Errorf("recalled %v at first", got)
	}
	answers := together(t, s, remember(1, nil), remember(2, errRefused), recall)
	if got != 1 || answers[0] != nil || !errors.Is(answers[1], errRefused) {
		t.Errorf("recalled %v in the group, answers %v", got, answers)
	}
	mustWrite(t, s, recall)
	if got != 1 {
		t.Errorf("recalled %v after the group", got)
	}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		tx.Remember(memoKey{}, 3)
		_, err := tx.Exec(`INSERT INTO nowhere VALUES (1)`)
		return err
	})
	if err == nil {
		t.Error("a bad statement went through")
	}
	mustWrite(t, s, recall)
	if got != nil {
		t.Errorf("recalled %v after a failed statement, want nothing", got)
	}
}

func testNotify(t *testing.T, opts store.Options) {
	s := open(t, opts)
	heard := s.Subscribe(t.Context(), "topic")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		store.Notify(tx, "topic", "never")
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	mustWrite(t, s, func(tx *store.Tx) error {
		store.Notify(tx, "topic", "a\nb")
		store.Notify(tx, "elsewhere", "x")
		store.Notify(tx, "topic", "a\nb")
		return nil
	})
	if diff := cmp.Diff(store.Notice{Topic: "topic", Payload: "a\nb"}, <-heard); diff != "" {
		t.Errorf("notice (-want +got):\n%s", diff)
	}
	if len(heard) > 0 {
		t.Errorf("told again: %v", <-heard)
	}
}

// testNotifyNodes notifies until the other node, whose listener may not be up yet, has heard it.
func testNotifyNodes(t *testing.T, opts store.Options) {
	s := open(t, opts)
	if s.Dialect() == store.SQLite {
		t.Skip("SQLite has one node")
	}
	opts.Node = "other"
	heard := Open(t, opts).Subscribe(t.Context(), "topic")
	for {
		mustWrite(t, s, func(tx *store.Tx) error {
			store.Notify(tx, "topic", "a\nb")
			return nil
		})
		select {
		case n := <-heard:
			if diff := cmp.Diff(store.Notice{Topic: "topic", Payload: "a\nb"}, n); diff != "" {
				t.Errorf("notice (-want +got):\n%s", diff)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func testSlowSubscriber(t *testing.T, opts store.Options) {
	s := open(t, opts)
	ch := s.Subscribe(t.Context(), "topic")
	for i := range 200 {
		mustWrite(t, s, func(tx *store.Tx) error {
			store.Notify(tx, "topic", fmt.Sprint(i))
			return nil
		})
	}
	if n := <-ch; n.Payload != "0" {
		t.Errorf("the first notice is %v", n)
	}
}

func testSubscriptionEnds(t *testing.T, opts store.Options) {
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := s.Subscribe(ctx, "topic"), s.Subscribe(t.Context(), "topic")
	cancel()
	if _, open := <-first; open {
		t.Error("a notice came from nowhere")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, open := <-second; open {
		t.Error("a notice came from nowhere")
	}
	if _, open := <-s.Subscribe(t.Context(), "topic"); open {
		t.Error("a closed store gave a subscription")
	}
}

func testClock(t *testing.T, opts store.Options) {
	s := open(t, opts)
	var last time.Time
	for range 20 {
		for _, run := range []func(context.Context, func(*store.Tx) error) error{s.Write, s.Read} {
			var now time.Time
			err := run(t.Context(), func(tx *store.Tx) (err error) {
				now, err = tx.Now()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if now.Before(last) || now.Location() != time.UTC || now != now.Truncate(time.Microsecond) {
				t.Fatalf("the clock shows %v after %v", now, last)
			}
			last = now
		}
	}
	if d := time.Since(last).Abs(); d > time.Minute {
		t.Errorf("the clock is off by %v", d)
	}
}
