package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Find returns the youngest job with a de-duplication key that can stand for a
// new one: not failed, and asked for within the window. Its age is in Job.Age,
// the approval of record in Job.Approval.
func (j *Jobs) Find(ctx context.Context, key string) (b Job, found bool, err error) {
	if !j.recent.known(key) {
		return Job{}, false, nil
	}
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

// recent are the keys that jobs of the window may have: all of those that have
// one, and perhaps more. As a rule a request is like none before it, and then
// nothing has to be read to know that.
type recent struct {
	mu    sync.Mutex
	alone bool // nobody else starts jobs in this database
	keys  map[string]time.Time
}

// loadRecent reads the keys that earlier runs left.
func (j *Jobs) loadRecent(tx *store.Tx) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	type row struct {
		key   string
		asked int64
	}
	rows, err := store.All(tx, func(rows *store.Rows) (r row, err error) { return r, rows.Scan(&r.key, &r.asked) },
		`SELECT request_key, asked FROM job WHERE request_key <> '' AND asked >= $1`, keyring.Micros(now.Add(-j.opts.Window)))
	j.recent.alone, j.recent.keys = tx.Alone(), map[string]time.Time{}
	for _, r := range rows {
		j.recent.add(r.key, keyring.Time(r.asked))
	}
	return err
}

// known says whether there may be a job with a key.
func (r *recent) known(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.keys[key]
	return found || !r.alone
}

// add notes a key, before the job that has it is durable.
func (r *recent) add(key string, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != "" && r.alone {
		r.keys[key] = asked
	}
}

// forget drops the keys of jobs that were asked for before a time.
func (r *recent) forget(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, asked := range r.keys {
		if asked.Before(before) {
			delete(r.keys, key)
		}
	}
}
