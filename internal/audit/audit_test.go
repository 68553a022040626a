package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

var sameRecord = cmp.Options{cmpopts.IgnoreUnexported(audit.Record{}), cmpopts.EquateEmpty()}

func TestAppendGetByCall(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		log := audit.New(s)
		wrote := fill(t, s, 0, 9)
		got, err := log.Get(t.Context(), wrote[4].ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wrote[4], got, sameRecord); diff != "" {
			t.Errorf("record (-wrote +got):\n%s", diff)
		}
		if got.Index != audit.Unsequenced {
			t.Errorf("index %d before sequencing", got.Index)
		}
		checkpoint(t, audit.NewSequencer(log, audit.SequencerOptions{Keys: newKeys(t)}))
		call, err := log.ByCall(t.Context(), "call-1")
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range wrote[3:6] {
			r.Index = int64(i + 3)
		}
		if diff := cmp.Diff(wrote[3:6], call, sameRecord); diff != "" {
			t.Errorf("records of the call (-wrote +got):\n%s", diff)
		}
		for _, id := range []string{"", "nonsense", wrote[0].ID[:25] + "V", "00000000000000000000000000"} {
			if _, err := log.Get(t.Context(), id); !errors.Is(err, audit.ErrNotFound) {
				t.Errorf("Get(%q): %v, want ErrNotFound", id, err)
			}
		}
	})
}

func TestIdentifiersSortByTime(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	wrote := fill(t, s, 0, 100)
	for i := 1; i < len(wrote); i++ {
		if wrote[i].ID <= wrote[i-1].ID {
			t.Fatalf("%s comes after %s", wrote[i].ID, wrote[i-1].ID)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*audit.Record{
		"no kind":     {Principal: "a"},
		"not UTF-8":   {Kind: "call", Operation: "\xff"},
		"a null":      {Kind: "call", CallID: "a\x00b"},
		"a long text": {Kind: "call", Session: string(make([]byte, 2000))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, storetest.SQLite(t))
			err := s.Write(t.Context(), func(tx *store.Tx) error { return audit.Append(tx, r) })
			if !errors.Is(err, audit.ErrRecord) {
				t.Errorf("got %v, want ErrRecord", err)
			}
		})
	}
}

// A failed function must not leave a hole in the chain, nor a wrong end in memory.
func TestAppendRolledBack(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		fill(t, s, 0, 3)
		refused := errors.New("refused")
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := audit.Append(tx, example(3)); err != nil {
				return err
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Fatalf("got %v", err)
		}
		fill(t, s, 4, 6)
		keys := newKeys(t)
		checkpoint(t, audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys}))
		report := verify(t, s, keys, nil)
		if !report.OK() || report.Size != 5 {
			t.Errorf("report %+v", report)
		}
	})
}

func TestVerifyGood(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
		fill(t, s, 0, 300)
		checkpoint(t, q)
		fill(t, s, 300, 4500) // past the first merge of postings
		c := checkpoint(t, q)
		fill(t, s, 4500, 4510)
		report := verify(t, s, keys, c.Note)
		want := &audit.Report{
			Origin: c.Origin, Size: 4500, Root: c.Root, Unsequenced: 10, Checkpoints: 3, Covered: 4500,
		}
		if diff := cmp.Diff(want, report); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if err := report.Err(); err != nil {
			t.Errorf("the report's error is %v", err)
		}
	})
}

func TestExportVerifies(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		log := audit.New(s)
		q := audit.NewSequencer(log, audit.SequencerOptions{Keys: keys})
		fill(t, s, 0, 30)
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			return audit.Append(tx, &audit.Record{Kind: "odd", Body: []byte("{ not compact }\xff")}, &audit.Record{Kind: "empty"})
		})
		if err != nil {
			t.Fatal(err)
		}
		c := checkpoint(t, q)
		var out bytes.Buffer
		if err := log.Export(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		report, err := audit.VerifyExport(bytes.NewReader(out.Bytes()), keys.Public(), audit.VerifyOptions{Checkpoint: c.Note})
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() || report.Size != 32 || report.Checkpoints != 2 {
			t.Errorf("report %+v", report)
		}
		if !bytes.Contains(out.Bytes(), []byte(`"body":"{\"n\":7,\"text\":\"<ä>\"}"`)) {
			t.Error("bodies are not in the export as text")
		}
	})
}

func TestProofs(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		log := audit.New(s)
		q := audit.NewSequencer(log, audit.SequencerOptions{Keys: keys})
		wrote := fill(t, s, 0, 700)
		old := checkpoint(t, q)
		fill(t, s, 700, 1000)
		newest := checkpoint(t, q)
		for _, index := range []int64{0, 1, 255, 256, 511, 699} {
			proof, err := log.Prove(t.Context(), index)
			if err != nil {
				t.Fatal(err)
			}
			proven, err := audit.CheckProof(marshal(t, proof), keys.Public())
			if err != nil {
				t.Fatal(err)
			}
			want := *wrote[index]
			want.Index = index
			if diff := cmp.Diff(&want, proven.Record, sameRecord); diff != "" {
				t.Errorf("record %d (-want +got):\n%s", index, diff)
			}
			if diff := cmp.Diff(newest, proven.Checkpoint); diff != "" {
				t.Errorf("checkpoint (-want +got):\n%s", diff)
			}
		}
		proof, err := log.ProveConsistency(t.Context(), old.Note, keys.Public())
		if err != nil {
			t.Fatal(err)
		}
		proven, err := audit.CheckProof(marshal(t, proof), keys.Public())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&old, proven.Old); diff != "" {
			t.Errorf("old checkpoint (-want +got):\n%s", diff)
		}
		if _, err := log.Prove(t.Context(), 1000); !errors.Is(err, audit.ErrNotFound) {
			t.Errorf("a record past the checkpoint: %v, want ErrNotFound", err)
		}
	})
}

// Every change to a proof must make it fail.
func TestProofsForged(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	keys := newKeys(t)
	log := audit.New(s)
	q := audit.NewSequencer(log, audit.SequencerOptions{Keys: keys})
	fill(t, s, 0, 20)
	old := checkpoint(t, q)
	fill(t, s, 20, 50)
	checkpoint(t, q)
	record, err := log.Prove(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	consistency, err := log.ProveConsistency(t.Context(), old.Note, keys.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, proof := range []*audit.Proof{record, consistency} {
		good := marshal(t, proof)
		for i, b := range good {
			if b < '0' || b > '9' || good[i+1] == '=' {
				continue // digits are everywhere that matters; before a = in base64, not all of their bits count
			}
			bad := bytes.Clone(good)
			bad[i] = '0' + (b-'0'+1)%10
			if _, err := audit.CheckProof(bad, keys.Public()); err == nil {
				t.Errorf("a proof with %q for %q at %d, in …%s…, was accepted", bad[i], b, i, good[max(0, i-20):min(i+20, len(good))])
			}
		}
		if _, err := audit.CheckProof(good, newKeys(t).Public()); !errors.Is(err, audit.ErrProof) {
			t.Errorf("with another key: %v, want ErrProof", err)
		}
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		log := audit.New(s)
		q := audit.NewSequencer(log, audit.SequencerOptions{Keys: keys})
		wrote := fill(t, s, 0, 40)
		time.Sleep(2 * time.Millisecond) // so that the clock has moved on
		fill(t, s, 40, 45)
		before := checkpoint(t, q)
		n, err := log.DropBodies(t.Context(), wrote[39].Time.Add(time.Millisecond), audit.Record{Principal: "keeper"})
		if err != nil {
			t.Fatal(err)
		}
		if n != 40 {
			t.Errorf("dropped %d bodies, want 40", n)
		}
		checkpoint(t, q)
		report := verify(t, s, keys, before.Note)
		if !report.OK() || report.Dropped != 40 || report.Size != 46 {
			t.Errorf("report %+v", report)
		}
		got, err := log.Get(t.Context(), wrote[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Dropped || got.Body != nil || got.BodyHash != wrote[0].BodyHash {
			t.Errorf("record after retention: %+v", got)
		}
		page, err := log.List(t.Context(), audit.Filter{Operation: audit.RetentionOperation}, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) != 1 || page.Records[0].Principal != "keeper" {
			t.Errorf("the retention's own record: %+v", page.Records)
		}
		again, err := log.DropBodies(t.Context(), wrote[39].Time.Add(time.Millisecond), audit.Record{Principal: "keeper"})
		if err != nil || again != 0 {
			t.Errorf("dropping again: %d, %v", again, err)
		}
	})
}

// The triggers stand between a mistake in our own SQL and the log.
func TestTriggersRefuse(t *testing.T) {
	t.Parallel()
	attacks := []string{
		`UPDATE audit_record SET outcome = 'succeeded'`,
		`UPDATE audit_record SET body = NULL, salt = NULL`,
		`UPDATE audit_record SET body = body_hash`,
		`UPDATE audit_record SET pos = pos + 100`,
		`DELETE FROM audit_record`,
		`UPDATE audit_run SET size = size - 1`,
		`DELETE FROM audit_run`,
		`UPDATE audit_head SET size = 1`,
		`UPDATE audit_head SET root = (SELECT hash FROM audit_record WHERE time > 0 LIMIT 1)`,
		`DELETE FROM audit_head`,
		`UPDATE audit_checkpoint SET root = note`,
		`DELETE FROM audit_checkpoint`,
		`UPDATE audit_subtree SET latest = 0`,
		`DELETE FROM audit_subtree`,
		`UPDATE audit_node SET sequenced = 0`,
		`DELETE FROM audit_node`,
	}
	only := map[store.Dialect][]string{
		store.SQLite: {
			`INSERT OR REPLACE INTO audit_record SELECT pos, time, kind, call_id, principal, session, surface, operation,
				'DENY', outcome, correlation, salt, body, body_hash, hash FROM audit_record`,
			`INSERT OR REPLACE INTO audit_checkpoint SELECT size, note, note FROM audit_checkpoint`,
		},
		store.Postgres: {`TRUNCATE audit_record`, `TRUNCATE audit_checkpoint`},
	}
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		fill(t, s, 0, 300)
		checkpoint(t, audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys}))
		for _, q := range append(attacks, only[s.Dialect()]...) {
			err := s.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(q)
				return err
			})
			if err == nil {
				t.Errorf("%s: succeeded", q)
			}
		}
		if report := verify(t, s, keys, nil); !report.OK() {
			t.Errorf("after the attacks: %v", report.Problems)
		}
	})
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recorder is a sink that remembers.
type recorder struct{ got chan audit.Checkpoint }

func (r recorder) Publish(_ context.Context, c audit.Checkpoint) error {
	r.got <- c
	return nil
}

type failing struct{}

func (failing) Publish(context.Context, audit.Checkpoint) error { return fmt.Errorf("away") }

// Run sequences what is appended, signs, publishes, and on its end signs the rest.
func TestRun(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		sink := recorder{make(chan audit.Checkpoint, 100)}
		q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{
			Keys: keys, Sinks: []audit.Sink{failing{}, sink}, Every: 50, Interval: time.Hour, Gather: time.Millisecond,
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- q.Run(ctx) }()
		fill(t, s, 0, 50)
		if c := <-sink.got; c.Size < 50 {
			t.Errorf("the first checkpoint has size %d", c.Size)
		}
		fill(t, s, 50, 60)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		last := <-sink.got
		if last.Size != 60 {
			t.Errorf("the last checkpoint has size %d, want 60", last.Size)
		}
		if report := verify(t, s, keys, last.Note); !report.OK() || report.Unsequenced != 0 {
			t.Errorf("report %+v", report)
		}
	})
}
