package job

import (
	"context"
	"errors"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Find returns the youngest job with a de-duplication key that can stand for a
// new one: not failed, and asked for within the window. Its age is in Job.Age,
// the approval of record in Job.Approval.
func (j *Jobs) Find(ctx context.Context, key string) (b Job, found bool, err error) {
	err = j.store.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		b, found, err = j.reusable(tx, key, "", now)
		return err
	})
	return b, found, err
}

// reusable is Find in a transaction, for one agent's jobs if agent is not "".
func (j *Jobs) reusable(tx *store.Tx, key, agent string, now time.Time) (Job, bool, error) {
	if key == "" {
		return Job{}, false, nil
	}
	b, err := j.scan(tx.QueryRow(`SELECT `+columns+` FROM job WHERE request_key = $1 AND asked >= $2 AND (agent = $3 OR $3 = '')
		AND request_key <> '' AND cancel = 0 AND state IN ('queued', 'running', 'completed') ORDER BY asked DESC, id DESC LIMIT 1`,
		key, keyring.Micros(now.Add(-j.opts.Window)), agent))
	if errors.Is(err, ErrNotFound) {
		return Job{}, false, nil
	}
	if err != nil {
		return Job{}, false, err
	}
	if b, err = j.read(tx, b.ID, ""); err != nil {
		return Job{}, false, err
	}
	b.Deduplicated, b.Age = true, now.Sub(b.Asked)
	return b, true, nil
}
