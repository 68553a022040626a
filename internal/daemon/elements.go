package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
)

// lookEvery is how often elements' files are compared with what is in force
// where no notice of a change comes.
const lookEvery = 5 * time.Second

// watchElements follows changes of elements' files: what tightens is taken at
// once, what loosens waits for an approver.
func (d *daemon) watchElements(ctx context.Context) error {
	files := make(<-chan fsnotify.Event)
	if w, err := fsnotify.NewWatcher(); err != nil {
		d.log.Warn("elements' files cannot be watched; they are looked at now and then", "error", err)
	} else {
		defer w.Close()
		files = w.Events
		for _, t := range call.ElementTypes() {
			if err := w.Add(filepath.Join(d.opts.Place.Elements(), library.Folder(t))); err != nil {
				d.log.Warn("a folder of elements cannot be watched", "type", t, "error", err)
			}
		}
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	quiet := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-files:
			quiet.Reset(settleTime)
			continue
		case <-quiet.C:
		case <-look.C:
		}
		changed, err := d.keeper.Follow(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("elements' files could not be compared with what is in force", "error", err)
		}
		if changed {
			d.changes.Tell()
		}
	}
}
