package activation

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Trail is what the operations of a batch change, kept so that all of it can
// be taken back: a file's text is durable here before the file is written, and
// a row in the transaction that changes it. A trail that is neither kept nor
// taken back when the gate dies is taken back when it starts again. A nil
// trail keeps nothing.
type Trail struct {
	keeper *Keeper
	batch  string
	seq    int
}

// mark is one change of a trail; one of its members is set.
type mark struct {
	File   *fileMark   `json:"file,omitzero"`
	Active *activeMark `json:"active,omitzero"`
	Mode   *modeMark   `json:"mode,omitzero"`
}

// fileMark is a file of the library; a text that is nil is no file.
type fileMark struct {
	Path          string `json:"path"`
	Before, After *string
}

// activeMark is an element that came into force, went out of it or changed.
type activeMark struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	ID        string `json:"id"`
	Before    *session.Active
	After     *session.Active
}

type modeMark struct {
	Session string `json:"session"`
	Before  session.Mode
	After   session.Mode
}

// Begin starts the trail of a batch.
func (k *Keeper) Begin(batch string) *Trail { return &Trail{keeper: k, batch: batch} }

// trailPurpose binds a sealed mark to its place.
func trailPurpose(batch string, seq int) string { return "trail " + batch + " " + strconv.Itoa(seq) }

// add writes a mark.
func (t *Trail) add(tx *store.Tx, m *mark) error {
	t.seq++
	plain, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sealed, err := t.keeper.opts.Keys.Seal(trailPurpose(t.batch, t.seq), plain)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO trail (node, batch, seq, content) VALUES ($1, $2, $3, $4)`, tx.Node(), t.batch, t.seq, sealed)
	return err
}

// Writing notes that a file is about to be written with a document. Call it
// outside of any transaction: it is durable when it returns.
func (t *Trail) Writing(ctx context.Context, path string, d *element.Document) error {
	if t == nil {
		return nil
	}
	before, err := t.keeper.opts.Library.Text(path)
	if err != nil {
		return err
	}
	after, err := d.Encode()
	if err != nil {
		return err
	}
	return t.keeper.opts.Store.Write(ctx, func(tx *store.Tx) error {
		return t.add(tx, &mark{File: &fileMark{Path: path, Before: text(before), After: text(after)}})
	})
}

func text(data []byte) *string {
	if data == nil {
		return nil
	}
	s := string(data)
	return &s
}

// active notes what a transaction changes about one element.
func (t *Trail) active(tx *store.Tx, agent, workspace string, before, after *session.Active) error {
	if t == nil {
		return nil
	}
	either := before
	if before == nil {
		either = after
	}
	return t.add(tx, &mark{Active: &activeMark{Agent: agent, Workspace: workspace, ID: either.ID(), Before: before, After: after}})
}

// mode notes that a transaction changes how a session is treated.
func (t *Trail) mode(tx *store.Tx, id string, before, after session.Mode) error {
	if t == nil {
		return nil
	}
	return t.add(tx, &mark{Mode: &modeMark{Session: id, Before: before, After: after}})
}

// Keep ends a trail: what was done stays done.
func (t *Trail) Keep(ctx context.Context) error {
	return t.keeper.opts.Store.Write(ctx, t.forget)
}

func (t *Trail) forget(tx *store.Tx) error {
	_, err := tx.Exec(`DELETE FROM trail WHERE batch = $1`, t.batch)
	return err
}

// TakeBack undoes what the trail holds, the last first, and ends it. What
// someone else changed meanwhile is left as it is, and told. An error leaves
// the trail: it is tried again when the gate starts.
func (t *Trail) TakeBack(ctx context.Context) (left []string, err error) {
	var marks []mark
	err = t.keeper.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		marks, err = t.marks(tx)
		return err
	})
	if err != nil || len(marks) == 0 {
		return nil, err
	}
	for _, m := range slices.Backward(marks) {
		if m.File == nil {
			continue
		}
		done, err := t.keeper.opts.Library.Restore(m.File.Path, data(m.File.After), data(m.File.Before))
		if err != nil {
			return nil, err
		}
		if !done {
			left = append(left, m.File.Path+" was changed by someone else meanwhile")
		}
	}
	// The transaction may run more than once.
	files := len(left)
	err = t.keeper.opts.Store.Write(ctx, func(tx *store.Tx) error {
		left = left[:files]
		for _, m := range slices.Backward(marks) {
			done, err := t.keeper.unmark(tx, &m)
			if err != nil {
				return err
			}
			if !done {
				left = append(left, "what is active was changed by someone else meanwhile")
			}
		}
		if err := t.forget(tx); err != nil {
			return err
		}
		return t.keeper.opts.Record(tx, Event{Name: "batch.taken_back", By: "gatehouse", Channel: "gate", Subject: t.batch, Detail: left})
	})
	return left, err
}

func data(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

// marks reads a trail in the order in which it was made.
func (t *Trail) marks(tx *store.Tx) ([]mark, error) {
	return store.All(tx, func(rows *store.Rows) (m mark, err error) {
		var seq int
		var sealed []byte
		if err := rows.Scan(&seq, &sealed); err != nil {
			return m, err
		}
		plain, err := t.keeper.opts.Keys.Open(trailPurpose(t.batch, seq), sealed)
		if err != nil {
			return m, fmt.Errorf("the trail of batch %s was edited: %w", t.batch, err)
		}
		return m, json.Unmarshal(plain, &m)
	}, `SELECT seq, content FROM trail WHERE batch = $1 ORDER BY seq`, t.batch)
}

// unmark puts back what a transaction changed, if it is as that left it.
func (k *Keeper) unmark(tx *store.Tx, m *mark) (done bool, err error) {
	switch {
	case m.Active != nil:
		return k.unmarkActive(tx, m.Active)
	case m.Mode != nil:
		s, err := k.opts.Sessions.Get(tx, m.Mode.Session)
		switch {
		case err != nil:
			return false, err
		case !s.Ended.IsZero() || s.Mode == m.Mode.Before:
			return true, nil
		case s.Mode != m.Mode.After:
			return false, nil
		}
		return true, k.opts.Sessions.SetMode(tx, s.ID, m.Mode.Before)
	}
	return true, nil
}

func (k *Keeper) unmarkActive(tx *store.Tx, m *activeMark) (done bool, err error) {
	sets, err := k.opts.Sessions.ActiveSets(tx)
	if err != nil {
		return false, err
	}
	list := slices.Clone(session.ActiveIn(sets, m.Agent, m.Workspace))
	at := slices.IndexFunc(list, func(a session.Active) bool { return a.ID() == m.ID })
	var now *session.Active
	if at >= 0 {
		now = &list[at]
	}
	switch {
	case same(now, m.Before):
		return true, nil
	case !same(now, m.After):
		return false, nil
	case m.Before == nil:
		list = slices.Delete(list, at, at+1)
	case now == nil:
		list = append(list, *m.Before)
	default:
		list[at] = *m.Before
	}
	return true, k.opts.Sessions.SetActive(tx, m.Agent, m.Workspace, list, "gatehouse")
}

// same compares entries as they are stored: a time that was read back is
// written the same, and may be another value.
func same(a, b *session.Active) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Recover takes back what batches of an earlier run of this node left undone.
// Call it before anything else changes what the keeper keeps.
func (k *Keeper) Recover(ctx context.Context) (batches int, err error) {
	var ids []string
	err = k.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		ids, err = store.All(tx, func(rows *store.Rows) (id string, err error) { return id, rows.Scan(&id) },
			`SELECT DISTINCT batch FROM trail WHERE node = $1 ORDER BY batch`, tx.Node())
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		left, err := k.Begin(id).TakeBack(ctx)
		if err != nil {
			return batches, err
		}
		batches++
		k.opts.Log.Warn("a batch that an earlier run of the gate did not finish was taken back", "batch", id, "left", left)
	}
	return batches, nil
}
