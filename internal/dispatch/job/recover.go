package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// leftPatience is how long processes may take to die that nobody supervises.
const leftPatience = 3 * time.Second

// recover ends what earlier runs of this node left, and then says what became
// of their jobs.
func (j *Jobs) recover(ctx context.Context) error {
	var jobs []Job
	err := j.store.Read(ctx, func(tx *store.Tx) (err error) {
		if jobs, err = j.orphans(tx, `node = $1 AND run <> $2`, j.store.Node(), j.run); err != nil {
			return err
		}
		return j.loadRecent(tx)
	})
	if err != nil {
		return err
	}
	if err := j.orphaned(ctx, jobs, "the gate ended while it ran"); err != nil {
		return err
	}
	tidyGroups()
	return j.store.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM job_lease WHERE node = $1 AND run <> $2`, j.store.Node(), j.run)
		return err
	})
}

// orphans are the jobs that are not over and match.
func (j *Jobs) orphans(tx *store.Tx, where string, args ...any) ([]Job, error) {
	return store.All(tx, func(rows *store.Rows) (Job, error) { return j.scan(rows) },
		`SELECT `+columns+` FROM job WHERE state IN ('queued', 'running') AND `+where, args...)
}

// orphaned ends the processes of jobs whose gate is gone and gives the jobs
// their last state: expired if nothing ran, cancelled if that was asked for,
// else unknown. None is run again.
func (j *Jobs) orphaned(ctx context.Context, jobs []Job, why string) error {
	if len(jobs) == 0 {
		return nil
	}
	machine := machineHere()
	here := slices.Clone(jobs)
	here = slices.DeleteFunc(here, func(b Job) bool { return b.process.Machine != "" && b.process.Machine != machine })
	pids := endLeft(here, leftPatience)
	if len(pids) > 0 {
		j.log.Error("processes of jobs of an earlier run could not be ended", "pids", pids)
		why += fmt.Sprintf("; processes %v could not be ended", pids)
	}
	return j.store.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		for _, old := range jobs {
			b, err := j.read(tx, old.ID, tx.ForUpdate())
			if err != nil {
				return err
			}
			if b.State.Over() || b.run != old.run {
				continue
			}
			b.ExitCode = ExitNone
			switch {
			case b.State == Queued:
				b.State, b.ExitCode, b.Category, b.Error = Expired, ExitQueue, "shutdown", "the gate ended while it waited; nothing was run"
			case b.cancel && len(pids) == 0:
				b.State, b.Category, b.Error = Cancelled, "cancelled", "it was to be cancelled when "+why
			default:
				b.State, b.Category, b.Error = Unknown, "node_lost", why+"; what it had done by then is not known"
			}
			b.Stdout, b.Stderr = j.logSize(b.ID, "out"), j.logSize(b.ID, "err")
			if err := j.over(tx, &b, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *Jobs) logSize(id, stream string) int64 {
	fi, err := os.Stat(j.logPath(id, stream))
	if err != nil {
		return 0
	}
	return fi.Size()
}

func machineHere() string {
	chain, err := session.Ancestry(os.Getpid())
	if err != nil {
		return ""
	}
	return chain[0].Machine
}

func (j *Jobs) deadline() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.until
}

func (j *Jobs) renewed(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.until = until
	j.guard.Reset(time.Until(until))
}

// renew takes the lease, or takes it again. This process counts its time from
// before it asked, and a sixth early it ends its children: they must be dead when
// others may call their jobs unknown.
func (j *Jobs) renew(ctx context.Context) error {
	asked := time.Now()
	machine := machineHere()
	err := j.store.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO job_lease (run, node, machine, until) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run) DO UPDATE SET until = excluded.until`, j.run, j.store.Node(), machine, keyring.Micros(now.Add(j.opts.Lease)))
		return err
	})
	if err == nil {
		j.renewed(asked.Add(j.opts.Lease - j.opts.Lease/6))
	}
	return err
}

// tryRenew renews, and says what became of the jobs of nodes that did not.
func (j *Jobs) tryRenew(ctx context.Context) {
	renewing, cancel := context.WithTimeout(ctx, j.opts.Lease/6)
	defer cancel()
	err := j.renew(renewing)
	if err == nil {
		err = j.endLost(renewing)
	}
	if err != nil && ctx.Err() == nil {
		j.log.Warn("the hold on jobs could not be renewed", "error", err)
	}
}

// endLost finds jobs whose node's lease is over by the database's clock.
func (j *Jobs) endLost(ctx context.Context) error {
	var jobs []Job
	err := j.store.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		jobs, err = j.orphans(tx, `run <> $1 AND NOT EXISTS (SELECT 1 FROM job_lease WHERE job_lease.run = job.run AND until >= $2)`, j.run, keyring.Micros(now))
		return err
	})
	if err != nil {
		return err
	}
	return j.orphaned(ctx, jobs, "its node stopped answering for it")
}

// Cancel ends a job and answers when all of its processes are dead. A job of
// another node is ended there.
func (j *Jobs) Cancel(ctx context.Context, owner call.Principal, id string) error {
	b, err := j.Get(ctx, owner, id)
	if err != nil {
		return err
	}
	r := reason{Cancelled, ExitNone, "cancelled", "it was cancelled"}
	if l := j.find(id); l != nil {
		l.stop(r)
		select {
		case <-l.over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if b.State.Over() {
		return j.surelyDead(b)
	}
	err = j.store.Write(ctx, func(tx *store.Tx) error {
		b, err := j.read(tx, id, tx.ForUpdate())
		if err != nil || b.State.Over() {
			return err
		}
		b.cancel = true
		store.Notify(tx, cancelTopic, id)
		return j.update(tx, &b)
	})
	if err != nil {
		return err
	}
	_, err = j.WaitOver(ctx, id)
	return err
}

// surelyDead looks again for processes of a job whose end nobody saw.
func (j *Jobs) surelyDead(b Job) error {
	if b.State != Unknown || b.process.Machine != "" && b.process.Machine != machineHere() {
		return nil
	}
	if pids := endLeft([]Job{b}, leftPatience); len(pids) > 0 {
		return fmt.Errorf("%w: %v", ErrAlive, pids)
	}
	return nil
}

// endWanted ends the jobs here that others want to be cancelled.
func (j *Jobs) endWanted(ctx context.Context) {
	var jobs []Job
	err := j.store.Read(ctx, func(tx *store.Tx) (err error) {
		jobs, err = j.orphans(tx, `run = $1 AND cancel <> 0`, j.run)
		return err
	})
	if err != nil {
		j.log.Error("it could not be read what is to be cancelled", "error", err)
	}
	for _, b := range jobs {
		if l := j.find(b.ID); l != nil {
			l.stop(reason{Cancelled, ExitNone, "cancelled", "it was cancelled"})
		}
	}
}

// endStopped ends the jobs of principals that must not have anything running:
// the kill switch, the danger zone. What cannot be judged does not run on.
func (j *Jobs) endStopped(ctx context.Context) {
	if j.opts.Standing == nil {
		return
	}
	for _, l := range j.all() {
		err := j.store.Read(ctx, func(tx *store.Tx) error { return j.opts.Standing(tx, l.spec.Owner) })
		if err != nil && ctx.Err() == nil {
			l.stop(reason{Cancelled, ExitNone, "stopped", "its agent was stopped: " + err.Error()})
		}
	}
}

// tidy drops jobs that are older than the retention, with their output.
func (j *Jobs) tidy(ctx context.Context) {
	var ids []string
	err := j.store.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		ids, err = store.All(tx, func(rows *store.Rows) (id string, err error) { return id, rows.Scan(&id) },
			`SELECT id FROM job WHERE expires > 0 AND expires <= $1 LIMIT 1000`, keyring.Micros(now))
		if err != nil {
			return err
		}
		j.recent.forget(now.Add(-j.opts.Window))
		for _, id := range ids {
			_, errJob := tx.Exec(`DELETE FROM job WHERE id = $1`, id)
			_, errEvent := tx.Exec(`DELETE FROM job_event WHERE job = $1`, id)
			if err := errors.Join(errJob, errEvent); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		j.log.Warn("old jobs could not be dropped", "error", err)
		return
	}
	for _, id := range ids {
		_ = os.Remove(j.logPath(id, "out"))
		_ = os.Remove(j.logPath(id, "err"))
	}
	j.tidyFiles()
}

// tidyFiles drops output whose job another node dropped.
func (j *Jobs) tidyFiles() {
	entries, _ := os.ReadDir(j.dir)
	for _, e := range entries {
		fi, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), "job_") && time.Since(fi.ModTime()) > j.opts.Retention+24*time.Hour {
			_ = os.Remove(filepath.Join(j.dir, e.Name()))
		}
	}
}
