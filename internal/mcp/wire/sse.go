package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxEvent is the largest message that is taken from an upstream.
const MaxEvent = 32 << 20

// ErrTooLarge says that a message is larger than [MaxEvent].
var ErrTooLarge = errors.New("the message is too large")

// Event is one server-sent event that carries a message. ID and Retry are kept
// so that a client can take up a broken stream where it ended.
type Event struct {
	Name, ID, Retry string
	Data            []byte
}

// Reader reads server-sent events.
type Reader struct{ in *bufio.Reader }

// NewReader reads events from in.
func NewReader(in io.Reader) *Reader { return &Reader{bufio.NewReaderSize(in, 16<<10)} }

// Next returns the next event; io.EOF ends the stream.
func (r *Reader) Next() (Event, error) {
	var e Event
	some, data := false, false
	for {
		line, err := ReadLine(r.in)
		if err != nil {
			return e, err
		}
		if len(line) == 0 {
			if some {
				return e, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		case "retry":
			e.Retry = string(value)
		case "data":
			if data {
				e.Data = append(e.Data, '\n')
			}
			e.Data, data = append(e.Data, value...), true
		default:
			continue // comments, and fields that mean nothing
		}
		some = true
	}
}

// ReadLine reads a line of any length up to [MaxEvent], without its end.
func ReadLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimRight(bytes.Clone(line), "\r\n"), nil
	}
	var out []byte
	for errors.Is(err, bufio.ErrBufferFull) {
		if out = append(out, line...); len(out) > MaxEvent {
			return nil, ErrTooLarge
		}
		line, err = in.ReadSlice('\n')
	}
	out = append(out, line...)
	if errors.Is(err, io.EOF) && len(out) > 0 {
		err = nil
	}
	return bytes.TrimRight(out, "\r\n"), err
}

// Append writes the event.
func (e *Event) Append(out []byte) []byte {
	field := func(name, value string) {
		if value != "" {
			out = append(append(append(append(out, name...), ": "...), value...), '\n')
		}
	}
	field("event", e.Name)
	field("id", e.ID)
	field("retry", e.Retry)
	// A carriage return would end a line too; in JSON it is a space.
	for line := range bytes.SplitSeq(bytes.ReplaceAll(e.Data, []byte("\r"), []byte(" ")), []byte("\n")) {
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, '\n')
}
