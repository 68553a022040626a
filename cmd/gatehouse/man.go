package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write manual pages into a directory", Args: cobra.ExactArgs(1),
		Example: `  gatehouse man /usr/local/share/man/man1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeMan(cmd.Root(), args[0])
		},
	}
}

// writeMan writes the page of a command and those of its subcommands.
func writeMan(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(cmd, name)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeMan(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manPage(cmd *cobra.Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"gatehouse %s\" \"Gatehouse\"\n", strings.ToUpper(name), buildVersion())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(text))
	cmd.InheritedFlags()
	if flags := cmd.Flags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) {
			fmt.Fprintf(&b, ".TP\n.B \\-\\-%s\n%s\n", roff(f.Name), roff(f.Usage))
		})
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if subs := cmd.Commands(); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(name+"-"+sub.Name()), roff(sub.Short))
			}
		}
	}
	return b.String()
}

// roff escapes what the formatter would take for a command.
func roff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
