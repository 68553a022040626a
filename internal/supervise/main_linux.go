package supervise

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Requested says whether this process was started as a supervisor.
func Requested() bool { return len(os.Args) == 2 && os.Args[1] == Mark }

// Main holds one tree and never returns. It is the reaper of all that is
// started below it; the socket at descriptor 3 is its only tie to the gate. The
// child's streams are its own.
func Main() {
	runtime.LockOSThread() // the parent-death signal of the child follows this thread
	unix.CloseOnExec(3)
	conn := os.NewFile(3, "gate")
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		_ = (&Word{Code: exitFailure, Failed: "no reaper: " + err.Error()}).send(conn)
		os.Exit(1)
	}
	t := &tree{group: makeGroup(os.Getpid())}
	// Signals are taken, not ignored: what is ignored would be so in the child.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	o, err := receiveOrder(conn)
	if err != nil {
		t.group.remove()
		os.Exit(0) // never used
	}
	child, err := t.start(o)
	if err != nil {
		t.group.remove()
		_ = (&Word{Code: startCode(err), Failed: err.Error()}).send(conn)
		os.Exit(0)
	}
	forgetStreams()
	go func() {
		<-signals
		t.end()
	}()
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // a word, or the end of the gate
		t.end()
	}()
	code := t.reap(child)
	_ = (&Word{Code: code}).send(conn)
	t.group.remove()
	os.Exit(0)
}

// tree is what is started below this process.
type tree struct {
	group group
	once  sync.Once
}

// start starts the child, in the cgroup if there is one.
func (t *tree) start(o *Order) (pid int, err error) {
	// The session is this process's own, which the gate started in a new one; the
	// child leads a group of it. (One more session would be one more that the
	// scheduler gives its time to in turn.)
	sys := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	attr := &os.ProcAttr{Dir: o.Dir, Env: o.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: sys}
	argv := append([]string{o.Path}, o.Args...)
	if dir, ok := t.group.open(); ok {
		defer dir.Close()
		sys.UseCgroupFD, sys.CgroupFD = true, int(dir.Fd())
		child, err := os.StartProcess(o.Path, argv, attr)
		if err == nil {
			return child.Pid, nil
		}
		// Whether it was the cgroup or the program does not show: nothing ran.
		t.group.remove()
		sys.UseCgroupFD = false
	}
	child, err := os.StartProcess(o.Path, argv, attr)
	if err != nil {
		return 0, err
	}
	return child.Pid, nil
}

// startCode is the exit code of a program that could not be started.
func startCode(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitFailure
}

// forgetStreams lets go of the child's streams, so that they end with it.
func forgetStreams() {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(int(null.Fd()), fd, 0)
	}
}

// reap waits until nothing is left below this process. Once the child has
// ended, what it left behind is ended too.
func (t *tree) reap(child int) (code int) {
	options := 0
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no children: nothing is left
			return code
		case pid == child:
			code = ws.ExitStatus()
			if ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			options = unix.WNOHANG // as a rule it left nothing
		case pid == 0:
			options = 0
			t.end()
		}
	}
}

// end begins to kill everything below this process.
func (t *tree) end() { t.once.Do(func() { go t.endAll() }) }

// endAll kills, again and again: what is started meanwhile is found in the next
// round. The process ends when nothing is left.
func (t *tree) endAll() {
	self := map[int]bool{os.Getpid(): true}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		t.group.kill()
		for _, p := range Below(Processes(), self) {
			if !p.Zombie {
				_ = p.End() // what could not be ended is found again
			}
		}
		time.Sleep(pause)
	}
}
