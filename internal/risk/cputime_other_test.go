//go:build !linux

package risk_test

import "time"

// threadTime is the time of day where the thread's own time is not to be had.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
