package approval

import (
	"context"
	"errors"
	"html"
	"os"
	"runtime"
	"sync"

	"github.com/gen2brain/beeep"
)

// ErrNoDesktop says that there is no desktop session to show notices in.
var ErrNoDesktop = errors.New("no desktop session: notices cannot be shown on this machine")

// Desktop shows notices on the desktop of the user the gate runs as.
type Desktop struct {
	getenv func(string) string
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
	return &Desktop{getenv: getenv, busy: make(chan struct{}, 1)}
}

// nameDesktop tells the library, which keeps it in a variable, who we are.
var nameDesktop = sync.OnceFunc(func() { beeep.AppName = "Gatehouse" })

// Name returns desktop.
func (d *Desktop) Name() string { return "desktop" }

// Reachable looks for a desktop session. On Linux that is a display and the
// session's bus by name: without one, libraries start a bus of their own.
func (d *Desktop) Reachable() error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil
	}
	bus := d.getenv("DBUS_SESSION_BUS_ADDRESS")
	if bus == "" || bus == "autolaunch:" || (d.getenv("DISPLAY") == "" && d.getenv("WAYLAND_DISPLAY") == "") {
		return ErrNoDesktop
	}
	return nil
}

// Send shows the notice.
func (d *Desktop) Send(ctx context.Context, n Notice) error {
	n.clean()
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
