package daemon

import (
	"path/filepath"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
)

// openRestore opens the restore points, which lie in the gate's directory.
func (d *daemon) openRestore() *restore.Store {
	return restore.Open(restore.Options{
		Dir:  filepath.Join(d.opts.Place.Home, "restore"),
		Sign: func(text []byte) []byte { return d.keys.Row("restore").Bytes(text).Sum() },
		NewID: func() string {
			id, err := keyring.NewID("p_", d.keys.Random())
			if err != nil {
				return "" // which the store refuses
			}
			return id
		},
		Now:    time.Now,
		Limits: d.restoreLimits,
	})
}

// restoreLimits are what the policy of the machine and the user says. Points
// are the gate's, so no project has a say in them.
func (d *daemon) restoreLimits() restore.Limits {
	limits := restore.DefaultLimits()
	if snap := d.book.Current(); snap != nil {
		set := &snap.Settings
		limits.Bytes, limits.Total = int64(set.RestorePointMiB)<<20, int64(set.RestoreTotalMiB)<<20
		limits.Points, limits.Age = set.RestorePoints, set.RestoreAge
	}
	return limits
}

// restorer puts the restore points behind the gate's interface.
type restorer struct{ *restore.Store }

func subject(c *call.Call, f *facts.Facts) restore.Subject {
	return restore.Subject{Agent: c.Principal.Agent, Session: c.Principal.Session, Call: c.ID, Paths: f.Touches, Blind: f.TouchesMore}
}

// Preview says what of a call's changes could not be kept.
func (k restorer) Preview(c *call.Call, f *facts.Facts) []string {
	return k.Store.Preview(subject(c, f))
}

// Keep copies what a call is about to change.
func (k restorer) Keep(c *call.Call, f *facts.Facts) (gate.Kept, error) {
	point, notKept, err := k.Store.Keep(subject(c, f))
	return gate.Kept{Point: point, NotKept: notKept}, err
}
