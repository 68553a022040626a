package main

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"
)

// outcome is what came of a step.
type outcome struct {
	tally
	// failed steps print detail in full.
	failed bool
	detail string
	// skipped says why the step did not run, "" when it did.
	skipped string
	// missing is what the step found missing, with the reason.
	missing map[string]string
	// note is a short remark for the summary.
	note string
}

// result is an outcome with its step and the time it took.
type result struct {
	outcome
	step string
	took time.Duration
}

// slots is how many steps run side by side. go test keeps all cores busy by
// itself, so more than two would only make tests time out.
func slots() int { return min(2, runtime.NumCPU()) }

// schedule runs the steps, side by side where they allow it, and returns their
// results in the order of the steps.
func schedule(ctx context.Context, w *work, steps []step) []result {
	type finished struct {
		i int
		result
	}
	var (
		results = make([]result, len(steps))
		started = make([]bool, len(steps))
		ended   = make([]bool, len(steps))
		running = map[int]bool{}
		done    = make(chan finished)
	)
	for {
		for len(running) < slots() {
			i := next(steps, started, ended, running)
			if i < 0 {
				break
			}
			started[i], running[i] = true, true
			why := w.hindrance(ctx, steps[i], results)
			go func() { done <- finished{i, runStep(ctx, w, steps[i], why)} }()
		}
		if len(running) == 0 {
			for _, r := range results {
				maps.Copy(w.missing, r.missing)
			}
			return results
		}
		f := <-done
		delete(running, f.i)
		ended[f.i], results[f.i] = true, f.result
		w.screen.step(f.result)
	}
}

// hindrance says why a step cannot run, "" when it can.
func (w *work) hindrance(ctx context.Context, s step, results []result) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	if s.builds && slices.ContainsFunc(results, func(r result) bool { return r.step == "build" && r.failed }) {
		return "the build failed"
	}
	for _, name := range s.needs {
		if _, missing := w.missing[name]; missing {
			return name + " is missing"
		}
	}
	return ""
}

// next returns the first step that may start now, or -1. A step that waits to
// be alone holds back those after it; otherwise it might wait to the end.
func next(steps []step, started, ended []bool, running map[int]bool) int {
	for i := range running {
		if steps[i].alone {
			return -1
		}
	}
	for i, s := range steps {
		if started[i] || !ready(steps, ended, s) {
			continue
		}
		if s.alone && len(running) > 0 {
			return -1
		}
		return i
	}
	return -1
}

// ready reports whether all that the step comes after, and that was chosen at
// all, has ended.
func ready(steps []step, ended []bool, s step) bool {
	for i, other := range steps {
		if slices.Contains(s.after, other.name) && !ended[i] {
			return false
		}
	}
	return true
}

// runStep runs a step that nothing hinders.
func runStep(ctx context.Context, w *work, s step, hindrance string) result {
	r := result{step: s.name}
	if hindrance != "" {
		r.skipped = hindrance
		return r
	}
	w.screen.begin(s.name)
	defer w.screen.end(s.name)
	if s.background {
		ctx = inBackground(ctx)
	}
	began := time.Now()
	r.outcome = s.run(ctx, w)
	r.took = time.Since(began)
	return r
}
