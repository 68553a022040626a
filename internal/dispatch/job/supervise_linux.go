package job

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// superviseMark is the argument that makes a program a job's supervisor.
const superviseMark = "gatehouse-job-supervisor"

// order is what a supervisor is to start.
type order struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// word is what a supervisor says.
type word struct {
	PID    int    `json:"pid,omitzero"`    // it started
	Failed string `json:"failed,omitzero"` // it could not be started
	Over   bool   `json:"over,omitzero"`   // all of the tree is dead
	Code   int    `json:"code,omitzero"`
}

// maxFrame bounds a message; arguments and environment are below it.
const maxFrame = 8 << 20

func writeFrame(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...))
	return err
}

func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return errors.New("job: a message is too long")
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r, raw); err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// MaybeSupervise turns this process into a job's supervisor if it was started
// as one, and then never returns. Call it in main (and in TestMain) before
// anything else but the sandbox's second stage.
func MaybeSupervise() {
	if len(os.Args) == 2 && os.Args[1] == superviseMark {
		supervise()
	}
}

// supervise holds one tree. It is the reaper of all that is started below it;
// the socket at descriptor 3 is its only tie to the gate. It ends when the tree
// is dead, and the tree dies with the gate.
func supervise() {
	runtime.LockOSThread() // the parent-death signal of the child follows this thread
	unix.CloseOnExec(3)
	conn := os.NewFile(3, "gate")
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		_ = writeFrame(conn, word{Failed: "no reaper: " + err.Error()})
		os.Exit(1)
	}
	var o order
	if readFrame(conn, &o) != nil {
		os.Exit(0) // never used
	}
	// Signals are taken, not ignored: what is ignored would be so in the child.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	end := sync.OnceFunc(func() { go endAll() })
	go func() {
		<-signals
		end()
	}()
	child, err := os.StartProcess(o.Path, append([]string{o.Path}, o.Args...), &os.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		_ = writeFrame(conn, word{Failed: err.Error(), Code: startCode(err), Over: true})
		os.Exit(0)
	}
	forgetStreams()
	_ = writeFrame(conn, word{PID: child.Pid})
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // a word, or the end of the gate
		end()
	}()
	code := reap(child.Pid, end)
	_ = writeFrame(conn, word{Over: true, Code: code})
	os.Exit(0)
}

// startCode is the exit code of a program that could not be started.
func startCode(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return ExitNotFound
	}
	return ExitFailure
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
func reap(child int, end func()) int {
	code := 0
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no children: nothing is left
			return code
		case pid == child:
			code = ws.ExitStatus()
			if ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			end()
		}
	}
}

// endAll kills everything below this process, again and again: what is started
// meanwhile is found in the next round. The process ends when nothing is left.
func endAll() {
	self := map[int]bool{os.Getpid(): true}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		for _, p := range below(processes(), self) {
			if !p.zombie {
				_ = end(p)
			}
		}
		time.Sleep(pause)
	}
}
