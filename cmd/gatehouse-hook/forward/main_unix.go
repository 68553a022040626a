//go:build unix

package forward

import (
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// block is the exit code that every agent takes for "do not run it".
	block = 2
	// maxEvent leaves room for the largest arguments the gate takes and for
	// what hosts wrap around them.
	maxEvent = 2 << 20
	// maxAnswer bounds what is read back.
	maxAnswer = 4 << 20
)

// failure is why the hook blocks.
type failure string

func (f failure) Error() string { return string(f) }

// Main forwards the event on standard input and returns the exit code.
func Main(args []string) int {
	o, err := parse(args)
	if err != nil {
		return refuse("", err.Error())
	}
	// One clock for everything, reading the event included. It exits by itself
	// because the main thread may hang in a system call.
	var answering sync.Mutex
	time.AfterFunc(o.deadline, func() {
		answering.Lock() // never in the middle of an answer
		syscall.Exit(refuse(o.agent, "the gate did not answer within "+o.deadline.String()))
	})
	began := time.Now()
	answer, err := o.ask(began)
	answering.Lock()
	if err != nil {
		return refuse(o.agent, err.Error())
	}
	if writeAll(1, answer.stdout) != nil || writeAll(2, answer.stderr) != nil {
		return block
	}
	return answer.exit
}

// refuse blocks, saying why. The Copilot CLI blocks at the same exit code, and
// tells the model what standard output says, not standard error.
func refuse(agent, why string) int {
	why = "gatehouse: blocked: " + why
	if agent == "copilot" {
		_ = writeAll(1, []byte(`{"permissionDecision":"deny","permissionDecisionReason":"`+plain(why)+"\"}\n")) // as below
	}
	_ = writeAll(2, []byte(why+"\n")) // the exit code says it too
	return block
}

// plain leaves out what would need escaping in JSON.
func plain(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c < ' ' || c == '"' || c == '\\' || c > '~' {
			out[i] = ' '
		}
	}
	return string(out)
}

// ask takes the event to the gate.
func (o *options) ask(began time.Time) (*answer, error) {
	event, err := readAll(0, maxEvent)
	if err != nil {
		return nil, failure("the event cannot be read: " + err.Error())
	}
	fd, err := o.connect(began)
	if err != nil {
		return nil, err
	}
	if err := writeAll(fd, o.request(event, time.Since(began))); err != nil {
		return nil, failure("the gate hung up: " + err.Error())
	}
	reply, err := readAll(fd, maxAnswer)
	if err != nil {
		return nil, failure("the gate's answer cannot be read: " + err.Error())
	}
	return parseAnswer(reply)
}

// request is the event as HTTP. It leaves the gate a moment less than what is
// left, so that the answer is out in time.
func (o *options) request(event []byte, spent time.Duration) []byte {
	wait := (o.deadline - spent) * 9 / 10
	head := "POST /v1/hook/" + o.agent + " HTTP/1.0\r\nHost: gatehouse\r\nContent-Type: application/json\r\n" +
		"Content-Length: " + strconv.Itoa(len(event)) + "\r\nGatehouse-Wait: " + strconv.FormatInt(wait.Milliseconds(), 10) + "\r\n"
	if o.deferring {
		head += "Gatehouse-Defer: yes\r\n"
	}
	return append([]byte(head+"\r\n"), event...)
}

// pause is how long to wait between looks at a gate that is starting.
const pause = 10 * time.Millisecond

// connect connects to the gate, and starts it where that is this hook's part.
func (o *options) connect(began time.Time) (fd int, err error) {
	started := false
	for {
		fd, err = o.dial()
		if err != syscall.ENOENT && err != syscall.ECONNREFUSED {
			break
		}
		if o.program == "" {
			return -1, failure("no gate is running at " + o.socket)
		}
		if !started {
			if err := o.start(); err != nil {
				return -1, failure("the gate is not running and cannot be started: " + err.Error())
			}
			started = true
		}
		if time.Since(began) > o.deadline {
			return -1, failure("the gate did not start in time")
		}
		time.Sleep(pause)
	}
	if err != nil {
		if _, ours := err.(failure); ours {
			return -1, err
		}
		return -1, failure("the gate at " + o.socket + " cannot be reached: " + err.Error())
	}
	return fd, nil
}

// dial connects once and makes sure who listens.
func (o *options) dial() (int, error) {
	if err := o.checkPlace(); err != nil {
		return -1, err
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: o.socket}); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	if uid, known := peer(fd); known && !o.trusts(uid) {
		_ = syscall.Close(fd)
		return -1, failure("who listens at " + o.socket + " is user " + strconv.Itoa(int(uid)) + ", not the gate's user")
	}
	return fd, nil
}

// trusts says whether a user may be the gate. A socket that the system's
// service manager opened for it belongs to root.
func (o *options) trusts(uid uint32) bool { return uid == o.owner || uid == 0 }

// checkPlace refuses a socket in a directory where somebody else could have
// put it.
func (o *options) checkPlace() error {
	dir := o.directory()
	var st syscall.Stat_t
	if err := syscall.Lstat(dir, &st); err != nil {
		return err
	}
	switch {
	case uint32(st.Mode)&syscall.S_IFMT != syscall.S_IFDIR:
		return failure(dir + " is not a directory")
	case !o.trusts(st.Uid):
		return failure(dir + " belongs to user " + strconv.Itoa(int(st.Uid)) + ", not to the gate's user")
	case uint32(st.Mode)&0o022 != 0:
		return failure(dir + " can be written by others than the gate's user")
	}
	return nil
}

// directory is where the socket lies.
func (o *options) directory() string {
	for i := len(o.socket) - 1; i > 0; i-- {
		if o.socket[i] == '/' {
			return o.socket[:i]
		}
	}
	return "/"
}

// start starts the gate as it was started last, in a session of its own and
// with an environment that nobody in between has touched.
func (o *options) start() error {
	dir := o.directory()
	null, err := syscall.Open("/dev/null", syscall.O_RDWR, 0)
	if err != nil {
		return err
	}
	log, err := syscall.Open(dir+"/gatehouse.log", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	if o.home != "" {
		env = append(env, "HOME="+o.home)
	}
	_, err = syscall.ForkExec(o.program, []string{o.program, "up", "--again", "--data", dir}, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{uintptr(null), uintptr(log), uintptr(log)}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return err
}

// readAll reads to the end, or fails where there is more than the limit.
func readAll(fd, limit int) ([]byte, error) {
	buf := make([]byte, 0, 8<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return buf, nil
		}
		if buf = buf[:len(buf)+n]; len(buf) > limit {
			return nil, failure("it is larger than " + strconv.Itoa(limit) + " bytes")
		}
	}
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
