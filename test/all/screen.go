package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// screen prints whole lines from several steps, and on a terminal a last line
// that says what is running.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	running  []string
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			s.terminal = info.Mode()&os.ModeCharDevice != 0
		}
	}
	return s
}

// begin and end frame a step; busy and idle frame a package in it.
func (s *screen) begin(step string)      { s.change(step, true) }
func (s *screen) end(step string)        { s.change(step, false) }
func (s *screen) busy(step, name string) { s.change(step+" "+name, true) }
func (s *screen) idle(step, name string) { s.change(step+" "+name, false) }

func (s *screen) change(name string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(r string) bool { return r == name })
	if on {
		s.running = append(s.running, name)
	}
	s.draw()
}

// draw writes the last line. The lock is held.
func (s *screen) draw() {
	if !s.terminal {
		return
	}
	const width = 100
	text := strings.Join(s.running, ", ")
	if len(text) > width {
		text = text[:width] + "…"
	}
	fmt.Fprintf(s.out, "\r\x1b[K%s", text)
}

// clear removes the last line before something else is printed.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	s.draw()
}

// text prints as it is, with a line break at the end.
func (s *screen) text(text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	fmt.Fprintln(s.out, strings.TrimSuffix(text, "\n"))
	s.draw()
}

// words are what a line begins with.
var words = map[string]string{"pass": "ok", "fail": "FAIL", "skip": "skip"}

// line prints that something has ended.
func (s *screen) line(step, action, text string, took time.Duration) {
	s.text(fmt.Sprintf("%-12s %-4s  %s  %s", step, words[action], text, seconds(took)))
}

// step prints that a step has ended. The packages of a step with tests have
// had their lines, and their failures with them.
func (s *screen) step(r result) {
	switch {
	case r.skipped != "":
		s.line(r.step, "skip", r.skipped, r.took)
	case r.failed:
		s.line(r.step, "fail", r.tally.String(), r.took)
		s.text(r.detail)
	default:
		s.line(r.step, "pass", strings.TrimSpace(r.tally.String()+"  "+r.note), r.took)
	}
}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
