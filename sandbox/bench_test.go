package sandbox_test

import (
	"os/exec"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if _, err := sandbox.Run(b.Context(), sandbox.Spec{Command: []string{"/usr/bin/true"}, Dir: dir, Launcher: "/tmp/gh-proto/gatehouse-launch"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHand(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/lib", "/lib", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/usr/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
