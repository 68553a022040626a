//go:build !linux

package launch

// Requested is false where there is no second stage.
func Requested() bool { return false }

// Main is never reached: Requested is false.
func Main() {}
