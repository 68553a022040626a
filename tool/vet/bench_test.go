package vet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkAgainstGoVet runs the checker and go vet's own over this repository.
// Both are built anew, so that neither finds results of an earlier run; what
// they read was compiled before.
func BenchmarkAgainstGoVet(b *testing.B) {
	for b.Loop() {
		nonce := fmt.Sprintf("-buildid=%d", time.Now().UnixNano())
		ours := vetCost(b, nonce, "github.com/seed-3ebc6b8a/gatehouse/cmd/gatehouse-vet")
		// A released cmd/vet tells its version alone, so that its findings come from the cache unless it is asked for
		// something new.
		theirs := vetCost(b, nonce, "cmd/vet", "-printf.funcs=none"+nonce[len("-buildid="):])
		b.ReportMetric(ours.Seconds(), "s/run")
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	}
}

// vetCost returns the processor time of one run.
func vetCost(b *testing.B, nonce, pkg string, flags ...string) time.Duration {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "vet")
	if out, err := exec.Command("go", "build", "-ldflags", nonce, "-o", bin, pkg).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	warm := exec.Command("go", "build", "./...")
	warm.Dir = "../.."
	if out, err := warm.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("go", append(append([]string{"vet", "-vettool=" + bin}, flags...), "./...")...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
