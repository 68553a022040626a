package sandbox

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// startUnconfined runs the command as its user would. It is reached only when
// the Spec allows it in so many words; the Result then claims nothing.
func startUnconfined(p *plan, st *streams) (*job, error) {
	j, err := newJob(Unconfined, p, st)
	if err != nil {
		return nil, err
	}
	j.spawn = &spawn{
		path: p.path, argv: p.spec.Command, env: p.env, dir: p.dir, files: slices.Clone(st.child),
		attr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	}
	if p.spec.TTY != nil {
		j.spawn.attr.Setctty = true
	}
	if err := j.before(); err != nil {
		j.abandon()
		return nil, err
	}
	warnUnconfined(&st.err)
	if err := j.spawn.start(); err != nil {
		j.abandon()
		return nil, err
	}
	st.started()
	_ = j.ctl.peer.Close()
	if j.main, err = pidfd(j.spawn.proc.Pid); err != nil {
		return nil, j.fail(err)
	}
	pid := j.spawn.proc.Pid
	// The session it leads goes with it; what left the session stays.
	j.sweep = func() bool {
		_ = unix.Kill(-pid, unix.SIGKILL)
		return false
	}
	return j, nil
}
