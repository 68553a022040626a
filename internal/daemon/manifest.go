package daemon

import "context"

// stamp finds out the hash of the permission manifest in force, which every
// record carries. It runs when the policy or the MCP servers change; what is
// recorded in the moment before has the hash of before.
func (d *daemon) stamp(ctx context.Context) {
	m, err := d.admin.Manifest(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Error("the permission manifest in force could not be made; records say so", "error", err)
		}
		d.record.manifest.Store(new(string))
		return
	}
	d.record.manifest.Store(&m.SHA256)
}
