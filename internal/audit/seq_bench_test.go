package audit_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// BenchmarkSequence measures what the sequencer costs per record: time that it keeps from the writer is in Append's
// figure, this is all of it.
func BenchmarkSequence(b *testing.B) {
	s := storetest.Open(b, storetest.SQLite(b))
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{})
	b.StopTimer()
	b.ResetTimer()
	for done := 0; done < b.N; done += 4000 {
		n := min(4000, b.N-done)
		err := s.Write(b.Context(), func(tx *store.Tx) error {
			for i := range n {
				if err := audit.Append(tx, manyRecord(done+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := q.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
	}
}
