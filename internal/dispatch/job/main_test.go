package job_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	job.MaybeSupervise()
	maybeGate()
	goleak.VerifyTestMain(m)
}
