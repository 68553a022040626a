package facts

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// Simple is a simple command as the shell would run it: quotes, directories
// of programs, assignments and wrappers are gone.
type Simple struct {
	// Text is the program's name and its words, one blank between them, up to
	// what is not known.
	Text string
	// Sub is the program's name with its subcommand ("git push"), whatever
	// options stand between them; "" if it has none.
	Sub string
	// Whole says that all of the words are known.
	Whole bool
}

// simple writes a command down in its one form.
func simple(c *shell.Command) Simple {
	s := Simple{Text: c.Program, Whole: c.Program != ""}
	if !s.Whole {
		return s
	}
	if c.Subcommand != "" {
		s.Sub = c.Program + " " + c.Subcommand
	}
	var text strings.Builder
	text.WriteString(c.Program)
	for _, a := range c.Args {
		text.WriteByte(' ')
		text.WriteString(a.Text)
		if !a.Known {
			s.Whole = false
			break
		}
	}
	s.Text = text.String()
	return s
}
