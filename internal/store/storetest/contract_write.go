package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

func testGrouping(t *testing.T, opts store.Options) {
	d := &Driver{}
	opts.Wrap = d.Wrap
	s := open(t, opts)
	release := block(t, s)
	before := d.Commits()
	var all sync.WaitGroup
	want := map[string]int{}
	for i := range 100 {
		k := fmt.Sprint("k", i)
		want[k] = i
		all.Go(func() {
			if err := s.Write(context.Background(), put(k, i)); err != nil {
				t.Error(err)
			}
		})
	}
	for s.Queued() != 100 {
		runtime.Gosched()
	}
	release()
	all.Wait()
	wantRows(t, s, want)
	if n := d.Commits() - before; n != 2 {
		t.Errorf("%d commits, want one for the write that waited and one for the hundred", n)
	}
}

func testFailureAlone(t *testing.T, opts store.Options) {
	s := open(t, opts)
	got := together(t, s,
		put("a", 1),
		func(tx *store.Tx) error { return errors.Join(put("b", 2)(tx), errRefused) },
		func(tx *store.Tx) error { return errRefused },
		put("c", 3),
		put("a", 9), // there already
		put("d", 4),
	)
	want := []error{nil, errRefused, errRefused, nil, store.ErrExists, nil}
	for i, err := range got {
		if !errors.Is(err, want[i]) || (want[i] == nil) != (err == nil) {
			t.Errorf("answer %d: %v, want %v", i, err, want[i])
		}
	}
	wantRows(t, s, map[string]int{"a": 1, "c": 3, "d": 4})
}

func testPanic(t *testing.T, opts store.Options) {
	s := open(t, opts)
	got := together(t, s, put("a", 1), func(tx *store.Tx) error {
		if err := put("b", 2)(tx); err != nil {
			return err
		}
		panic("boom")
	}, put("c", 3))
	if got[0] != nil || !errors.Is(got[1], store.ErrPanic) || got[2] != nil {
		t.Errorf("answers %v", got)
	}
	err := s.Read(t.Context(), func(*store.Tx) error { panic("boom") })
	if !errors.Is(err, store.ErrPanic) {
		t.Errorf("a read that panics: %v, want ErrPanic", err)
	}
	wantRows(t, s, map[string]int{"a": 1, "c": 3})
}

// A test that fails inside a function ends its goroutine; that must not be the end of the writer.
func testGoexit(t *testing.T, opts store.Options) {
	s := open(t, opts)
	got := together(t, s, put("a", 1), func(*store.Tx) error { runtime.Goexit(); return nil }, put("c", 3))
	for i, err := range got {
		if !errors.Is(err, store.ErrCommit) {
			t.Errorf("answer %d: %v, want ErrCommit", i, err)
		}
	}
	mustWrite(t, s, put("d", 4))
	wantRows(t, s, map[string]int{"d": 4})
}

func testFailedCommit(t *testing.T, opts store.Options) {
	d := &Driver{}
	opts.Wrap = d.Wrap
	s := open(t, opts)
	mustWrite(t, s, put("before", 1))
	release := block(t, s)
	commits := 0
	d.Before(func(query string) error {
		if query != "COMMIT" {
			return nil
		}
		if commits++; commits == 2 { // the first is that of the blocking write
			return errRefused
		}
		return nil
	})
	got := make([]error, 3)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = s.Write(context.Background(), put(fmt.Sprint(i), i)) })
	}
	for s.Queued() != len(got) {
		runtime.Gosched()
	}
	release()
	all.Wait()
	for i, err := range got {
		if !errors.Is(err, store.ErrCommit) || !errors.Is(err, errRefused) {
			t.Errorf("answer %d: %v, want ErrCommit and its cause", i, err)
		}
	}
	mustWrite(t, s, put("after", 2))
	wantRows(t, s, map[string]int{"before": 1, "after": 2})
}

func testFullQueue(t *testing.T, opts store.Options) {
	opts.Queue = 2
	s := open(t, opts)
	release := block(t, s)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			if err := s.Write(context.Background(), put(fmt.Sprint(i), i)); err != nil {
				t.Error(err)
			}
		})
	}
	for s.Queued() != 2 {
		runtime.Gosched()
	}
	if err := s.Write(t.Context(), put("x", 9)); !errors.Is(err, store.ErrBusy) {
		t.Errorf("one too many: %v, want ErrBusy", err)
	}
	release()
	all.Wait()
	wantRows(t, s, map[string]int{"0": 0, "1": 1})
}

func testCancel(t *testing.T, opts store.Options) {
	s := open(t, opts)
	release := block(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	answer := make(chan error)
	go func() { answer <- s.Write(ctx, put("a", 1)) }()
	for s.Queued() != 1 {
		runtime.Gosched()
	}
	cancel(errRefused)
	if err := <-answer; !errors.Is(err, errRefused) {
		t.Errorf("a cancelled write: %v, want the cause", err)
	}
	release()
	mustWrite(t, s, put("b", 2))
	wantRows(t, s, map[string]int{"b": 2})
	if err := s.Write(ctx, put("c", 3)); !errors.Is(err, errRefused) {
		t.Errorf("a write that came cancelled: %v, want the cause", err)
	}
}

func testCancelTooLate(t *testing.T, opts store.Options) {
	s := open(t, opts)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Write(ctx, func(tx *store.Tx) error {
		cancel()
		return put("a", 1)(tx)
	})
	if err != nil {
		t.Errorf("a write cancelled half-way: %v, want the truth, which is that it is done", err)
	}
	wantRows(t, s, map[string]int{"a": 1})
}

func testClose(t *testing.T, opts store.Options) {
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, func(tx *store.Tx) error {
		_, err := tx.Exec(`CREATE TABLE kv (k TEXT PRIMARY KEY, v BIGINT NOT NULL)`)
		return err
	})
	release := block(t, s)
	answer := make(chan error)
	go func() { answer <- s.Write(context.Background(), put("a", 1)) }()
	for s.Queued() != 1 {
		runtime.Gosched()
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	release()
	if err := errors.Join(<-answer, <-closed); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	wantRows(t, Open(t, opts), map[string]int{"a": 1})
}

func testTwice(t *testing.T, opts store.Options) {
	opts.Twice = true
	s := open(t, opts)
	runs := 0
	mustWrite(t, s, func(tx *store.Tx) error {
		runs++
		return put("a", runs)(tx)
	})
	wantRows(t, s, map[string]int{"a": 2})
}
