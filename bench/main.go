package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON instead of the table")
	strict := flags.Bool("strict", false, "fail when a bar is missed or a figure could not be measured")
	only := flags.String("only", "", "measure only figures whose name or package contains this `text`")
	benchtime := flags.String("benchtime", "", "`time` or count for each benchmark, as for go test")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	chosen := choose(figures, *only)
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "no figure contains %q\n", *only)
		return 2
	}
	rows := judge(chosen, measure(ctx, chosen, *benchtime, stderr))
	if *asJSON {
		if err := printJSON(stdout, rows); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
	} else {
		printTable(stdout, rows)
	}
	if *strict && missed(rows) || ctx.Err() != nil {
		return 1
	}
	return 0
}

// choose filters the figures.
func choose(all []figure, text string) []figure {
	var out []figure
	for _, f := range all {
		if strings.Contains(f.name, text) || strings.Contains(f.pkg, text) {
			out = append(out, f)
		}
	}
	return out
}

// measure runs what the figures need, each package and the daemon once. What
// goes wrong is told and leaves its figures without a measurement.
func measure(ctx context.Context, chosen []figure, benchtime string, stderr io.Writer) map[string]measured {
	out := map[string]measured{}
	for _, f := range chosen {
		if _, done := out[f.pkg]; done || ctx.Err() != nil {
			continue
		}
		var m measured
		switch f.pkg {
		case "":
			fmt.Fprintln(stderr, "measuring the daemon")
			m = measureDaemon(ctx)
		case hookFolder:
			fmt.Fprintln(stderr, "measuring the hook")
			m = measureHook(ctx)
		default:
			fmt.Fprintln(stderr, "measuring", f.pkg)
			m = measurePackage(ctx, f.pkg, benches(chosen, f.pkg), benchtime)
		}
		if m.problem != "" {
			fmt.Fprintln(stderr, m.problem)
		}
		out[f.pkg] = m
	}
	return out
}

// benches lists the top-level benchmarks that the figures of a package use.
func benches(chosen []figure, pkg string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, f := range chosen {
		if f.pkg != pkg {
			continue
		}
		for _, m := range []metric{f.value, f.base, f.ratio} {
			name, _, _ := strings.Cut(m.bench, "/")
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}
