package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// RetentionOperation is the operation of the record that a retention leaves.
const RetentionOperation = "audit.retention"

// dropBatch is how many bodies one transaction drops.
const dropBatch = 500

// retention is the body of that record.
type retention struct {
	Before time.Time `json:"before"`
}

// retentionOf reads until when a record allowed bodies to be dropped.
func retentionOf(r *Record) (time.Time, bool) {
	if r.Kind != KindAdmin || r.Operation != RetentionOperation || r.Dropped {
		return time.Time{}, false
	}
	var body retention
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return time.Time{}, false
	}
	return body.Before, true
}

// DropBodies forgets the bodies of records from before the given time and says how many there were. Everything else
// stays, the log verifies as before, and a record says who had it done: by fills in its principal and the rest. The
// record is durable before the first body goes.
func (l *Log) DropBodies(ctx context.Context, before time.Time, by Record) (int64, error) {
	before = before.UTC().Truncate(time.Microsecond)
	body, err := json.Marshal(retention{before})
	if err != nil {
		return 0, err
	}
	err = l.store.Write(ctx, func(tx *store.Tx) error {
		r := by
		r.Kind, r.Operation, r.Body = KindAdmin, RetentionOperation, body
		if err := Append(tx, &r); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO audit_retention (before) VALUES ($1) ON CONFLICT DO NOTHING`, before.UnixMicro())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("record the retention: %w", err)
	}
	var dropped int64
	for from := int64(0); ; {
		n, next, err := l.dropSome(ctx, from, before)
		dropped += n
		if err != nil || next < 0 {
			return dropped, err
		}
		from = next
	}
}

// dropSome drops bodies among the next records from a position on, and returns where to go on, or -1 at the end.
func (l *Log) dropSome(ctx context.Context, from int64, before time.Time) (dropped, next int64, err error) {
	err = l.store.Write(ctx, func(tx *store.Tx) error {
		positions, err := store.All(tx, func(rows *store.Rows) (pos int64, err error) {
			err = rows.Scan(&pos)
			return pos, err
		}, `SELECT pos FROM audit_record WHERE pos > $1 ORDER BY pos LIMIT CAST($2 AS BIGINT)`, from, dropBatch)
		if err != nil {
			return err
		}
		if len(positions) == 0 {
			dropped, next = 0, -1
			return nil
		}
		next = positions[len(positions)-1]
		dropped, err = tx.Exec(`UPDATE audit_record SET salt = NULL, body = NULL
			WHERE pos >= $1 AND pos <= $2 AND time < $3 AND salt IS NOT NULL`, positions[0], next, before.UnixMicro())
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("drop bodies: %w", err)
	}
	return dropped, next, nil
}
