package sandbox_test

import (
	"os"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	os.Exit(m.Run())
}
