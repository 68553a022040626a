//go:build linux && race

package sandbox_test

import "testing"

// notRaced skips a test that the race detector has no use for, and says why. It
// runs without the detector in the same CI run.
func notRaced(t *testing.T, why string) {
	t.Helper()
	t.Skip("not under the race detector: " + why)
}
