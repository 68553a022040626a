package sandbox_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestTrue(t *testing.T) {
	dir := t.TempDir()
	r, err := sandbox.Run(t.Context(), sandbox.Spec{Command: []string{"/bin/sh", "-c", "id; cat /proc/self/status | grep -i -e cap -e seccomp -e nonew; ls -la / /dev /proc/1/fd; cat /proc/mounts; touch x; mount -t tmpfs x /tmp; ls -la; ls -la /proc/self/fd; cat /etc/passwd"}, Dir: dir, Write: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	t.Logf("%s\n%s", r.Stdout, r.Stderr)
}
