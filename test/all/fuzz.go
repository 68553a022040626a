package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// fuzz runs every fuzz target of every package, one after the other: a target
// uses all cores by itself.
func fuzz(ctx context.Context, w *work) outcome {
	var o outcome
	for _, p := range w.packages {
		targets, err := fuzzTargets(p)
		if err != nil {
			return verdict(err, "")
		}
		for _, name := range targets {
			if ctx.Err() != nil {
				return outcome{skipped: "interrupted"}
			}
			began := time.Now()
			w.screen.busy("fuzz", short(p.path)+" "+name)
			said, err := fuzzOne(ctx, w, p, name, w.fuzzTime(name))
			w.screen.idle("fuzz", short(p.path)+" "+name)
			action := "pass"
			if err != nil {
				action = "fail"
				o.failed = true
				o.fail++
			} else {
				o.pass++
			}
			w.screen.line("fuzz", action, short(p.path)+" "+name, time.Since(began))
			if err != nil {
				w.screen.text(said)
			}
		}
	}
	if o.pass+o.fail == 0 {
		return outcome{skipped: "no package has a fuzz target yet"}
	}
	o.note = fmt.Sprintf("%s each, %s for those that read what agents write first", w.opt.fuzz, max(w.opt.fuzz, longFuzz))
	return o
}

// longFuzz is how long the targets run at least that an agent's words meet
// first: the analyser, the paths and the hosts.
const longFuzz = 30 * time.Second

var longTargets = map[string]bool{
	"FuzzAnalyze": true, "FuzzQuick": true, "FuzzCleanPath": true, "FuzzParseHost": true,
}

// fuzzTime is how long a target runs.
func (w *work) fuzzTime(name string) time.Duration {
	if longTargets[name] {
		return max(w.opt.fuzz, longFuzz)
	}
	return w.opt.fuzz
}

// fuzzOne runs one target. Reaching the time limit while an input is being run
// sometimes ends the go command with "context deadline exceeded" though nothing
// failed; that is worth a second try, and a real failure names its input.
func fuzzOne(ctx context.Context, w *work, p pkg, name string, long time.Duration) (said string, err error) {
	for range 2 {
		var both bytes.Buffer
		err = command{
			dir: w.root, env: []string{"CGO_ENABLED=0"}, out: &both, err: &both,
			args: []string{"go", "test", "-vet=off", "-run", "^$", "-fuzz", "^" + name + "$", "-fuzztime", long.String(), p.path},
		}.run(ctx)
		said = both.String()
		if err == nil || strings.Contains(said, "Failing input") || !strings.Contains(said, "context deadline exceeded") {
			break
		}
	}
	return said, err
}

// fuzzTargets lists the fuzz targets of a package.
func fuzzTargets(p pkg) ([]string, error) {
	var out []string
	for _, file := range p.tests {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("looking for fuzz targets: %w", err)
		}
		for _, m := range fuzzTarget.FindAllSubmatch(source, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out, nil
}
