//go:build !linux

package daemon

// hide has no counterpart here.
func hide() {}
