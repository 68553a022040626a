//go:build !unix

package content_test

import "time"

var started = time.Now()

// busy stands in for processor time where it cannot be had.
func busy() time.Duration { return time.Since(started) }
