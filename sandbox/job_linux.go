package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is a started run, whatever the back-end.
type job struct {
	backend    Backend
	plan       *plan
	streams    *streams
	spawn      *spawn
	ctl        *control
	group      *group
	guarantees Guarantee
	began      time.Time

	tree *pidHandle // pidfd of the namespace's first process
	main *pidHandle // pidfd of the command
	// sweep kills what is left when there is no namespace to do it, and
	// reports whether it found anything.
	sweep   func() bool
	inside  func() (int, error) // a run inside this process, instead of spawn
	exit    int                 // its exit code
	state   *os.ProcessState    // of what was spawned, once it has ended
	stop    func()              // ends a helper that a signal to itself would not
	private string              // temporary directory of the run, removed at its end

	facts    *facts
	services []io.Closer // proxy, seccomp listener
	waits    sync.WaitGroup
	waiting  int // the process that waits to become the command
	startErr string
	executed bool // the command has started; only the listener's goroutine looks
}

func newJob(b Backend, p *plan, st *streams) (*job, error) {
	ctl, err := newControl()
	if err != nil {
		return nil, err
	}
	return &job{backend: b, plan: p, streams: st, ctl: ctl, began: time.Now(), facts: &facts{on: p.spec.OnFact}}, nil
}

// handshake reads the second stage's report, holds it against the need, and
// only then lets the command start. info, if not nil, tells the first process
// of the pid namespace.
func (j *job) handshake(info io.Reader, claim func(*plan, *report) Guarantee) error {
	j.streams.started()
	_ = j.ctl.peer.Close()
	initPid := 0
	if info != nil {
		pid, err := readInfo(info)
		if err != nil {
			return j.fail(err)
		}
		initPid = pid
	}
	r, err := j.ctl.receive()
	if err != nil {
		return j.fail(err)
	}
	j.guarantees = claim(j.plan, r)
	if j.group != nil {
		j.guarantees |= j.group.holds(j.plan.limits)
	}
	if missing := j.plan.need &^ j.guarantees; missing != 0 {
		r.close()
		return j.fail(&missingError{missing})
	}
	// Both are alive here: the second stage waits for our word, and the first
	// process of its namespace for the second stage.
	if initPid != 0 {
		if j.tree, err = pidfd(initPid); err != nil {
			r.close()
			return j.fail(err)
		}
	}
	if j.main, err = pidfd(r.pid); err != nil {
		r.close()
		return j.fail(err)
	}
	j.waiting = r.pid
	if err := j.before(); err != nil {
		r.close()
		return j.fail(err)
	}
	if err := j.serve(r); err != nil {
		return j.fail(err)
	}
	if err := j.ctl.goOn(); err != nil {
		return j.fail(err)
	}
	return nil
}

// missingError: the back-end works but holds too little.
type missingError struct{ missing Guarantee }

func (e *missingError) Error() string { return "cannot hold " + e.missing.String() }

// pidHandle is a process that can be signalled from any goroutine and is
// closed by one. A nil handle is a process that was never known.
type pidHandle struct {
	mu sync.Mutex
	fd int // -1 once closed
}

func pidfd(pid int) (*pidHandle, error) {
	if pid <= 0 {
		return nil, errNoReport
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return &pidHandle{fd: fd}, nil
}

func (h *pidHandle) signal(sig unix.Signal) error {
	if h == nil {
		return errors.ErrUnsupported
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd < 0 {
		return os.ErrProcessDone
	}
	return unix.PidfdSendSignal(h.fd, sig, nil, 0)
}

func (h *pidHandle) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd >= 0 {
		_ = unix.Close(h.fd)
		h.fd = -1
	}
}

// dead waits for the end; only the goroutine that closes the handle may call it.
func (h *pidHandle) dead() {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return
		}
	}
}

// serve starts what runs beside the command on the host's side, from the
// descriptors the second stage passed out, in the order it passes them.
func (j *job) serve(r *report) error {
	files := r.files
	if j.plan.port != 0 {
		if len(files) == 0 {
			return errors.New("no listener came out")
		}
		if err := j.serveEgress(files[0]); err != nil {
			return err
		}
		files = files[1:]
	}
	if c := j.plan.spec.Channel; c != nil {
		if len(files) == 0 {
			return errors.New("no channel came out")
		}
		l, err := net.FileListener(files[0])
		_ = files[0].Close()
		if err != nil {
			return err
		}
		j.services = append(j.services, l)
		j.waits.Go(func() { c.Serve(l) })
		files = files[1:]
	}
	if len(files) > 0 {
		return j.serveNotify(files[0])
	}
	return nil
}

// fail ends a run that has not begun and says why, in the back-end's own
// words if it left any.
func (j *job) fail(err error) error {
	j.killTree()
	if j.spawn != nil && j.spawn.proc != nil {
		_ = j.spawn.proc.Kill()
		_, _ = j.spawn.proc.Wait()
	}
	for j.sweep != nil && j.sweep() {
	}
	j.cleanup()
	j.streams.finish()
	if errors.Is(err, errNoReport) || errors.Is(err, syscall.ECONNRESET) {
		if text := strings.TrimSpace(j.streams.errBuf.String()); text != "" {
			return fmt.Errorf("%s", firstLine(text))
		}
	}
	return err
}

// abandon releases a job that was never started.
func (j *job) abandon() {
	j.cleanup()
	j.streams.abort()
}

func (j *job) cleanup() {
	if j.ctl != nil {
		j.startErr = j.ctl.startFailure()
		j.ctl.close()
	}
	for _, s := range j.services {
		_ = s.Close()
	}
	j.waits.Wait()
	j.tree.close()
	j.main.close()
	j.group.remove()
	if j.private != "" {
		_ = os.RemoveAll(j.private)
	}
}

// killTree ends every process of the run at once where there is a namespace;
// elsewhere it ends the command, and wait sweeps up the rest. Any goroutine may
// call it.
func (j *job) killTree() {
	if j.stop != nil {
		j.stop()
		return
	}
	if j.tree != nil {
		_ = j.tree.signal(unix.SIGKILL)
	} else {
		_ = j.main.signal(unix.SIGKILL)
	}
	if j.spawn != nil && j.spawn.proc != nil && j.tree == nil {
		_ = j.spawn.proc.Kill()
	}
}

// wait returns when the whole tree is dead. The pidfd of a namespace's first
// process becomes readable only after the kernel has reaped all the others.
func (j *job) wait() (*os.ProcessState, error) {
	if j.inside != nil {
		var err error
		j.exit, err = j.inside()
		return nil, err
	}
	var err error
	j.state, err = j.spawn.proc.Wait()
	if j.tree != nil {
		_ = j.tree.signal(unix.SIGKILL)
		j.tree.dead()
	}
	for j.sweep != nil && j.sweep() {
		// A pass that found something may have missed what that one started.
	}
	return j.state, err
}
