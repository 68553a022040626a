package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options is what the command line says.
type options struct {
	only         []string
	list         bool
	allowMissing bool
	noInstall    bool
	short        bool
	verbose      bool
	// fuzz is the time for each fuzz target; zero leaves fuzzing out.
	fuzz time.Duration
}

const (
	// fuzzTime is how long --fuzz runs each target.
	fuzzTime = 30 * time.Second
	// fuzzTimeCI is long enough to run every seed and find what is easy to
	// find, and short enough for every push.
	fuzzTimeCI = 5 * time.Second
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code: 0 all in order, 1
// something failed or is missing, 2 the command line is wrong.
func run(args []string, stdout, stderr io.Writer) int {
	opt, err := parse(args, stderr, os.Getenv("CI") == "true")
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, orphaned := context.WithCancel(ctx)
	defer orphaned()
	go watchParent(ctx, orphaned)

	w, err := newWork(ctx, opt, newScreen(stdout))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	steps, err := selectSteps(allSteps(w), opt)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	w.needs = needsOf(allNeeds(), steps, w.root)
	if opt.list {
		printList(stdout, w, steps)
		return 0
	}
	started := time.Now()
	w.prepare(ctx)
	results := schedule(ctx, w, steps)
	w.screen.clear()
	ok := printSummary(stdout, w, results, time.Since(started))
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "interrupted")
		return 1
	}
	if !ok {
		return 1
	}
	return 0
}

// parse reads the command line. In CI a short run of every fuzz target is part
// of the run; elsewhere fuzzing is asked for.
func parse(args []string, stderr io.Writer, ci bool) (options, error) {
	var (
		opt  options
		only string
		fuzz bool
	)
	flags := flag.NewFlagSet("all", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&only, "only", "", "run only these `steps` (comma-separated; a name also selects what is under it)")
	flags.BoolVar(&opt.list, "list", false, "list the steps and what they need, and run nothing")
	flags.BoolVar(&opt.allowMissing, "allow-missing", false, "do not fail because something the tests need is missing")
	flags.BoolVar(&opt.noInstall, "no-install", false, "install nothing")
	flags.BoolVar(&opt.short, "short", false, "a quick look: go test -short, no race detector, no fuzzing, no end-to-end suites")
	flags.BoolVar(&opt.verbose, "v", false, "print every test")
	flags.BoolVar(&fuzz, "fuzz", false, fmt.Sprintf("run each fuzz target for %v", fuzzTime))
	flags.DurationVar(&opt.fuzz, "fuzztime", 0, fmt.Sprintf("run each fuzz target for this `time` (in CI %v unless given)", fuzzTimeCI))
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q; steps are chosen with --only", flags.Arg(0))
	}
	for name := range strings.SplitSeq(only, ",") {
		if name = strings.TrimSpace(name); name != "" {
			opt.only = append(opt.only, name)
		}
	}
	if opt.fuzz == 0 {
		switch {
		case fuzz || slices.Contains(opt.only, "fuzz"):
			opt.fuzz = fuzzTime
		case ci && !opt.short:
			opt.fuzz = fuzzTimeCI
		}
	}
	return opt, nil
}

// work is what all steps share.
type work struct {
	opt    options
	screen *screen
	// root is the folder of go.mod, cache is where tools are kept.
	root, cache string
	packages    []pkg
	needs       []need
	// missing maps the name of what is not there to the reason.
	missing map[string]string
}

// newWork finds the module and lists its packages.
func newWork(ctx context.Context, opt options, s *screen) (*work, error) {
	mod, err := output(ctx, "", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	if mod = strings.TrimSpace(mod); filepath.Base(mod) != "go.mod" {
		return nil, errors.New("run this inside the repository: no go.mod was found")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	w := &work{
		opt:     opt,
		screen:  s,
		root:    filepath.Dir(mod),
		cache:   filepath.Join(cache, "gatehouse-test"),
		missing: map[string]string{},
	}
	if w.packages, err = listPackages(ctx, w.root); err != nil {
		return nil, err
	}
	return w, nil
}

// selectSteps applies --only and --short, and leaves out what must be asked for.
func selectSteps(all []step, opt options) ([]step, error) {
	if len(opt.only) == 0 {
		return slices.DeleteFunc(all, func(s step) bool { return s.asked && !opt.list || opt.short && s.long }), nil
	}
	var chosen []step
	for _, name := range opt.only {
		n := len(chosen)
		for _, s := range all {
			if s.name == name || strings.HasPrefix(s.name, name+"/") {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == n {
			return nil, fmt.Errorf("there is no step %q; --list names them", name)
		}
	}
	return chosen, nil
}
