package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func newRestore(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use:   "restore",
		Short: "Put back what calls changed",
		Long: `Before a call that was let through writes or deletes, the gate keeps a copy of what is there.
A restore point holds one batch: the calls of a session from one question to the next, for ten
minutes at most.`,
		Example: `  gatehouse restore list --credential-file me.key
  gatehouse restore show p_3a… --credential-file me.key
  gatehouse restore apply p_3a… --path /home/me/project/main.go --credential-file me.key`,
	})
	cmd.AddCommand(newRestoreList(a), newRestoreShow(a), newRestoreApply(a))
	return cmd
}

func newRestoreList(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "list", Short: "List restore points, newest first", Args: cobra.NoArgs,
		Example: "  gatehouse restore list --credential-file me.key --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.RestoreList{}
			return a.show(cmd, "/v1/restore", got, func() error {
				var rows [][]string
				for _, p := range got.Points {
					who, what := p.Agent, ""
					if p.By != "" {
						who = p.By + ", who put another back"
					}
					if len(p.Roots) > 0 {
						what = p.Roots[0]
					}
					rows = append(rows, []string{p.ID, who, strconv.Itoa(len(p.Entries)), what, ago(p.Made, time.Now())})
				}
				if err := table(out(cmd), "point,for,paths,first,kept", rows); err != nil {
					return err
				}
				for _, problem := range got.Problems {
					fmt.Fprintln(out(cmd), match.Visible(problem))
				}
				return nil
			})
		},
	})
}

func newRestoreShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show POINT", Short: "Show what putting a point back would change", Args: cobra.ExactArgs(1),
		Example: "  gatehouse restore show p_3a… --credential-file me.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &admin.RestorePoint{}
			return a.show(cmd, restorePath(args[0]), got, func() error { return printRestore(out(cmd), got) })
		},
	})
}

func restorePath(id string) string { return "/v1/restore/" + url.PathEscape(id) }

// restoreWords say what putting back does to a path.
var restoreWords = map[string]string{"missing": "bring back", "added": "remove", "differs": "put back"}

// printRestore shows a point and its diffs. Nothing of a file reaches the
// terminal as anything but visible text.
func printRestore(w io.Writer, p *admin.RestorePoint) error {
	fmt.Fprintf(w, "%s, kept %s\n", match.Visible(p.ID), stamp(p.Made))
	for _, n := range p.NotKept {
		fmt.Fprintf(w, "not kept: %s\n", match.Visible(n))
	}
	if len(p.Plan.Changes) == 0 {
		_, err := fmt.Fprintln(w, "Everything is as it was kept.")
		return err
	}
	for _, c := range p.Plan.Changes {
		line := restoreWords[string(c.State)] + " " + match.Visible(c.Path)
		if c.Newer {
			line += paint(w, yellow, " (changed after the batch)")
		}
		if c.Problem != "" {
			line += paint(w, red, " ("+match.Visible(c.Problem)+")")
		}
		fmt.Fprintln(w, line)
		if c.Diff != "" {
			fmt.Fprintln(w, match.VisibleLines(c.Diff))
		}
	}
	_, err := fmt.Fprintf(w, "digest %s\n", p.Plan.Digest)
	return err
}

func newRestoreApply(a *app) *cobra.Command {
	in := &api.RestoreRequest{}
	var sure bool
	cmd := a.withJSON(&cobra.Command{
		Use: "apply POINT", Short: "Put a point back, after showing what that changes", Args: cobra.ExactArgs(1),
		Long: `Shows what would change, asks, and puts it back. What is there now is kept as a point of
its own first, so that this can be undone as well.`,
		Example: `  gatehouse restore apply p_3a… --credential-file me.key
  gatehouse restore apply p_3a… --path /home/me/project/main.go --yes --credential-file me.key
  gatehouse restore apply p_3a… --newer --credential-file me.key     # also what was changed since`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p := &admin.RestorePoint{}
			if err := a.do(cmd, "GET", restorePath(args[0]), nil, p); err != nil {
				return err
			}
			if !a.json {
				if err := printRestore(out(cmd), p); err != nil {
					return err
				}
			}
			if !sure {
				if err := confirm(cmd, "Put this back? [y/N] "); err != nil {
					return err
				}
			}
			in.Digest = p.Plan.Digest
			got := &admin.Restored{}
			if err := a.do(cmd, "POST", restorePath(args[0])+"/apply", in, got); err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), got)
			}
			return printRestored(out(cmd), got)
		},
	})
	f := cmd.Flags()
	f.StringArrayVar(&in.Paths, "path", nil, "put only this path back (may be repeated)")
	f.BoolVar(&in.Newer, "newer", false, "overwrite what was changed after the batch as well")
	f.BoolVar(&sure, "yes", false, "do not ask")
	return cmd
}

// printRestored says what came of it; anything that was not put back is a
// failure.
func printRestored(w io.Writer, got *admin.Restored) error {
	failed := 0
	for _, c := range got.Changes {
		if c.Problem != "" {
			failed++
			fmt.Fprintf(w, "not put back: %s: %s\n", match.Visible(c.Path), match.Visible(c.Problem))
		}
	}
	fmt.Fprintf(w, "Put back %d of %d. What was there before is kept as %s.\n", len(got.Changes)-failed, len(got.Changes), match.Visible(got.Undo))
	if failed > 0 {
		return errors.New("not everything was put back")
	}
	return nil
}

// confirm asks a question on the terminal; anything but yes ends the command.
func confirm(cmd *cobra.Command, question string) error {
	fmt.Fprint(out(cmd), question)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("nothing was changed")
}
