package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

func main() {
	at := flag.String("sessions", "test/replay/testdata", "a folder of sessions (*.jsonl), or one")
	dir := flag.String("dir", "", "the working directory of the sessions (default: read off each)")
	profile := flag.String("profile", "supervised", "the profile to play under")
	plain := flag.Bool("no-rewrite", false, "the host does not take rewritten input, so that nothing runs confined")
	verbose := flag.Bool("v", false, "print every call with its answer")
	asks := flag.Bool("asks", false, "print the calls that a person was asked about")
	flag.Parse()
	if err := run(os.Stdout, *at, *dir, *profile, !*plain, *verbose, *asks); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, at, dir, profile string, rewrites, verbose, asks bool) error {
	sessions, err := loadAll(at, dir)
	if err != nil {
		return err
	}
	snap, err := compile(profile)
	if err != nil {
		return err
	}
	var all []tally
	for _, s := range sessions {
		outcomes := play(context.Background(), s, snap, rewrites)
		all = append(all, count(s, outcomes))
		if verbose || asks {
			list(w, s, outcomes, verbose)
		}
	}
	report(w, all, rewrites)
	return nil
}

// compile makes the policy: a built-in profile, and limits that a replay at
// many calls per second does not meet.
func compile(profile string) (*policy.Snapshot, error) {
	text := fmt.Sprintf("version = 1\nprofile = %q\n", profile)
	f, err := policy.Parse("replay", []byte(text))
	if err != nil {
		return nil, err
	}
	return policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, policy.Options{Home: "/root"})
}

// tally is what came of one session.
type tally struct {
	name, dir                     string
	calls, auto, granted, prompts int
	denied, wrong                 int
}

func count(s *session, outcomes []outcome) tally {
	t := tally{name: s.name, dir: s.dir, calls: len(outcomes)}
	for i := range outcomes {
		o := &outcomes[i]
		if o.wrong = judge(o); o.wrong != "" {
			t.wrong++
		}
		switch {
		case o.asked != "":
			t.prompts++
		case o.verdict == gate.Denied:
			t.denied++
		case len(o.by) > 0:
			t.granted++
		default:
			t.auto++
		}
	}
	return t
}

func (t *tally) rate() float64 { return 100 * float64(t.prompts) / float64(max(t.calls, 1)) }

// report prints the table.
func report(w io.Writer, all []tally, rewrites bool) {
	host := "takes rewritten input, so that project code runs confined"
	if !rewrites {
		host = "takes no rewritten input: project code is asked about every time"
	}
	fmt.Fprintf(w, "assumed: the host %s; programs are what their names say; the person takes the narrowest session grant offered\n\n", host)
	fmt.Fprintf(w, "%-34s %-28s %6s %6s %8s %7s %7s %8s %6s\n", "session", "workspace", "calls", "auto", "granted", "denied", "prompts", "per 100", "wrong")
	var sum tally
	mean := 0.0
	for _, t := range all {
		fmt.Fprintf(w, "%-34s %-28s %6d %6d %8d %7d %7d %8.1f %6d\n", t.name, t.dir, t.calls, t.auto, t.granted, t.denied, t.prompts, t.rate(), t.wrong)
		sum.calls, sum.auto, sum.granted = sum.calls+t.calls, sum.auto+t.auto, sum.granted+t.granted
		sum.denied, sum.prompts, sum.wrong = sum.denied+t.denied, sum.prompts+t.prompts, sum.wrong+t.wrong
		mean += t.rate() / float64(len(all))
	}
	fmt.Fprintf(w, "%-34s %-28s %6d %6d %8d %7d %7d %8.1f %6d\n", "all calls", "", sum.calls, sum.auto, sum.granted, sum.denied, sum.prompts, sum.rate(), sum.wrong)
	fmt.Fprintf(w, "mean of the sessions' rates: %.1f\n", mean)
}

// list prints calls with their answers.
func list(w io.Writer, s *session, outcomes []outcome, all bool) {
	fmt.Fprintf(w, "== %s (in %s)\n", s.name, s.dir)
	for i := range outcomes {
		o := &outcomes[i]
		if !all && o.asked == "" && o.verdict == gate.Allowed && o.wrong == "" {
			continue
		}
		how := "auto"
		switch {
		case o.asked != "":
			how = "ASKED " + o.asked
		case o.verdict == gate.Denied:
			how = "DENIED"
		case len(o.by) > 0:
			how = "granted: " + o.by[0].Words
		}
		if o.wrong != "" {
			how = "WRONG (" + o.wrong + ") " + how
		}
		class := ""
		if o.facts != nil {
			class = o.facts.Class
		}
		fmt.Fprintf(w, "%3d %-20s %-11s %s\n      %s\n", i+1, o.step.Tool, class, how, short(string(o.step.Input), 150))
		if o.level != call.AutoApprove {
			fmt.Fprintf(w, "      %s: %s\n", o.level, short(o.why, 300))
			if o.facts != nil {
				for _, n := range o.facts.Needs {
					fmt.Fprintf(w, "      needs %s inside=%v\n", n, n.Inside)
				}
			}
		}
	}
}

func short(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
