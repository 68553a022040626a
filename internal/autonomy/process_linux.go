package autonomy

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// endProcess ends a process that is still the one that was noted: the handle
// is opened first, then it is looked at again, then it is ended by the handle,
// so that a process id that was given to another is never hit.
func endProcess(p Process) error {
	fd, err := unix.PidfdOpen(p.Process.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !session.Alive(p.Process) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
