package storetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// errRefused is what functions of the suite fail with.
var errRefused = errors.New("refused")

// Run is the contract of a store. It holds on every database; options returns those of a new, empty one.
func Run(t *testing.T, options func(testing.TB) store.Options) {
	for name, test := range map[string]func(*testing.T, store.Options){
		"write then read":                testWriteThenRead,
		"values come back as they were":  testValues,
		"data outlive the store":         testReopen,
		"one commit for many writes":     testGrouping,
		"a failure is its caller's only": testFailureAlone,
		"a panic is contained":           testPanic,
		"Goexit is contained":            testGoexit,
		"a failed statement is final":    testFailedStatement,
		"a failed commit fails all":      testFailedCommit,
		"open rows are refused":          testOpenRows,
		"a transaction ends":             testUseAfterEnd,
		"a read is a snapshot":           testSnapshot,
		"a read changes nothing":         testReadOnly,
		"a full queue refuses":           testFullQueue,
		"cancelling withdraws":           testCancel,
		"once begun the truth is told":   testCancelTooLate,
		"close commits what is queued":   testClose,
		"a unique key":                   testUnique,
		"memory follows the commit":      testRemember,
		"notices follow the commit":      testNotify,
		"notices reach other nodes":      testNotifyNodes,
		"nobody slow holds up a write":   testSlowSubscriber,
		"subscriptions end":              testSubscriptionEnds,
		"the clock goes forward":         testClock,
		"functions bear being run again": testTwice,
		"rows that can wait":             testLight,
		"a light write grows heavy":      testLightGrowsHeavy,
		"more rows than can wait":        testLightMany,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, options(t))
		})
	}
}

// open opens a store with a table of keys and values.
func open(t *testing.T, opts store.Options) *store.Store {
	t.Helper()
	s := Open(t, opts)
	mustWrite(t, s, func(tx *store.Tx) error {
		_, err := tx.Exec(`CREATE TABLE kv (k TEXT PRIMARY KEY, v BIGINT NOT NULL)`)
		return err
	})
	return s
}

func mustWrite(t *testing.T, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func put(k string, v int) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO kv (k, v) VALUES ($1, $2)`, k, v)
		return err
	}
}

func wantRows(t *testing.T, s *store.Store, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		_, err := store.All(tx, func(rows *store.Rows) (any, error) {
			var k string
			var v int
			err := rows.Scan(&k, &v)
			got[k] = v
			return nil, err
		}, `SELECT k, v FROM kv`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// block makes the writer wait until the returned function is called, so that what is written meanwhile is queued.
func block(t *testing.T, s *store.Store) (release func()) {
	t.Helper()
	begun, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var done sync.WaitGroup
	done.Go(func() {
		err := s.Write(context.Background(), func(*store.Tx) error {
			once.Do(func() { close(begun) })
			<-hold
			return nil
		})
		if err != nil {
			t.Errorf("the blocking write: %v", err)
		}
	})
	<-begun
	return func() { close(hold); done.Wait() }
}

// together queues the functions behind a blocked writer, so that they form one group, and returns their answers.
func together(t *testing.T, s *store.Store, fns ...func(*store.Tx) error) []error {
	t.Helper()
	release := block(t, s)
	answers := make([]error, len(fns))
	var all sync.WaitGroup
	for i, fn := range fns {
		all.Go(func() { answers[i] = s.Write(context.Background(), fn) })
		for s.Queued() != i+1 {
			runtime.Gosched()
		}
	}
	release()
	all.Wait()
	return answers
}
