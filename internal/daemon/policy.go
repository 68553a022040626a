package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
)

// settleTime is how long a file must be quiet before it is read: editors
// write in several steps.
const settleTime = 150 * time.Millisecond

// watchPolicy reloads the policy when a file changes, and follows what other
// nodes put in force.
func (d *daemon) watchPolicy(ctx context.Context) error {
	elsewhere := d.store.Subscribe(ctx, rulebook.Scope)
	files := make(<-chan fsnotify.Event)
	if w, err := fsnotify.NewWatcher(); err != nil {
		d.log.Error("policy files cannot be watched; they are read at start only", "error", err)
	} else {
		defer w.Close()
		files = w.Events
		if err := errors.Join(os.MkdirAll(d.opts.Place.Knowledge(), 0o700), w.Add(d.opts.Place.Knowledge())); err != nil {
			d.log.Error("files about programs cannot be watched; they are read at start only", "error", err)
		}
		for _, path := range d.policyFiles() {
			// The directory, because editors replace the file.
			if err := w.Add(filepath.Dir(path)); err != nil {
				d.log.Debug("a policy file's directory is not there to be watched", "file", path, "error", err)
			}
		}
	}
	quiet := time.NewTimer(0)
	<-quiet.C
	follow := time.NewTicker(time.Second)
	defer follow.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-elsewhere:
			if !ok {
				return nil
			}
			err = d.book.Adopted(ctx)
		case e := <-files:
			if d.isPolicyFile(e.Name) {
				quiet.Reset(settleTime)
			}
			continue
		case <-quiet.C:
			err = d.book.Reload(ctx)
		case <-follow.C:
			var moved bool
			if moved, err = d.book.Follow(ctx); !moved && err == nil {
				continue
			}
		}
		if err != nil {
			d.log.Error("the policy could not be reloaded; the last good one stays in force", "error", err)
		}
		d.record.hideFields(d.book.Current().Settings.RedactFields)
		d.stamp(ctx)
		d.changes.Tell()
	}
}

// policyFiles are the files to watch, as absolute paths: a name relative to
// where the gate was started is not what a notice of a change says.
func (d *daemon) policyFiles() []string {
	user := d.opts.PolicyFile
	if user == "" {
		user = d.opts.Place.Policy()
	}
	if abs, err := filepath.Abs(user); err == nil {
		user = abs
	}
	return []string{place.MachinePolicy, place.Tools(place.MachinePolicy), user, place.Tools(user)}
}

func (d *daemon) isPolicyFile(name string) bool {
	return slices.Contains(d.policyFiles(), filepath.Clean(name)) ||
		filepath.Dir(name) == d.opts.Place.Knowledge() && filepath.Ext(name) == ".toml"
}
