package admin

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Layer is what a confined run left to be taken over, as whoever takes it over
// or discards it names it. The gate does not have the files: they belong to the
// user who ran the command.
type Layer struct {
	// Kind is overlay or clone, Of the directory it belongs to.
	Kind string `json:"kind"`
	Of   string `json:"of"`
	// Paths are what was named; none is all that needs no word of its own.
	Paths []string `json:"paths,omitzero"`
	// Protected are files that can run code later, each shown and answered for.
	Protected []string `json:"protected,omitzero"`
	// Done are what was taken over, and Problem why not all was.
	Done    []string `json:"done,omitzero"`
	Problem string   `json:"problem,omitzero"`
}

var layerHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// RecordLayer puts an approver's act about a layer on record, under the hash over
// everything in it: that it is about to be accepted, what came of that, or that
// it is about to be discarded.
func (d *Desk) RecordLayer(ctx context.Context, a Actor, what, hash string, l Layer) error {
	if !layerHash.MatchString(hash) {
		return &Error{text: "not the hash of a layer", status: http.StatusBadRequest, cause: errors.New(hash)}
	}
	return d.act(ctx, func(*store.Tx) (Act, error) { return a.act("changes."+what, hash, l), nil })
}
