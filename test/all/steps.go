package main

import (
	"context"
	"path"
	"path/filepath"
	"strings"
)

// step is one thing to run.
type step struct {
	name  string
	about string
	// needs names what must be there; where it is missing the step is skipped.
	needs []string
	// after names the steps that end before this one starts.
	after []string
	// tests steps run tests, which may need more.
	tests bool
	// builds steps are skipped when the build has failed: they would only say
	// so again, and slowly.
	builds bool
	// alone keeps other steps from running beside this one, because it
	// measures time or keeps both cores busy.
	alone bool
	// background lets the other steps have the processor first.
	background bool
	// long steps are left out of a --short run.
	long bool
	// asked steps run only where --only names them.
	asked bool
	run   func(ctx context.Context, w *work) outcome
}

// raced are the packages that hold state or start goroutines, so that a data
// race in them could change what is let through or what is recorded. A folder
// covers what is below it. In package sandbox the escape suite, the Wasm back-end
// and the build of a Go module are left out, by tests that say why.
var raced = []string{
	"internal/admin",
	"internal/api",
	"internal/approval",
	"internal/aql",
	"internal/audit",
	"internal/autonomy",
	"internal/console",
	"internal/daemon",
	"internal/dispatch",
	"internal/gate",
	"internal/hook",
	"internal/inrun",
	"internal/keyring",
	"internal/mcp",
	"internal/observe",
	"internal/rulebook",
	"internal/session",
	"internal/store",
	"sandbox",
	"tool",
}

// allSteps lists the steps in the order in which they start.
func allSteps(w *work) []step {
	steps := []step{
		{name: "gofmt", about: "every Go file is formatted", run: checkFormat},
		{name: "vet", about: "go vet", run: vet},
		{name: "build", about: "every command builds without cgo", run: build},
		{
			name: "test", about: "the tests of all packages", tests: true, after: []string{"vet", "build"},
			run: func(ctx context.Context, w *work) outcome {
				return goTest(ctx, w, "test", nil, names(w.unit()))
			},
		},
		{
			name: "cross", about: "every package builds for the other systems", after: []string{"build"}, builds: true, background: true, run: cross,
		},
		{
			name: "staticcheck", about: "static analysis", needs: []string{"staticcheck"},
			after: []string{"build"}, builds: true, background: true, run: staticcheck,
		},
		{
			name: "govulncheck", about: "known vulnerabilities in what is linked, and that the scan would find one",
			needs: []string{"govulncheck"}, after: []string{"build"}, builds: true, background: true, run: vulnerabilities,
		},
		{
			name: "golangci", about: "golangci-lint with the checker of tools as its plugin; only where --only names it, because it builds the linter, which takes minutes the first time",
			after: []string{"build", "test"}, builds: true, background: true, long: true, asked: true, run: golangci,
		},
		{
			name: "race", about: "the race detector on the packages that hold state", needs: []string{"gcc"},
			tests: true, after: []string{"build", "test"}, builds: true, long: true,
			run: func(ctx context.Context, w *work) outcome {
				// What is long by its size alone shows no more races than what is short.
				return goTest(ctx, w, "race", []string{"-race", "-short"}, names(w.under(raced)))
			},
		},
	}
	for _, p := range w.packages {
		if !p.endToEnd() {
			continue
		}
		steps = append(steps, step{
			name: "e2e/" + strings.TrimPrefix(p.dir, "test/"), about: "end to end: " + p.dir,
			tests: true, after: []string{"build", "test"}, builds: true, alone: true, long: true,
			run: func(ctx context.Context, w *work) outcome {
				return goTest(ctx, w, "e2e/"+strings.TrimPrefix(p.dir, "test/"), nil, []string{p.path})
			},
		})
	}
	if w.opt.fuzz > 0 {
		steps = append(steps, step{
			name: "fuzz", about: "each fuzz target for " + w.opt.fuzz.String(),
			after: []string{"build", "test"}, builds: true, alone: true, long: true, run: fuzz,
		})
	}
	return steps
}

// pkg is one package of the module.
type pkg struct {
	path string // import path
	dir  string // folder, relative to the module, with slashes
	main bool
	// tests are its test files.
	tests []string
}

// endToEnd reports whether the package is a suite of its own: the folders
// under test, but for this program.
func (p pkg) endToEnd() bool {
	return strings.HasPrefix(p.dir, "test/") && p.dir != "test/all" && len(p.tests) > 0
}

// unit lists the packages that the step test covers.
func (w *work) unit() []pkg {
	var longest, others []pkg
	for _, p := range w.packages {
		switch {
		case p.endToEnd():
		case p.dir == "sandbox": // much of its time is waiting, so it starts first and the others run beside it
			longest = append(longest, p)
		default:
			others = append(others, p)
		}
	}
	return append(longest, others...)
}

// under lists the packages with tests in or below the folders.
func (w *work) under(folders []string) []pkg {
	var out []pkg
	for _, p := range w.packages {
		for _, f := range folders {
			if len(p.tests) > 0 && (p.dir == f || strings.HasPrefix(p.dir, f+"/")) {
				out = append(out, p)
			}
		}
	}
	return out
}

func names(ps []pkg) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.path)
	}
	return out
}

// listPackages asks the go command, without asking that everything compiles:
// that is for the steps to find out.
func listPackages(ctx context.Context, root string) ([]pkg, error) {
	const format = `{{.ImportPath}}|{{.Dir}}|{{.Name}}|{{join .TestGoFiles ","}},{{join .XTestGoFiles ","}}`
	text, err := output(ctx, root, "go", "list", "-e", "-f", format, "./...")
	if err != nil {
		return nil, err
	}
	var ps []pkg
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 || f[1] == "" {
			continue
		}
		dir, err := filepath.Rel(root, f[1])
		if err != nil {
			return nil, err
		}
		p := pkg{path: f[0], dir: path.Clean(filepath.ToSlash(dir)), main: f[2] == "main"}
		for name := range strings.SplitSeq(f[3], ",") {
			if name != "" {
				p.tests = append(p.tests, filepath.Join(f[1], name))
			}
		}
		ps = append(ps, p)
	}
	return ps, nil
}
