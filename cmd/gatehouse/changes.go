package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
)

// shelf is where this user's runs leave their changes. It belongs to whoever
// runs commands, not to the gate.
func shelf() (changes.Shelf, error) {
	dir, err := place.Changes()
	return changes.Shelf{Dir: dir}, err
}

func newChanges(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "changes", Short: "What confined runs changed, and what of it to take over",
		Long: `A run with --overlay or --clone leaves the directory it works on as it is. What it
changed waits here, sealed: shown as a diff, taken over when a person accepts it,
gone when it is discarded. The name of a set of changes is the beginning of its
hash, so what you accept is what was shown.

Where a gate is running, accepting and discarding are an approver's acts: they take
a credential and go on record with that hash.`,
		Example: `  gatehouse run --overlay -- npm install
  gatehouse changes list
  gatehouse changes show 3f9a2c41d07be518
  gatehouse changes accept 3f9a src/main.go --credential-file me.key
  gatehouse changes discard 3f9a --credential-file me.key`,
	})
	cmd.AddCommand(newChangesList(a), newChangesShow(a), newChangesAccept(a), newChangesDiscard(a))
	return cmd
}

func newChangesList(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "list [ID]", Short: "List what waits, or the entries of one set", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sh, err := shelf()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listShelf(cmd, sh)
			}
			e, err := sh.Open(args[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return printJSON(out(cmd), newChangesEntry(e))
			case e.Set != nil:
				return e.Set.List(out(cmd))
			}
			return e.Clone.List(out(cmd))
		},
	})
}

// changesEntry is a set of changes as machines read it.
type changesEntry struct {
	ID      string           `json:"id"`
	Kind    string           `json:"kind"` // overlay, clone or broken
	Of      string           `json:"of,omitzero"`
	Hash    string           `json:"hash,omitzero"`
	Command []string         `json:"command,omitzero"`
	At      time.Time        `json:"at,omitzero"`
	Changes []changes.Change `json:"changes,omitzero"`
	Refs    []changes.Ref    `json:"refs,omitzero"`
	Problem string           `json:"problem,omitzero"`
}

func newChangesEntry(e *changes.Entry) changesEntry {
	switch {
	case e.Set != nil:
		s := e.Set
		return changesEntry{ID: e.ID, Kind: "overlay", Of: s.Root, Hash: s.Hash, Command: s.About.Command, At: s.About.At, Changes: s.Changes}
	case e.Clone != nil:
		c := e.Clone
		return changesEntry{ID: e.ID, Kind: "clone", Of: c.Source, Hash: c.Hash, Command: c.About.Command, At: c.About.At, Refs: c.Refs}
	}
	return changesEntry{ID: e.ID, Kind: "broken", Problem: e.Problem}
}

func (a *app) listShelf(cmd *cobra.Command, sh changes.Shelf) error {
	list, err := sh.List()
	if err != nil {
		return err
	}
	entries := []changesEntry{}
	for i := range list {
		entries = append(entries, newChangesEntry(&list[i]))
	}
	slices.SortStableFunc(entries, func(x, y changesEntry) int { return x.At.Compare(y.At) })
	if a.json {
		return printJSON(out(cmd), entries)
	}
	var rows [][]string
	for _, e := range entries {
		what := strconv.Itoa(len(e.Changes)+len(e.Refs)) + " in " + e.Of
		if e.Problem != "" {
			what = e.Problem
		}
		rows = append(rows, []string{e.ID, e.Kind, ago(e.At, time.Now()), what, strings.Join(e.Command, " ")})
	}
	return table(out(cmd), "id,kind,made,changes,command", rows)
}

func newChangesShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show ID [PATH|BRANCH]...", Short: "Show changes as a diff", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sh, err := shelf()
			if err != nil {
				return err
			}
			e, err := sh.Open(args[0])
			if err != nil {
				return err
			}
			var text strings.Builder
			if e.Set != nil {
				err = e.Set.Show(&text, args[1:]...)
			} else {
				err = e.Clone.Show(cmd.Context(), &text, args[1:]...)
			}
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), struct {
					changesEntry
					Diff string `json:"diff"`
				}{newChangesEntry(e), text.String()})
			}
			_, err = io.WriteString(out(cmd), text.String())
			return err
		},
	})
}

func newChangesAccept(a *app) *cobra.Command {
	var protected []string
	cmd := a.withJSON(&cobra.Command{
		Use: "accept ID [PATH|BRANCH]...", Short: "Take changes over: the named ones, or all that need no word of their own",
		Long: `Takes over what was shown under ID. Of an overlay, files are put in place unless the
file they replace has changed since. Of a clone, branches are fetched as
gatehouse/ID/BRANCH after every object was checked.

Files that run code for whoever works in the directory later (hooks, settings of
agents and editors, start-up files) are taken over one by one: name each with
--protected and answer on the terminal.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sh, err := shelf()
			if err != nil {
				return err
			}
			e, err := sh.Open(args[0])
			if err != nil {
				return err
			}
			if e.Set == nil && len(protected) > 0 {
				return usageError{errors.New("--protected is for overlays; a branch of a clone is merged by you")}
			}
			done, err := a.accept(cmd, e, args[1:], protected)
			if a.json {
				return errors.Join(printJSON(out(cmd), map[string]any{"id": e.ID, "accepted": append([]string{}, done...)}), err)
			}
			for _, d := range done {
				fmt.Fprintf(out(cmd), "accepted %s\n", quoted(d))
			}
			if err == nil && len(done) == 0 {
				fmt.Fprintln(out(cmd), "Nothing was taken over: what is left must be named, or cannot be accepted.")
			}
			return err
		},
	})
	cmd.Flags().StringArrayVar(&protected, "protected", nil, "protected file to take over as well; each is asked about")
	return cmd
}

// accept takes changes over, with a record before and after.
func (a *app) accept(cmd *cobra.Command, e *changes.Entry, paths, protected []string) (done []string, err error) {
	if e.Set != nil {
		if err := confirmProtected(e.Set, protected); err != nil {
			return nil, err
		}
	}
	r, err := a.record(cmd.Context(), cmd.ErrOrStderr(), e, "accept", admin.Layer{Paths: paths, Protected: protected})
	if err != nil {
		return nil, err
	}
	if e.Set != nil {
		done, err = e.Set.Accept(changes.Acceptance{Hash: e.Set.Hash, Paths: paths, Protected: protected})
	} else {
		done, err = e.Clone.Accept(cmd.Context(), e.Clone.Hash, paths...)
	}
	return done, r.accepted(cmd.Context(), done, err)
}

// confirmProtected shows each protected file and asks on the controlling
// terminal, so that no program can answer by its arguments alone.
func confirmProtected(s *changes.Set, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return errors.New("protected files are accepted by a person, one by one: there is no terminal to ask on")
	}
	defer tty.Close()
	in := bufio.NewReader(tty)
	for _, p := range paths {
		if err := s.Show(tty, p); err != nil {
			return err
		}
		fmt.Fprintf(tty, "Take over %s? It can run code later. Type yes: ", quoted(p))
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) != "yes" {
			return fmt.Errorf("%s was not accepted, and so nothing was", quoted(p))
		}
	}
	return nil
}

func newChangesDiscard(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "discard ID...", Short: "Delete changes that nobody wants", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sh, err := shelf()
			if err != nil {
				return err
			}
			for _, id := range args {
				e, err := sh.Open(id)
				if err != nil { // broken, or none: the first has no hash, the second nothing to delete
					e = &changes.Entry{ID: id}
				}
				if _, err := a.record(cmd.Context(), cmd.ErrOrStderr(), e, "discard", admin.Layer{}); err != nil {
					return err
				}
				if err := sh.Discard(id); err != nil {
					return err
				}
				fmt.Fprintf(out(cmd), "discarded %s\n", id)
			}
			return nil
		},
	}
}

// quoted writes a name so that it cannot be taken for anything else.
func quoted(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return filepath.Clean(name)
}
