package job

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

// errOverflow says that a job said more than is kept.
var errOverflow = errors.New("the output is larger than is kept")

// maxLine is how much of an unfinished line waits for its end before it is
// written in parts. Up to keptBack of it stays, so that no secret is cut in two.
const maxLine, keptBack = 4 << 20, 64 << 10

// pemBegin and pemEnd enclose keys, which have many lines.
var pemBegin, pemEnd = []byte("-----BEGIN "), []byte("-----END ")

// outputLog is a file that only grows, up to a limit. Whole lines go in, with
// their secrets taken out, so that a page never shows half of one.
type outputLog struct {
	redact func() *content.Redactor
	limit  int64

	mu      sync.Mutex
	f       *os.File
	pending []byte
	size    int64
	full    bool
	skip    bool // the rest of the line is left out
}

func newLog(path string, limit int64, redact func() *content.Redactor) (*outputLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &outputLog{redact: redact, limit: limit, f: f}, nil
}

// Write takes output as it comes. It fails when the log is full.
func (l *outputLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, p...)
	if l.skip {
		at := bytes.IndexByte(l.pending, '\n')
		if l.skip = at < 0; l.skip {
			l.pending = l.pending[:0]
			return len(p), nil
		}
		l.pending = append(l.pending[:0], l.pending[at:]...)
	}
	end := bytes.LastIndexByte(l.pending, '\n') + 1
	if open := unclosed(l.pending[:end]); open >= 0 {
		end = open
	}
	if end == 0 && len(l.pending) > maxLine {
		if end = safeCut(l.redact(), l.pending); end == 0 {
			l.pending, l.skip = append(l.pending[:0], leftOut...), true
			end = len(l.pending)
		}
	}
	if end == 0 {
		return len(p), nil
	}
	err := l.flush(l.pending[:end])
	l.pending = append(l.pending[:0], l.pending[end:]...)
	return len(p), err
}

// leftOut stands for a line in which nothing but secrets could be cut.
const leftOut = "[a line without a place to cut was left out]"

// safeCut is where a long text can be cut so that no secret is on both sides:
// where both sides, redacted apart, are what they are together. It is 0 if there
// is no such place.
func safeCut(r *content.Redactor, text []byte) int {
	for at := len(text) - keptBack; at > len(text)-3*keptBack; at -= keptBack / 8 {
		cut := at - tail(text[:at])
		left, right := text[cut-keptBack:cut], text[cut:min(len(text), cut+keptBack)]
		if redactedAs(r, left)+redactedAs(r, right) == redactedAs(r, text[cut-keptBack:min(len(text), cut+keptBack)]) {
			return cut
		}
	}
	return 0
}

// markerNumber is what differs between markers for the same thing.
var markerNumber = regexp.MustCompile(`\[redacted:([a-z0-9-]+):[0-9]+\]`)

func redactedAs(r *content.Redactor, b []byte) string {
	return markerNumber.ReplaceAllString(string(redactLines(r, b)), "[redacted:$1]")
}

// unclosed is where a key begins that has not ended, -1 if there is none.
func unclosed(b []byte) int {
	at := bytes.LastIndex(b, pemBegin)
	if at < 0 || bytes.Contains(b[at:], pemEnd) {
		return -1
	}
	return bytes.LastIndexByte(b[:at], '\n') + 1
}

func (l *outputLog) flush(b []byte) error {
	if l.full {
		return errOverflow
	}
	clean := redactLines(l.redact(), b)
	if l.size+int64(len(clean)) > l.limit {
		l.full = true
		cut := clean[:l.limit-l.size]
		clean = cut[:len(cut)-tail(cut)]
	}
	n, err := l.f.Write(clean)
	l.size += int64(n)
	if err == nil && l.full {
		err = errOverflow
	}
	return err
}

// redactLines takes secrets out. A line of JSON stays JSON, so that it can be
// parsed afterwards; what is between such lines is text.
func redactLines(r *content.Redactor, b []byte) []byte {
	var out, text []byte
	asText := func() {
		if len(text) > 0 {
			clean, _ := r.Text(string(bytes.ToValidUTF8(text, []byte("�"))))
			out, text = append(out, clean...), text[:0]
		}
	}
	for line := range bytes.Lines(b) {
		body := bytes.TrimRight(line, "\r\n")
		if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !jsontext.Value(trimmed).IsValid() {
			text = append(text, line...)
			continue
		}
		asText()
		clean, _ := r.JSON(body)
		out = append(append(out, clean...), line[len(body):]...)
	}
	asText()
	return out
}

// Close writes what is left and returns the log's size.
func (l *outputLog) Close() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if len(l.pending) > 0 {
		err = l.flush(l.pending)
		l.pending = nil
	}
	return l.size, errors.Join(err, l.f.Close())
}

// tail is how many bytes at the end of b begin a character that is not whole.
func tail(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func (j *Jobs) logPath(id, stream string) string { return filepath.Join(j.dir, id+"."+stream) }

// readPart reads a piece of a log that may still grow.
func (j *Jobs) readPart(id, stream string, offset, most int64) (Part, error) {
	p := Part{Offset: offset, Next: offset}
	f, err := os.Open(j.logPath(id, stream))
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return p, err
	}
	p.Total = fi.Size()
	buf := make([]byte, max(0, min(most, p.Total-offset)))
	n, err := f.ReadAt(buf, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	buf = buf[:n]
	if cut := tail(buf); cut < n {
		buf = buf[:n-cut]
	}
	p.Text, p.Next = string(bytes.ToValidUTF8(buf, []byte("�"))), offset+int64(len(buf))
	return p, nil
}
