package sandbox_test

import (
	"os"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestTrue(t *testing.T) {
	dir, _ := os.MkdirTemp("", "x")
	os.Chown(dir, 1234, 1234)
	r, err := sandbox.Run(t.Context(), sandbox.Spec{Command: []string{"/bin/sh", "-c", "id; sleep 100 & (setsid sleep 1000 &) ; echo x > /etc/foo; cat /etc/shadow; ls /root; echo a | cat; kill -9 1; chmod 700 /tmp; touch $TMPDIR/x && ls -la $TMPDIR"}, Dir: dir, Write: []string{dir}, Backend: sandbox.Landlock, Without: sandbox.ProtectedPaths})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", r.Stdout, r.Stderr)
	r.Stdout, r.Stderr = nil, nil
	t.Logf("%+v", r)
}
