//go:build !linux

package supervise

// Requested is false where there are no supervisors.
func Requested() bool { return false }

// Main does nothing where there are no supervisors.
func Main() {}
