package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// Several nodes append, sequence and sign at once: one tree, no hole, no fork, nothing signed twice.
func TestNodesShareLog(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		const nodes, each = 3, 120
		keys := newKeys(t)
		ctx, stop := context.WithCancel(t.Context())
		var running, appending sync.WaitGroup
		first := storetest.Open(t, opts)
		for n := range nodes {
			s := first
			if first.Dialect() == store.Postgres { // on SQLite it is three sequencers of one node
				opts.Node = fmt.Sprint("node-", n)
				s = storetest.Open(t, opts)
			}
			q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys, Every: 7, Gather: time.Microsecond})
			running.Go(func() {
				if err := q.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			for range 4 {
				appending.Go(func() {
					for i := range each / 4 {
						err := s.Write(context.Background(), func(tx *store.Tx) error { return audit.Append(tx, example(i)) })
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		appending.Wait()
		stop()
		running.Wait()
		report := verify(t, first, keys, nil)
		if !report.OK() || report.Size != nodes*each || report.Unsequenced != 0 || report.Covered != nodes*each {
			t.Errorf("report %+v", report)
		}
	})
}

// A sequencer does not build on a history that is not the one it has seen.
func TestSequencerRefusesRewrittenHistory(t *testing.T) {
	t.Parallel()
	for name, attacks := range map[string][]string{
		"a hash in the tree changed": {`UPDATE audit_subtree SET hash = (SELECT root FROM audit_head)`, `UPDATE audit_head SET lag = lag + 1`},
		"the tail cut":               cutTo(270),
		"a waiting record removed":   {fmt.Sprintf(`DELETE FROM audit_record WHERE pos = %d`, at(331))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Both(t, func(t *testing.T, s *store.Store) {
				keys := newKeys(t)
				q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
				fill(t, s, 0, 330)
				checkpoint(t, q)
				fill(t, s, 330, 335)
				attack(t, s, translate(t, s, attacks)...)
				if _, err := q.Checkpoint(t.Context()); !errors.Is(err, audit.ErrTampered) {
					t.Errorf("got %v, want ErrTampered", err)
				}
				c, err := audit.New(s).Latest(t.Context())
				if err != nil || c.Size != 330 {
					t.Errorf("the newest checkpoint has size %d; %v", c.Size, err)
				}
			})
		})
	}
}

// No size is signed with two roots.
func TestOneRootPerSize(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys := newKeys(t)
		q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
		fill(t, s, 0, 10)
		c := checkpoint(t, q)
		if diff := cmp.Diff(c, checkpoint(t, q)); diff != "" {
			t.Errorf("signing again (-first +second):\n%s", diff)
		}
		fill(t, s, 10, 20)
		attack(t, s, `INSERT INTO audit_checkpoint SELECT 20, root, note FROM audit_checkpoint WHERE size = 10`)
		if _, err := q.Checkpoint(t.Context()); !errors.Is(err, audit.ErrTampered) {
			t.Errorf("signing another root: %v, want ErrTampered", err)
		}
	})
}

func TestSinks(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	keys := newKeys(t)
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
	fill(t, s, 0, 3)
	first := checkpoint(t, q)
	fill(t, s, 3, 6)
	second := checkpoint(t, q)
	var posted bytes.Buffer
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := posted.ReadFrom(r.Body); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "checkpoints")
	var journal bytes.Buffer
	sinks := []audit.Sink{
		audit.FileSink{Path: file},
		audit.WebhookSink{URL: server.URL, Client: server.Client()},
		audit.LogSink{Logger: slog.New(slog.NewJSONHandler(&journal, nil))},
	}
	for _, c := range []audit.Checkpoint{first, second} {
		for _, sink := range sinks {
			if err := sink.Publish(t.Context(), c); err != nil {
				t.Errorf("%T: %v", sink, err)
			}
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first.Note)+"\n"+string(second.Note)+"\n", string(written)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(string(first.Note)+string(second.Note), posted.String()); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	if !strings.Contains(journal.String(), second.Root.String()) {
		t.Errorf("the journal lacks the root: %s", journal.String())
	}
	status = http.StatusInternalServerError
	if err := sinks[1].Publish(t.Context(), first); err == nil {
		t.Error("a webhook that failed was taken as done")
	}
	if err := (audit.FileSink{Path: t.TempDir()}).Publish(t.Context(), first); err == nil {
		t.Error("a file that cannot be written was taken as done")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, err := audit.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := audit.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(dir, "audit.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if made.Public() != loaded.Public() || made.Public()+"\n" != string(public) {
		t.Errorf("public keys %q, %q, %q", made.Public(), loaded.Public(), public)
	}
	secret := filepath.Join(dir, "audit.key")
	info, err := os.Stat(secret)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(secret, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.LoadOrCreate(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := errors.Join(os.Chmod(secret, 0o600), os.WriteFile(secret, []byte("nonsense\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.LoadOrCreate(dir); err == nil {
		t.Error("nonsense was taken for a key")
	}
}
