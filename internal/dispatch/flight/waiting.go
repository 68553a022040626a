package flight

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Verdict is how a question about requests was answered.
type Verdict struct {
	// Status is Approved, Denied, Expired or Withdrawn.
	Status string
	// By is who answered, "" where nobody did, and Words what they said.
	By, Words string
}

// wait notes which question a request waits for.
func (r *Recorder) wait(tx *store.Tx, rec *Record) error {
	if rec.Status != Asked || rec.Request == "" {
		return nil
	}
	_, err := tx.Exec(`INSERT INTO flight_waiting (request, id) VALUES ($1, $2)`, rec.Request, rec.ID)
	return err
}

// Answered gives the requests that wait for a question its answer, in the
// transaction that answers it. What waits for none is left as it is.
func (r *Recorder) Answered(tx *store.Tx, question string, v Verdict) error {
	ids, err := store.All(tx, func(rows *store.Rows) (id string, err error) { return id, rows.Scan(&id) },
		`SELECT id FROM flight_waiting WHERE request = $1 ORDER BY id`, question)
	if err != nil || len(ids) == 0 {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM flight_waiting WHERE request = $1`, question); err != nil {
		return err
	}
	for _, id := range ids {
		if err := r.Judged(tx, id, v); err != nil {
			return err
		}
	}
	return nil
}

// Judged gives one request its verdict in place of the one it has.
func (r *Recorder) Judged(tx *store.Tx, id string, v Verdict) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	return r.change(tx, id, func(rec *Record) error {
		rec.Status, rec.DecidedBy, rec.DecidedAt, rec.State = v.Status, v.By, now, Refused
		if v.Status == Approved {
			rec.State = Granted
		}
		if v.Words != "" {
			words, _ := r.redact().Text(v.Words)
			rec.Reasons = append(rec.Reasons, words)
		}
		return nil
	})
}

// Runs records which job and which call a request became.
func (r *Recorder) Runs(tx *store.Tx, id string, with Run) error {
	return r.change(tx, id, func(rec *Record) error {
		if with.JobID != "" {
			rec.JobID = with.JobID
		}
		if with.CallID != "" {
			rec.CallID = with.CallID
		}
		if with.SessionID != "" {
			rec.SessionID = with.SessionID
		}
		if rec.State == Granted {
			rec.State = Started
		}
		return nil
	})
}

// Run is what a request became. What is empty is left as it was.
type Run struct{ JobID, CallID, SessionID string }
