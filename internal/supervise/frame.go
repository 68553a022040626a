package supervise

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Mark is the argument that makes a program a supervisor.
const Mark = "gatehouse-job-supervisor"

// Order is what a supervisor is to start.
type Order struct {
	Path, Dir string
	Args      []string // without the program's name
	Env       []string
}

// Word is what a supervisor says when nothing of the tree is left.
type Word struct {
	Code   int    // exit code; 128 and the signal's number for a signal
	Failed string // why nothing could be started
}

// The exit codes of what could not be started.
const (
	exitFailure  = 1
	exitNotFound = 127
)

// maxFrame bounds a message; arguments and environment are below it.
const maxFrame = 8 << 20

var errFrame = errors.New("supervise: not a message")

// send writes texts, none of which can hold a zero byte: no argument of a
// process can.
func send(w io.Writer, texts ...string) error {
	size := 0
	for _, t := range texts {
		if strings.IndexByte(t, 0) >= 0 {
			return errors.New("supervise: a zero byte in an argument")
		}
		size += len(t) + 1
	}
	if size > maxFrame {
		return errors.New("supervise: the arguments are too long")
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+size), uint32(size))
	for _, t := range texts {
		b = append(append(b, t...), 0)
	}
	_, err := w.Write(b)
	return err
}

func receive(r io.Reader) ([]string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return nil, errFrame
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, err
	}
	if raw[n-1] != 0 {
		return nil, errFrame
	}
	return strings.Split(string(raw[:n-1]), "\x00"), nil
}

// Send hands the order over.
func (o *Order) Send(w io.Writer) error {
	texts := append([]string{o.Path, o.Dir, strconv.Itoa(len(o.Args))}, o.Args...)
	return send(w, append(texts, o.Env...)...)
}

func receiveOrder(r io.Reader) (*Order, error) {
	texts, err := receive(r)
	if err != nil {
		return nil, err
	}
	if len(texts) < 3 {
		return nil, errFrame
	}
	n, err := strconv.Atoi(texts[2])
	if err != nil || n < 0 || n > len(texts)-3 {
		return nil, errFrame
	}
	return &Order{Path: texts[0], Dir: texts[1], Args: texts[3 : 3+n], Env: texts[3+n:]}, nil
}

func (w *Word) send(to io.Writer) error { return send(to, strconv.Itoa(w.Code), w.Failed) }

// Hear waits for a supervisor's word. An error says that it went without one.
func Hear(r io.Reader) (Word, error) {
	texts, err := receive(r)
	if err != nil {
		return Word{}, err
	}
	if len(texts) != 2 {
		return Word{}, errFrame
	}
	code, err := strconv.Atoi(texts[0])
	return Word{Code: code, Failed: texts[1]}, err
}
