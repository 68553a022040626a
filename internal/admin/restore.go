package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// RestorePoint is a restore point with what putting it back would do now.
type RestorePoint struct {
	restore.Point
	Plan *restore.Plan `json:"plan,omitzero"`
}

// Restored is what came of putting a point back.
type Restored struct {
	// Undo is the point that holds what was there before.
	Undo    string           `json:"undo"`
	Changes []restore.Change `json:"changes"`
}

// RestorePoints lists the points of this node, newest first, and those that
// cannot be read.
func (d *Desk) RestorePoints(context.Context) (list []RestorePoint, problems []string, err error) {
	points, problems, err := d.opts.Restore.List()
	for _, p := range points {
		list = append(list, RestorePoint{Point: *p})
	}
	return list, problems, publicError(err)
}

// RestorePoint compares a point with what is there now.
func (d *Desk) RestorePoint(_ context.Context, id string) (*RestorePoint, error) {
	p, plan, err := d.opts.Restore.Plan(id)
	if err != nil {
		return nil, restoreError(err)
	}
	return &RestorePoint{Point: *p, Plan: plan}, nil
}

// ApplyRestore puts a point back. That it begins is on record before anything
// is written, and what came of it after.
func (d *Desk) ApplyRestore(ctx context.Context, a Actor, id string, how restore.Apply) (*Restored, error) {
	how.By = a.Approver
	begin := map[string]any{"digest": how.Digest, "paths": how.Paths, "newer": how.Newer}
	if err := d.act(ctx, func(*store.Tx) (Act, error) { return a.act("restore.apply", id, begin), nil }); err != nil {
		return nil, err
	}
	undo, changes, err := d.opts.Restore.Apply(id, how)
	end := map[string]any{"undo": undo}
	var did, failed []string
	for _, c := range changes {
		if c.Problem == "" {
			did = append(did, c.Path)
		} else {
			failed = append(failed, c.Path+": "+c.Problem)
		}
	}
	end["restored"], end["failed"] = did, failed
	if err != nil {
		end["refused"] = err.Error()
	}
	if err := d.act(ctx, func(*store.Tx) (Act, error) { return a.act("restore.applied", id, end), nil }); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, restoreError(err)
	}
	return &Restored{Undo: undo, Changes: changes}, nil
}

func restoreError(err error) error {
	if errors.Is(err, restore.ErrNone) {
		return &Error{text: restore.ErrNone.Error(), status: http.StatusNotFound, cause: err}
	}
	return publicError(err)
}
