package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestConfinedTestsListen: tests of a project that start servers of their own
// run confined, because a confined run has a loopback of its own, and do not
// reach the machine's.
func TestConfinedTestsListen(t *testing.T) {
	t.Parallel()
	work := realDir(t)
	if out, err := exec.Command(gatetest.Binary(t), "--data", realDir(t), "run", "--", "true").CombinedOutput(); err != nil {
		needtest.Missing(t, "nothing on this machine can confine a process ("+strings.TrimSpace(string(out))+")")
	}
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "outside") }))
	defer outside.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gatetest.Binary(t), "--data", realDir(t), "run", "--write", work, "--read", filepath.Dir(self), "--",
		self, "-test.run=^TestHelperListens$", "-test.v", "--", "listen", outside.URL)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("a test that listens does not run confined: %v\n%s", err, out)
	}
}

// TestHelperListens is what runs inside.
func TestHelperListens(t *testing.T) {
	at := slices.Index(os.Args, "listen")
	if at < 0 || at+1 >= len(os.Args) {
		t.Skip("it is run by TestConfinedTestsListen")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "inside" {
		t.Errorf("%q, %v", body, err)
	}
	if resp, err := http.Get(os.Args[at+1]); err == nil {
		resp.Body.Close()
		t.Error("it reached a server of the machine")
	}
}
