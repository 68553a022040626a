//go:build linux

package sandbox_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// rounds is how often each way is taken at least.
const rounds = 40

// timing is the first quarter of many rounds and their median. The quick ones
// say what something costs; the median also says what the machine was doing
// besides, because every hand-over between processes then waits for a processor,
// and the ways that are compared differ in how many they have.
type timing struct{ quarter, median time.Duration }

// interleaved times several ways of doing the same in turn, in small rounds, so
// that whatever else the machine does hits all of them alike.
func interleaved(b *testing.B, ways ...func() error) []timing {
	b.Helper()
	times := make([][]time.Duration, len(ways))
	for b.Loop() {
		for range rounds {
			for i, f := range ways {
				began := time.Now()
				if err := f(); err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	out := make([]timing, len(ways))
	for i, t := range times {
		slices.Sort(t)
		out[i] = timing{t[len(t)/4], t[len(t)/2]}
	}
	return out
}

func handmade() error {
	return exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try",
		"--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/usr/bin/true").Run()
}

// BenchmarkStart compares the full stack with bubblewrap started by hand with
// the same namespaces, and Landlock with seccomp with a bare /bin/true. The
// ratios are the figures that are promised: 2.2 and 6.
func BenchmarkStart(b *testing.B) {
	dir := work(b)
	stage2 := shippedLauncher(b)
	confined := func(backend sandbox.Backend) func() error {
		return func() error {
			r, err := sandbox.Run(b.Context(), sandbox.Spec{Command: []string{"/usr/bin/true"}, Dir: dir, Backend: backend, Launcher: stage2})
			if err == nil && r.ExitCode != 0 {
				b.Fatalf("%s", r.Stderr)
			}
			return err
		}
	}
	bare := func() error { return exec.Command("/usr/bin/true").Run() }
	m := interleaved(b, confined(sandbox.Bubblewrap), handmade, confined(sandbox.Landlock), bare)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for i, name := range []string{"full-ms", "bwrap-ms", "landlock-ms", "true-ms"} {
		b.ReportMetric(ms(m[i].quarter), name)
	}
	b.ReportMetric(ms(m[0].quarter)/ms(m[1].quarter), "full/bwrap")
	b.ReportMetric(ms(m[2].quarter)/ms(m[3].quarter), "landlock/true")
	b.ReportMetric(ms(m[0].median)/ms(m[1].median), "full/bwrap-median")
	b.ReportMetric(ms(m[2].median)/ms(m[3].median), "landlock/true-median")
	b.ReportMetric(0, "ns/op")
}
