package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// measured is what one package's benchmarks, or the daemon, gave.
type measured struct {
	values map[metric]float64
	// problem says what went wrong, "" when nothing did.
	problem string
}

// measurePackage runs benchmarks of one package.
func measurePackage(ctx context.Context, pkg string, benches []string, benchtime string) measured {
	if _, err := os.Stat(pkg); errors.Is(err, fs.ErrNotExist) {
		return measured{problem: pkg + " does not exist"}
	}
	args := []string{"test", "-run", "^$", "-bench", "^(" + strings.Join(benches, "|") + ")$", "-benchmem", "-timeout", "30m"}
	if benchtime != "" {
		args = append(args, "-benchtime", benchtime)
	}
	var both bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = &both, &both
	m := measured{}
	if err := cmd.Run(); err != nil {
		m.problem = fmt.Sprintf("%s: %v\n%s", pkg, err, &both)
	}
	m.values = parseBench(both.String())
	return m
}

var cores = regexp.MustCompile(`-\d+$`)

// parseBench reads the lines of go test -bench: a name, the number of rounds,
// then pairs of a value and its unit.
func parseBench(text string) map[metric]float64 {
	values := map[metric]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cores.ReplaceAllString(fields[0], "")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[metric{name, fields[i+1]}] = v
			}
		}
	}
	return values
}
