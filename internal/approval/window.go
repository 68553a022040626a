package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// errNoWindows says that no program can show a dialog here.
var errNoWindows = errors.New("no dialog can be shown: neither zenity nor kdialog (on macOS osascript) works on this desktop")

// windows are the dialogs on the desktop of the user the gate runs as. One shows what a code is for and
// the code, answers nothing, and is there until it is put away or closed.
type windows struct {
	getenv func(string) string

	mu   sync.Mutex
	open map[string]*window // by challenge
}

// window is a program that shows something.
type window struct {
	end  context.CancelFunc // asks for its end
	gone chan struct{}      // closed when it has ended
	err  error              // then: how
}

// maxWindows bounds what covers somebody's screen.
const maxWindows = 8

// A windowProgram shows text that it reads from its standard input. Nothing of the text is on its
// command line: every process could read that, the agent's too, and options, markup and escapes in
// an agent's words would mean something there.
type windowProgram struct {
	path string
	// try ends well only where the program can reach the desktop.
	try  []string
	args func(left time.Duration) []string
	// input is what the program is given for a text; nil: the text.
	input func(text string) string
}

// windowPrograms are those that may be there, the best first. They are not looked for on PATH, which
// whoever started the gate may have set.
func windowPrograms() (list []windowProgram) {
	if runtime.GOOS == "darwin" {
		return []windowProgram{{
			path: "/usr/bin/osascript", try: []string{"-l", "JavaScript", "-e", "Application('System Events').name()"},
			args: func(time.Duration) []string { return []string{"-l", "JavaScript", "-"} }, input: dialogScript,
		}}
	}
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/bin"} {
		list = append(list, windowProgram{
			path: filepath.Join(dir, "zenity"), try: []string{"--version"},
			args: func(left time.Duration) []string {
				// The time is for the day that the gate cannot close it: it was killed.
				return []string{"--text-info", "--title=Gatehouse", "--width=640", "--height=300", "--timeout=" + strconv.Itoa(int(left.Seconds())+1)}
			},
		}, windowProgram{
			path: filepath.Join(dir, "kdialog"), try: []string{"--version"},
			args: func(time.Duration) []string { return []string{"--title", "Gatehouse", "--textbox", "-", "640", "300"} },
		})
	}
	return list
}

// dialogScript is a program with the text as a literal.
func dialogScript(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		return "" // no text of ours is unfit for it; an empty program shows nothing
	}
	return "const app = Application.currentApplication(); app.includeStandardAdditions = true;\n" +
		"app.displayDialog(" + string(literal) + ", {withTitle: 'Gatehouse', buttons: ['OK']});\n"
}

// program finds the one that works now: it is tried, not only looked for.
func (w *windows) program(ctx context.Context) (windowProgram, error) {
	if runtime.GOOS != "darwin" && w.getenv("DISPLAY") == "" && w.getenv("WAYLAND_DISPLAY") == "" {
		return windowProgram{}, errNoWindows
	}
	for _, p := range windowPrograms() {
		if _, err := os.Stat(p.path); err == nil && w.command(ctx, p.path, p.try...).Run() == nil {
			return p, nil
		}
	}
	return windowProgram{}, errNoWindows
}

// command is a program of the desktop with nothing in its environment but the way to the desktop.
func (w *windows) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	for _, name := range []string{"HOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR"} {
		if v := w.getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

// windowStands is how long a window must be there to count as shown.
const windowStands = 400 * time.Millisecond

// show opens the window of a challenge, one for each.
func (w *windows) show(ctx context.Context, n Notice) error {
	p, err := w.program(ctx)
	if err != nil {
		return err
	}
	life, end := context.WithDeadline(context.WithoutCancel(ctx), n.Expires)
	win := &window{end: end, gone: make(chan struct{})}
	if known, err := w.enter(n.Challenge, win); known || err != nil {
		end()
		return err
	}
	text := n.title() + "\n\n" + n.body() + "\n\n" + n.Link + "\n"
	if p.input != nil {
		text = p.input(text)
	}
	var said bytes.Buffer
	cmd := w.command(life, p.path, p.args(time.Until(n.Expires))...)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = strings.NewReader(text), &said, time.Second
	go func() {
		win.err = fmt.Errorf("the dialog did not stay (%v): %s", cmd.Run(), line(said.String()))
		end()
		w.forget(n.Challenge)
		close(win.gone)
	}()
	select {
	case <-win.gone:
		return win.err
	case <-ctx.Done():
		w.close(n.Challenge)
		return ctx.Err()
	case <-time.After(windowStands):
		return nil
	}
}

// enter notes the window of a challenge, unless it has one already.
func (w *windows) enter(challenge string, win *window) (known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.open[challenge] != nil:
		return true, nil
	case len(w.open) >= maxWindows:
		return false, errors.New("too many dialogs are on the desktop already")
	}
	w.open[challenge] = win
	return false, nil
}

func (w *windows) forget(challenge string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, challenge)
}

// showing lists the challenges that have a window.
func (w *windows) showing() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.open {
		ids = append(ids, id)
	}
	return ids
}

// close takes the window of a challenge away and returns when it is gone.
func (w *windows) close(challenge string) {
	w.mu.Lock()
	win := w.open[challenge]
	w.mu.Unlock()
	if win != nil {
		win.end()
		<-win.gone
	}
}
