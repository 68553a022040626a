//go:build linux && !race

package sandbox_test

import "testing"

// notRaced skips a test that the race detector has no use for; here there is
// none.
func notRaced(*testing.T, string) {}
