//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// job is a started run where the only kernel mechanism is Seatbelt.
type job struct {
	backend    Backend
	plan       *plan
	streams    *streams
	group      *group
	guarantees Guarantee
	began      time.Time
	facts      *facts
	cmd        *exec.Cmd
	inside     func() (int, error)
	exit       int
	stop       func()
	private    string
	startErr   string
	waiting    int // never known here
}

// group exists on Linux only.
type group struct{}

func (*group) usage(*Usage) int64 { return 0 }

func newJob(b Backend, p *plan, st *streams) (*job, error) {
	return &job{backend: b, plan: p, streams: st, began: time.Now(), facts: &facts{on: p.spec.OnFact}}, nil
}

func (j *job) killTree() {
	if j.stop != nil {
		j.stop()
	}
}

func (j *job) wait() (*os.ProcessState, error) {
	if j.inside != nil {
		var err error
		j.exit, err = j.inside()
		return nil, err
	}
	err := j.cmd.Wait()
	endGroup(j.cmd.Process)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return j.cmd.ProcessState, err
}

func (j *job) cleanup() {
	if j.private != "" {
		_ = os.RemoveAll(j.private)
	}
}

// missingError: the back-end works but holds too little.
type missingError struct{ missing Guarantee }

func (e *missingError) Error() string { return "cannot hold " + e.missing.String() }

var starters = map[Backend]func(*plan, *streams) (*job, error){Wasm: startWasm, Seatbelt: startSeatbelt}

func systemOrder() []Backend {
	if runtime.GOOS == "darwin" {
		return []Backend{Seatbelt}
	}
	return nil
}

// seatbeltHolds is what the profile states; there is no second stage to prove
// it, so a run relies on the system's own enforcement of the profile.
const seatbeltHolds = WriteRoots | ReadRoots | ProtectedPaths | Metadata | NoNetwork | UnixSockets | Processes | IPC | Privileges | Syscalls |
	Environment | Descriptors | TreeDead | TerminalSafe

func startSeatbelt(p *plan, st *streams) (*job, error) {
	if missing := p.need &^ seatbeltHolds; missing != 0 {
		return nil, &missingError{missing}
	}
	j, err := newJob(Seatbelt, p, st)
	if err != nil {
		return nil, err
	}
	if j.private, err = os.MkdirTemp("", "gatehouse-run-"); err != nil {
		return nil, err
	}
	j.guarantees = seatbeltHolds
	if err := j.before(); err != nil {
		j.cleanup()
		return nil, err
	}
	j.cmd = exec.Command("/usr/bin/sandbox-exec", append([]string{"-p", seatbeltProfile(p, j.private), "--", p.path}, p.spec.Command[1:]...)...)
	j.cmd.Dir, j.cmd.Env = p.dir, setEnv(p.env, "TMPDIR", j.private)
	j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = st.child[0], st.child[1], st.child[2]
	j.cmd.SysProcAttr = ownGroup()
	if err := j.cmd.Start(); err != nil {
		j.cleanup()
		return nil, err
	}
	st.started()
	j.stop = func() { endGroup(j.cmd.Process) }
	return j, nil
}

func exitState(state *os.ProcessState, r *Result) {
	r.ExitCode = state.ExitCode()
	r.Usage.User, r.Usage.System = state.UserTime(), state.SystemTime()
}

// Signal sends a signal to the command itself.
func (p *Process) Signal(sig os.Signal) error {
	if p.job.cmd == nil {
		return errors.ErrUnsupported
	}
	return p.job.cmd.Process.Signal(sig)
}

// RunsAs returns the user id that a command of this Spec has.
func RunsAs(Spec) (int, error) { return os.Getuid(), nil }

// MaybeLaunch does nothing where there is no second stage.
func MaybeLaunch() {}

func ownFiles() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe}
}
