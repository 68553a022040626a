package job_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	if supervise.Requested() {
		supervise.Main()
	}
	maybeGate()
	goleak.VerifyTestMain(m)
}
