//go:build !linux

package daemon

// hide has no counterpart here; the posture says so.
func hide() {}

// posture is advisory where the gate cannot be kept apart from the agents.
func posture() string { return "advisory" }
