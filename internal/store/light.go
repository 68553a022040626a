package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// light makes jobs durable in the journal and answers them. It returns those that need a transaction, of which nothing
// is done; what was written to the journal all the same is passed over when that transaction is committed.
func (w *writer) light(jobs []*job) (heavy []*job) {
	if w.journal == nil || w.journal.failed || w.session == nil || w.stuck {
		return jobs
	}
	ctx, cancel := w.store.dialect.groupContext()
	defer cancel()
	g := newGroup(w, ctx)
	g.light = true
	var done []*job
	for _, j := range jobs {
		if !j.light || g.run(j) != nil {
			heavy = append(heavy, j)
			continue
		}
		done = append(done, j)
	}
	if len(g.changes) > 0 && w.enter(g.changes) != nil {
		return jobs
	}
	if len(done) > 0 {
		g.done()
	}
	for _, j := range done {
		j.tell(j.err)
	}
	return heavy
}

// enter writes the journal. One that failed is not used again before all of it is in the database: what became of its
// last entry is unknown.
func (w *writer) enter(changes []change) error {
	micros := w.store.clock.reading().UnixMicro()
	err := w.journal.append(w.seq+1, micros, changes)
	if errors.Is(err, errHeavy) {
		return err
	}
	w.seq++
	if err != nil {
		w.store.log.Error("store: the journal cannot be written; the group goes into the database", "error", err)
		w.journal.failed = true
		return errHeavy
	}
	w.waiting = append(w.waiting, entry{seq: w.seq, micros: micros, changes: changes})
	w.rows.Add(int64(len(changes)))
	return nil
}

// settle puts what waits into the database, first thing in a transaction.
func (g *group) settle() error {
	w := g.writer
	if len(w.waiting) == 0 {
		return nil
	}
	tx := &Tx{store: w.store, ctx: g.ctx, session: w.session, group: g}
	// A commit whose answer was lost may have been one.
	var settled int64
	if err := tx.QueryRow(`SELECT settled FROM store_journal`).Scan(&settled); err != nil {
		return err
	}
	return put(tx, w.waiting, settled)
}

// put writes the rows of entries after the one with a number. A row that is put in and taken out again comes to
// nothing; the others are written many at a time.
func put(tx *Tx, entries []entry, after int64) error {
	var tables []*Table
	rows := map[*Table][][]any{}
	known := map[string]*Table{}
	for _, e := range entries {
		if e.seq <= after {
			continue
		}
		for _, c := range e.changes {
			t := known[c.table.name]
			if t == nil {
				t = c.table
				tables, known[t.name] = append(tables, t), t
			}
			if !c.drop {
				rows[t] = append(rows[t], c.row)
				continue
			}
			var found bool
			if rows[t], found = without(rows[t], c.row[0]); found {
				continue
			}
			if _, err := tx.Exec(t.drop, c.row[0]); err != nil {
				return err
			}
		}
	}
	for _, t := range tables {
		if err := t.insert(tx, rows[t]); err != nil {
			return err
		}
	}
	return nil
}

// without leaves out the row with a key. What is taken out was put in a moment ago as a rule.
func without(rows [][]any, key any) ([][]any, bool) {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i][0] == key {
			return append(rows[:i], rows[i+1:]...), true
		}
	}
	return rows, false
}

func (t *Table) insert(tx *Tx, rows [][]any) error {
	args := make([]any, 0, batch*t.width)
	for ; len(rows) >= batch; rows = rows[batch:] {
		args = args[:0]
		for _, row := range rows[:batch] {
			args = append(args, row...)
		}
		if _, err := tx.Exec(t.many, args...); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if _, err := tx.Exec(t.one, row...); err != nil {
			return err
		}
	}
	return nil
}

// note says in the transaction which entries of the journal are done with.
func (w *writer) note(tx *Tx) error {
	if w.seq == w.settled {
		return nil
	}
	_, err := tx.Exec(`UPDATE store_journal SET settled = $1`, w.seq)
	return err
}

// emptied follows a commit: all entries are in the database.
func (w *writer) emptied() {
	if w.seq == w.settled {
		return
	}
	w.settled, w.stuck = w.seq, false
	clear(w.waiting)
	w.waiting = w.waiting[:0]
	w.rows.Store(0)
	if w.journal != nil {
		w.journal.rewind()
	}
}

// settle has what waits put into the database before a read. A read goes on without if that fails: then nothing can
// be written, which whoever writes is told.
func (s *Store) settle(ctx context.Context) {
	if s.writer.rows.Load() == 0 {
		return
	}
	if err := s.Write(ctx, func(*Tx) error { return nil }); err != nil && ctx.Err() == nil {
		s.log.Warn("store: what is in the journal cannot be put into the database yet", "error", err)
	}
}

// prepareJournal prepares the journal of a store that is alone with its database.
func (s *Store) prepareJournal(ctx context.Context, c driver.Connector) error {
	if !s.Alone() {
		return nil
	}
	w := s.writer
	if err := s.writeDB.QueryRowContext(ctx, `SELECT settled FROM store_journal`).Scan(&w.settled); err != nil {
		return fmt.Errorf("read the journal's state: %w", err)
	}
	w.seq = w.settled
	w.journal = &journal{path: filepath.Join(s.opts.Dir, journalFile), sync: func(run func() error) error { return run() }}
	if t, ok := c.(interface{ Sync(func() error) error }); ok {
		w.journal.sync = t.Sync // tests that inject faults or count syncs
	}
	return nil
}

// replay puts what a crash left in the journal into the database, before anything else reads or changes it.
func (s *Store) replay(ctx context.Context) error {
	if !s.Alone() {
		return nil
	}
	path := filepath.Join(s.opts.Dir, journalFile)
	entries, err := readJournal(path)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if err := s.replayed(ctx, entries); err != nil {
			return fmt.Errorf("take over the journal of a gate that did not stop in order: %w", err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) replayed(ctx context.Context, entries []entry) error {
	se, err := openSession(ctx, s.writeDB, false)
	if err != nil {
		return err
	}
	defer se.close()
	if err := se.control(ctx, s.dialect.beginWrite()); err != nil {
		return err
	}
	tx := &Tx{store: s, ctx: ctx, session: se}
	var settled int64
	err = tx.QueryRow(`SELECT settled FROM store_journal`).Scan(&settled)
	last := entries[len(entries)-1]
	switch {
	case err != nil:
	case entries[0].seq > settled+1:
		err = fmt.Errorf("%w: the journal begins with entry %d, and the database has them up to %d: it is older than its journal; "+
			"put the database back that belongs to it, or move %s away and lose what is only there", ErrCorrupt, entries[0].seq, settled, journalFile)
	case last.seq > settled:
		s.log.Warn("store: the gate did not stop in order; what was in its journal is put into the database", "entries", last.seq-settled)
		err = put(tx, entries, settled)
		if err == nil {
			_, err = tx.Exec(`UPDATE store_journal SET settled = $1`, last.seq)
		}
		if err == nil {
			_, err = tx.Exec(`UPDATE store_clock SET micros = $1 WHERE micros < $1`, last.micros)
		}
	}
	if err == nil {
		err = se.control(ctx, "COMMIT")
	}
	if err != nil {
		return errors.Join(err, se.control(context.WithoutCancel(ctx), "ROLLBACK"))
	}
	return nil
}

// closeJournal puts what waits into the database and removes the file, so that a data directory at rest has none.
func (w *writer) closeJournal() error {
	if w.journal == nil {
		return nil
	}
	var err error
	if len(w.waiting) > 0 {
		j := &job{fn: func(*Tx) error { return nil }, answer: make(chan error, 1)}
		w.serve([]*job{j})
		err = <-j.answer
	}
	return errors.Join(err, w.journal.close(w.seq == w.settled))
}
