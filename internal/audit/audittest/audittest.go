// Package audittest makes logs for benchmarks.
//
// [Million] returns a directory whose log holds a million records, made by the
// product's own code the first time and kept in the temporary directory for the
// next run. Every value of a column is common in it, yet some combinations do
// not exist, and sessions take turns, which is the hardest case for a list:
// each is spread over the whole log.
//
// It is for tests and benchmarks alone. Whoever changes the log copies the
// directory first.
package audittest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Size is how many records the log has, Rare how many of them have the
// operation RareOperation.
const (
	Size          = 1_000_000
	Rare          = 10
	RareOperation = "rare-operation"
)

// Node is the name of the node that wrote the records.
const Node = "local"

// Record is the i-th record.
func Record(i int) *audit.Record {
	r := &audit.Record{
		Kind:        []string{"call", "start", "outcome", "verdict"}[i%4],
		CallID:      fmt.Sprintf("call-%08d", i/4),
		Principal:   fmt.Sprintf("agent-%d", i%20),
		Session:     fmt.Sprintf("session-%d", i%1000),
		Surface:     []string{"mcp", "hook"}[i%2],
		Operation:   fmt.Sprintf("operation-%d", i%50),
		Level:       []string{"AUTO_APPROVE", "CONFIRM_SESSION", "DENY"}[i%3],
		Outcome:     []string{"", "", "succeeded", ""}[i%4],
		Correlation: fmt.Sprintf("job-%d", i/100),
		Body:        []byte(`{"arguments":{"path":"src/main.go","text":"some words that a call carries with it"},"votes":[]}`),
	}
	if i%(Size/Rare) == 12345 {
		r.Operation, r.Principal = RareOperation, "rare-agent"
	}
	return r
}

// Million returns the directory of the log.
func Million(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(os.TempDir(), "gatehouse-bench-"+schema(tb))
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir
	}
	if err := os.RemoveAll(dir); err != nil {
		tb.Fatal(err)
	}
	s, err := store.Open(context.Background(), store.Options{Dir: dir, Node: Node})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{})
	for from := 0; from < Size; from += 4000 {
		err := s.Write(context.Background(), func(tx *store.Tx) error {
			for i := range 4000 {
				if err := audit.Append(tx, Record(from+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := q.Step(context.Background()); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// schema names the migrations and the form of postings as they are: a log made
// under others is not opened, or not what is to be measured.
func schema(tb testing.TB) string {
	tb.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("where is the source?")
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "store", "migrations", "sqlite", "*.sql"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no migrations: %v", err)
	}
	files = append(files, filepath.Join(filepath.Dir(here), "..", "posting.go"))
	h := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
