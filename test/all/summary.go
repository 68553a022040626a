package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// printSummary prints the table of the steps, what was left out and why, and
// the closing line. It reports whether all is in order.
func printSummary(out io.Writer, w *work, results []result, took time.Duration) bool {
	var total tally
	ok := true
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "step\tresult\tpassed\tfailed\tskipped\ttime\t")
	for _, r := range results {
		word, note := "ok", r.note
		switch {
		case r.skipped != "":
			word, note = "skipped", r.skipped
			r.skip++
		case r.failed:
			word, ok = "FAILED", false
		}
		total.add(r.tally)
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", r.step, word, r.pass, r.fail, r.skip, seconds(r.took), note)
	}
	table.Flush()
	if len(total.reasons) > 0 {
		fmt.Fprintln(out, "\nskipped tests:")
		for _, reason := range slices.Sorted(maps.Keys(total.reasons)) {
			fmt.Fprintf(out, "  %4d  %s\n", total.reasons[reason], reason)
		}
	}
	if len(w.missing) > 0 {
		fmt.Fprintln(out, "\nmissing:")
		for _, name := range slices.Sorted(maps.Keys(w.missing)) {
			fmt.Fprintf(out, "  %s: %s\n", name, w.missing[name])
		}
		if !w.opt.allowMissing {
			fmt.Fprintln(out, "  the run fails because of that; --allow-missing lets it pass")
			ok = false
		}
	}
	fmt.Fprintf(out, "\n%s in all\n", seconds(took))
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", total.pass, total.fail, total.skip)
	return ok
}

// printList prints the steps and what the tests need.
func printList(out io.Writer, w *work, steps []step) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		about := s.about
		if len(s.needs) > 0 {
			about += " (needs " + strings.Join(s.needs, ", ") + ")"
		}
		fmt.Fprintf(table, "%s\t%s\n", s.name, about)
	}
	fmt.Fprintln(table)
	for _, n := range w.needs {
		where := n.find(w)
		if where == "" {
			where = "missing"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", n.name, where, n.why)
	}
	table.Flush()
}
