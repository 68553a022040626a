package gatetest

import (
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/creack/pty"
)

// Terminal is what the controlling terminal of a daemon shows.
type Terminal struct {
	screen *syncBuffer
	tty    *os.File
}

// String returns what is on it so far.
func (s *Terminal) String() string { return s.screen.String() }

var signInLink = regexp.MustCompile(`http://\S+/signin\?token=(ghl_[a-z2-7]+)`)

// Token waits for the sign-in link and returns its token.
func (s *Terminal) Token() string {
	for {
		if m := signInLink.FindStringSubmatch(s.String()); m != nil {
			return m[1]
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// UpOnTerminal starts the daemon with a controlling terminal, as a person
// does. Its standard output and error stay pipes, so that what is on the
// terminal is there because the daemon opened it.
func (g *Gate) UpOnTerminal() *Terminal {
	g.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		g.t.Fatal(err)
	}
	s := &Terminal{screen: &syncBuffer{}, tty: tty}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.screen, master) // ends with an error when the terminal is closed
	}()
	g.t.Cleanup(func() {
		g.Stop()
		tty.Close()
		master.Close()
		<-read
	})
	g.tty = tty
	g.Up()
	g.tty = nil // the next start has none
	return s
}

// Secrets returns the words of a text that are sign-in links, credentials,
// tokens or cookies.
func Secrets(text string) []string { return secret.FindAllString(text, -1) }

var secret = regexp.MustCompile(`gh[algc]_[a-z2-7]{20,}`)

// Hide shortens the secrets in a text, for messages.
func Hide(text string) string {
	return secret.ReplaceAllStringFunc(text, func(s string) string { return s[:4] + strings.Repeat(".", 3) })
}
