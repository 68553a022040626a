package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"golang.org/x/term"
)

// Options are what a command line adds to a Spec.
type Options struct {
	Spec Spec
	// Explain prints what would be enforced by what, and runs nothing.
	Explain bool
	// Interactive gives the command a terminal when the streams are one.
	Interactive bool
}

// Exit codes of Main beyond the command's own.
const (
	ExitRefused  = 125 // nothing was started
	ExitNoStart  = 126 // the sandbox stood, the program could not be started
	ExitNotFound = 127
)

// Main runs a command for a person or a script: the streams are the caller's,
// refusals are summed up on stderr, the exit code is the command's.
func Main(ctx context.Context, o Options, stdin io.Reader, stdout, stderr io.Writer) (int, *Result) {
	if o.Explain {
		text, err := Explain(o.Spec)
		if err != nil {
			fmt.Fprintln(stderr, "gatehouse:", err)
			return ExitRefused, nil
		}
		_, _ = io.WriteString(stdout, text)
		return 0, nil
	}
	s := o.Spec
	s.Stdin, s.Stdout, s.Stderr = stdin, stdout, stderr
	s.Limits.Output = max(s.Limits.Output, 1<<40)
	tty := terminalOf(o.Interactive, stdin, stdout)
	if tty != nil {
		cols, rows, err := term.GetSize(int(tty.Fd()))
		if err == nil {
			s.TTY = &Terminal{Rows: uint16(rows), Cols: uint16(cols)}
		}
	}
	p, err := Start(ctx, s)
	if err != nil {
		fmt.Fprintln(stderr, "gatehouse:", err)
		if errors.Is(err, os.ErrNotExist) {
			return ExitNotFound, nil
		}
		return ExitRefused, nil
	}
	restore := p.attend(tty)
	r, err := p.Wait()
	restore()
	if err != nil {
		fmt.Fprintln(stderr, "gatehouse:", err)
	}
	if r == nil {
		return ExitRefused, nil
	}
	summarise(stderr, r)
	return r.ExitCode, r
}

// terminalOf returns the caller's terminal if both streams are one.
func terminalOf(wanted bool, stdin io.Reader, stdout io.Writer) *os.File {
	in, ok1 := stdin.(*os.File)
	out, ok2 := stdout.(*os.File)
	if wanted && ok1 && ok2 && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) {
		return in
	}
	return nil
}

// attend passes signals and changes of size on, and puts a terminal into raw
// mode so that every key reaches the command's own.
func (p *Process) attend(tty *os.File) (restore func()) {
	ch := make(chan os.Signal, 8)
	list := slices.Clone(passedOn)
	var old *term.State
	if tty != nil {
		list = append(list, resized...)
		old, _ = term.MakeRaw(int(tty.Fd()))
	}
	signal.Notify(ch, list...)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case sig := <-ch:
				if slices.Contains(resized, sig) {
					if cols, rows, err := term.GetSize(int(tty.Fd())); err == nil {
						_ = p.Resize(uint16(rows), uint16(cols))
					}
					continue
				}
				_ = p.Signal(sig)
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		close(done)
		if old != nil {
			_ = term.Restore(int(tty.Fd()), old)
		}
	}
}

// summarise says on stderr what a person should know after a run. Calls that
// programs try and do without are counted, not listed.
func summarise(w io.Writer, r *Result) {
	if r.Ended != EndExit {
		fmt.Fprintf(w, "gatehouse: ended: %s\n", r.Ended)
	}
	for _, f := range r.Refusals {
		if f.Kind != RefusedSyscall {
			fmt.Fprintf(w, "gatehouse: refused %s %q: %s\n", f.Kind, f.Subject, f.Reason)
		}
	}
	for _, m := range r.Quarantined {
		fmt.Fprintf(w, "gatehouse: %q was moved to %q\n", m.Path, m.Kept)
	}
	if r.Waived != 0 {
		fmt.Fprintf(w, "gatehouse: waived: %s\n", r.Waived)
	}
}
