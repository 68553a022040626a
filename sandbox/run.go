package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
		proc := &Process{tried: refused.Tried, before: newBaseline(p), done: make(chan struct{})}
		started := make(chan error, 1)
		go proc.live(ctx, b, p, started)
		err := <-started
		if err == nil {
			return proc, nil
		}
		var stopped *StoppedError
		if errors.Is(err, ErrNoLauncher) || errors.As(err, &stopped) {
			removePlaceholders(p)
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

// live is a run from start to end, on a thread that nothing else uses and that
// ends with it. Every hand-over between threads that is saved here is saved
// again whenever the machine is busy.
func (p *Process) live(ctx context.Context, b Backend, pl *plan, started chan<- error) {
	runtime.LockOSThread()
	j, err := tryBackend(b, pl)
	if err != nil {
		started <- err
		return
	}
	p.job = j
	stop := p.clocks(ctx)
	started <- nil
	state, err := j.wait()
	stop()
	p.finish(state, err)
	close(p.done)
}

func tryBackend(b Backend, p *plan) (*job, error) {
	start, ok := starters[b]
	if !ok {
		return nil, errors.New("not available on this system")
	}
	st, err := openStreams(p)
	if err != nil {
		return nil, err
	}
	j, err := start(p, st)
	if err != nil {
		st.abort()
	}
	return j, err
}

// before asks whether the command may start, now that it is known what holds
// it. It asks from another thread: the run's own may be confined already.
func (j *job) before() error {
	ask := j.plan.spec.Before
	if ask == nil {
		return nil
	}
	st := Standing{Backend: j.backend, Guarantees: j.guarantees, Path: j.plan.path, Dir: j.plan.dir, Process: j.waiting}
	for _, r := range j.plan.roots {
		// What goes into a layer is not written to its root.
		if r.write && !(j.plan.spec.Overlay.active() && r.path == j.plan.overlayRoot()) {
			st.Write = append(st.Write, describe(r))
		} else {
			st.Read = append(st.Read, describe(r))
		}
	}
	answer := make(chan error, 1)
	go func() { answer <- ask(st) }()
	err := <-answer
	j.began = time.Now() // waiting for an answer is not the command's time
	if err != nil {
		return &StoppedError{err}
	}
	return nil
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
	if s.Image != "" {
		return []Backend{Podman, Docker}
	}
	list := systemOrder()
	if s.AllowUnconfined {
		list = append(list, Unconfined)
	}
	return list
}

// clocks arms the timers and returns what disarms them.
func (p *Process) clocks(ctx context.Context) (stop func()) {
	l := p.job.plan.limits
	stops := []func() bool{context.AfterFunc(ctx, func() { p.end(EndCancelled) })}
	if l.Wall > 0 {
		stops = append(stops, time.AfterFunc(l.Wall, func() { p.end(EndWall) }).Stop)
	}
	if l.Idle > 0 {
		quiet := make(chan *time.Timer, 1)
		t := time.AfterFunc(l.Idle, func() {
			t := <-quiet
			quiet <- t
			if left := l.Idle - p.job.streams.idle(); left > 0 {
				t.Reset(left)
				return
			}
			p.end(EndIdle)
		})
		quiet <- t
		stops = append(stops, t.Stop)
	}
	return func() {
		for _, f := range stops {
			f()
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

// Backend is what holds the running command.
func (p *Process) Backend() Backend { return p.job.backend }

// Guarantees are what was proven before it started.
func (p *Process) Guarantees() Guarantee { return p.job.guarantees }

func (p *Process) finish(state *os.ProcessState, err error) {
	j := p.job
	r := &Result{Backend: j.backend, Guarantees: j.guarantees, Passed: p.tried, Stripped: j.plan.stripped}
	r.Waived = j.plan.spec.Without & (needed(&Spec{Write: j.plan.spec.Write, Private: j.plan.spec.Private, Net: j.plan.spec.Net, Overlay: j.plan.spec.Overlay}))
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
	r.ExitCode = j.exit
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
