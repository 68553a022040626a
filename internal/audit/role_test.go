package audit_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestRestrictedRole runs the SQL that docs/postgresql.md tells operators to run, and then the log as that role: all
// of its work is possible, none of the attacks.
func TestRestrictedRole(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t)
	text, err := os.ReadFile("../../docs/postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```sql\n")
	grants, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the page has no SQL")
	}
	owner := storetest.Open(t, store.Options{DSN: c.DSN("postgres")})
	err = owner.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(grants)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	s := storetest.Open(t, store.Options{DSN: strings.Replace(c.DSN("postgres"), "gatehouse@", "gatehouse_gate@", 1), Node: "test"})
	keys := newKeys(t)
	log := audit.New(s)
	ctx, stop := context.WithCancel(t.Context())
	q := audit.NewSequencer(log, audit.SequencerOptions{Keys: keys, Gather: time.Millisecond})
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	wrote := fill(t, s, 0, 4500)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n, err := log.DropBodies(t.Context(), wrote[0].Time.Add(time.Microsecond), audit.Record{}); err != nil || n == 0 {
		t.Errorf("retention dropped %d bodies: %v", n, err)
	}
	for _, attack := range []string{
		`DELETE FROM audit_record`, `UPDATE audit_record SET level = 'DENY'`, `TRUNCATE audit_record`,
		`ALTER TABLE audit_record DISABLE TRIGGER ALL`, `DROP TRIGGER audit_record_update ON audit_record`,
		`SET LOCAL session_replication_role = replica`, `UPDATE audit_checkpoint SET note = root`, `DELETE FROM audit_checkpoint`,
		`UPDATE audit_run SET pos = pos + 1`, `DELETE FROM audit_run`, `UPDATE audit_head SET origin = 'mine'`,
		`DELETE FROM audit_subtree`, `UPDATE store_migration SET checksum = ''`, `DROP TABLE audit_record`,
	} {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(attack)
			return err
		})
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
			t.Errorf("%s: %v, want it to be forbidden", attack, err)
		}
	}
	if report := verify(t, s, keys, nil); !report.OK() || report.Size != 4500 {
		t.Errorf("report %+v", report)
	}
}
