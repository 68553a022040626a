package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
)

// layerRecord puts what becomes of a set of changes on record. Where a gate is
// running that is an approver's act, and without one's credential nothing is
// taken over or deleted; where there is none, or nobody could approve yet, it
// says that there is no record.
type layerRecord struct {
	client *client.Client // nil: nobody to tell
	hash   string
	layer  admin.Layer
}

// record begins with what is about to be done, before it is.
func (a *app) record(ctx context.Context, warn io.Writer, e *changes.Entry, act string, l admin.Layer) (*layerRecord, error) {
	r := &layerRecord{layer: l}
	switch {
	case e.Set != nil:
		r.hash, r.layer.Kind, r.layer.Of = e.Set.Hash, "overlay", e.Set.Root
	case e.Clone != nil:
		r.hash, r.layer.Kind, r.layer.Of = e.Clone.Hash, "clone", e.Clone.Source
	default:
		return r, nil // broken: it can only be thrown away, and has no name to record
	}
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	h := &api.Health{}
	err = c.Do(ctx, "GET", "/v1/health", nil, h)
	switch {
	case errors.Is(err, client.ErrNoDaemon):
		fmt.Fprintln(warn, "gatehouse: no gate is running: this is not on record")
		return r, nil
	case err != nil:
		return nil, err
	case !h.Enrolled:
		fmt.Fprintln(warn, "gatehouse: the gate has no approver yet: this is not on record")
		return r, nil
	case a.credential == "":
		return nil, errors.New("a gate is running here, and this is an approver's act: name a credential with --credential-file")
	}
	r.client = c
	return r, r.tell(ctx, act)
}

func (r *layerRecord) tell(ctx context.Context, act string) error {
	if r.client == nil {
		return nil
	}
	return r.client.Do(ctx, "POST", "/v1/layers/"+r.hash+"/"+act, &r.layer, nil)
}

// accepted says what came of it.
func (r *layerRecord) accepted(ctx context.Context, done []string, problem error) error {
	r.layer.Done = done
	if problem != nil {
		r.layer.Problem = problem.Error()
	}
	return errors.Join(problem, r.tell(context.WithoutCancel(ctx), "accepted"))
}
