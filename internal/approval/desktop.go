package approval

import (
	"context"
	"errors"
	"html"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gen2brain/beeep"
)

// ErrNoDesktop says that there is no desktop session to show notices in.
var ErrNoDesktop = errors.New("no desktop session: notices cannot be shown on this machine")

// Desktop shows notices on the desktop of the user the gate runs as, and codes in a dialog where a
// program is there that can show one.
type Desktop struct {
	getenv  func(string) string
	windows windows
	// busy is held while the desktop is asked, which cannot be interrupted: a
	// desktop that hangs is asked once, and not again until it answers.
	busy chan struct{}
}

// NewDesktop makes a sender for the desktop; a nil getenv is os.Getenv.
func NewDesktop(getenv func(string) string) *Desktop {
	if getenv == nil {
		getenv = os.Getenv
	}
	nameDesktop()
	return &Desktop{
		getenv: getenv, busy: make(chan struct{}, 1),
		windows: windows{getenv: getenv, open: make(map[string]*window)},
	}
}

// nameDesktop tells the library, which keeps it in a variable, who we are.
var nameDesktop = sync.OnceFunc(func() { beeep.AppName = "Gatehouse" })

// Name returns desktop.
func (d *Desktop) Name() string { return "desktop" }

// Reachable looks for a desktop session: a display, and the session's bus or a program for dialogs.
func (d *Desktop) Reachable() error {
	if d.notices() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), windowTry)
	defer cancel()
	if _, err := d.windows.program(ctx); err != nil {
		return ErrNoDesktop
	}
	return nil
}

// windowTry is how long a program for dialogs may take to say that it works.
const windowTry = 5 * time.Second

// notices looks for where notices are shown. On Linux that is a display and the
// session's bus by name: without one, libraries start a bus of their own.
func (d *Desktop) notices() error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil
	}
	bus := d.getenv("DBUS_SESSION_BUS_ADDRESS")
	if bus == "" || bus == "autolaunch:" || (d.getenv("DISPLAY") == "" && d.getenv("WAYLAND_DISPLAY") == "") {
		return ErrNoDesktop
	}
	return nil
}

// Send shows the notice: a code in a dialog, anything else, and a code where there is no dialog, as a
// notice of the desktop's.
func (d *Desktop) Send(ctx context.Context, n Notice) error {
	n.clean()
	var noDialog error
	if n.Code != "" {
		if noDialog = d.windows.show(ctx, n); noDialog == nil {
			return nil
		}
	}
	if err := d.notices(); err != nil {
		return &PermanentError{errors.Join(err, noDialog)}
	}
	return d.notify(ctx, n)
}

// notify shows a notice.
func (d *Desktop) notify(ctx context.Context, n Notice) error {
	select {
	case d.busy <- struct{}{}:
	default:
		return errors.New("the desktop has not answered the notice before this one")
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-d.busy }()
		// Desktops read markup in the body.
		body := html.EscapeString(n.body() + "\n" + n.Link)
		if n.Code != "" {
			done <- beeep.Alert(n.title(), body, "") // stays until somebody has read it
			return
		}
		done <- beeep.Notify(n.title(), body, "")
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Showing lists the challenges whose codes are in a dialog now.
func (d *Desktop) Showing() []string { return d.windows.showing() }

// Close takes the dialog of a challenge away, if it has one.
func (d *Desktop) Close(challenge string) { d.windows.close(challenge) }
