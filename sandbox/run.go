package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Run starts the command, waits for the end of its whole process tree and
// returns what happened. A command that fails is a Result; an error means that
// nothing was started, or that the sandbox itself broke.
func Run(ctx context.Context, s Spec) (*Result, error) {
	p, err := Start(ctx, s)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Process is a running command.
type Process struct {
	job    *job
	tried  []Attempt
	before *baseline

	mu     sync.Mutex
	ended  Ending
	done   chan struct{}
	result *Result
	err    error
}

// Start starts the command under the first back-end that holds what the Spec
// needs. Cancelling the context kills the tree.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := newPlan(&s)
	if err != nil {
		return nil, err
	}
	refused := &NoBackendError{Need: p.need}
	for _, b := range candidates(p) {
		j, err := tryBackend(b, p)
		if err == nil {
			proc := &Process{job: j, tried: refused.Tried, before: newBaseline(p), done: make(chan struct{})}
			go proc.watch(ctx)
			return proc, nil
		}
		if errors.Is(err, ErrNoLauncher) {
			return nil, err
		}
		a := Attempt{Backend: b, Reason: err.Error()}
		var missing *missingError
		if errors.As(err, &missing) {
			a.Missing = missing.missing
		}
		refused.Tried = append(refused.Tried, a)
	}
	removePlaceholders(p)
	return nil, refused
}

func tryBackend(b Backend, p *plan) (*job, error) {
	st, err := openStreams(p)
	if err != nil {
		return nil, err
	}
	start, ok := starters[b]
	if !ok {
		st.abort()
		return nil, fmt.Errorf("not available on this system")
	}
	j, err := start(p, st)
	if err != nil {
		st.abort()
	}
	return j, err
}

func openStreams(p *plan) (*streams, error) {
	if p.spec.TTY != nil {
		return newTerminal(p.spec, p.limits.Output)
	}
	return newStreams(p.spec, p.limits.Output)
}

// candidates is the order of preference. Unconfined is in it only when the
// Spec says so, and last.
func candidates(p *plan) []Backend {
	s := p.spec
	if s.Backend != Auto {
		if s.Backend == Unconfined && !s.AllowUnconfined {
			return nil
		}
		return []Backend{s.Backend}
	}
	if isWasm(p.path) {
		return []Backend{Wasm}
	}
	list := systemOrder()
	if s.AllowUnconfined {
		list = append(list, Unconfined)
	}
	return list
}

// watch enforces the clocks and finishes the run.
func (p *Process) watch(ctx context.Context) {
	finished := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() { p.clocks(ctx, finished) })
	state, err := p.job.wait()
	close(finished)
	clock.Wait()
	p.finish(state, err)
	close(p.done)
}

func (p *Process) clocks(ctx context.Context, finished <-chan struct{}) {
	l := p.job.plan.limits
	var wall, idle <-chan time.Time
	if l.Wall > 0 {
		t := time.NewTimer(l.Wall)
		defer t.Stop()
		wall = t.C
	}
	if l.Idle > 0 {
		t := time.NewTicker(max(l.Idle/8, time.Millisecond))
		defer t.Stop()
		idle = t.C
	}
	for {
		select {
		case <-finished:
			return
		case <-ctx.Done():
			p.end(EndCancelled)
			return
		case <-wall:
			p.end(EndWall)
			return
		case <-idle:
			if p.job.streams.idle() >= l.Idle {
				p.end(EndIdle)
				return
			}
		}
	}
}

// end kills the tree for a reason; the first reason stays.
func (p *Process) end(why Ending) {
	p.mu.Lock()
	if p.ended == "" {
		p.ended = why
	}
	p.mu.Unlock()
	p.job.killTree()
}

// Kill ends the whole tree.
func (p *Process) Kill() { p.end(EndKilled) }

// Wait returns the Result once the tree is dead.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return p.result, p.err
}

// Backend and Guarantees say what holds the running command.
func (p *Process) Backend() Backend      { return p.job.backend }
func (p *Process) Guarantees() Guarantee { return p.job.guarantees }

func (p *Process) finish(state *os.ProcessState, err error) {
	j := p.job
	r := &Result{Backend: j.backend, Guarantees: j.guarantees, Passed: p.tried, Stripped: j.plan.stripped}
	r.Waived = j.plan.spec.Without & (needed(&Spec{Write: j.plan.spec.Write, Net: j.plan.spec.Net, Overlay: j.plan.spec.Overlay}))
	r.Usage.Wall = time.Since(j.began)
	if refused := j.group.usage(&r.Usage); refused > 0 {
		j.facts.add(Refusal{Kind: RefusedLimit, Subject: "processes", Program: "unknown", Reason: fmt.Sprintf("%d forks refused", refused)})
	}
	if r.Usage.OOMKills > 0 {
		j.facts.add(Refusal{Kind: RefusedLimit, Subject: "memory", Program: "unknown", Reason: "killed by the kernel"})
	}
	j.streams.finish()
	j.cleanup()
	j.streams.fill(r)
	r.StartErr = j.startErr
	p.mu.Lock()
	r.Ended = p.ended
	p.mu.Unlock()
	if r.Ended == "" {
		r.Ended = EndExit
	}
	if state != nil {
		exitState(state, r)
	} else if err != nil {
		p.err = fmt.Errorf("sandbox: waiting: %w", err)
	}
	moved, qerr := p.before.settle(j.plan)
	r.Quarantined = moved
	for _, m := range moved {
		j.facts.add(Refusal{Kind: RefusedPath, Subject: m.Path, Program: "unknown", Reason: m.Why})
	}
	if qerr != nil {
		p.err = errors.Join(p.err, fmt.Errorf("sandbox: protected paths could not be checked after the run: %w", qerr))
	}
	removePlaceholders(j.plan)
	j.facts.fill(r)
	p.result = r
}

// removePlaceholders takes away empty files and directories that were created
// for declared names and never used.
func removePlaceholders(p *plan) {
	for _, r := range p.roots {
		if !r.isNew {
			continue
		}
		if fi, err := os.Lstat(r.path); err == nil && (fi.IsDir() || fi.Mode().IsRegular() && fi.Size() == 0) {
			_ = os.Remove(r.path) // fails, rightly, on a directory in use
		}
	}
}

// warnUnconfined is the loud part of running without a sandbox.
func warnUnconfined(w io.Writer) {
	_, _ = io.WriteString(w, "gatehouse: UNCONFINED: this command runs with everything its user may do\n")
}
