package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stream is what go test -json prints: a package with subtests, one of them
// with a slash in its name, one that fails and one that is skipped; a package
// that does not build; one without tests; one whose test panics.
const stream = `
{"Action":"start","Package":"example/a"}
{"Action":"run","Package":"example/a","Test":"TestTable"}
{"Action":"run","Package":"example/a","Test":"TestTable/one"}
{"Action":"output","Package":"example/a","Test":"TestTable/one","Output":"one is quiet\n"}
{"Action":"output","Package":"example/a","Test":"TestTable/two/b","Output":"=== RUN   TestTable/two/b\n"}
{"Action":"run","Package":"example/a","Test":"TestTable/two/b"}
{"Action":"output","Package":"example/a","Test":"TestTable/two/b","Output":"    a_test.go:7: got 1, want 2\n"}
{"Action":"pass","Package":"example/a","Test":"TestTable/one"}
{"Action":"fail","Package":"example/a","Test":"TestTable/two/b"}
{"Action":"fail","Package":"example/a","Test":"TestTable"}
{"Action":"run","Package":"example/a","Test":"TestNeedy"}
{"Action":"output","Package":"example/a","Test":"TestNeedy","Output":"    a_test.go:9: initdb is not installed\n"}
{"Action":"skip","Package":"example/a","Test":"TestNeedy"}
{"Action":"run","Package":"example/a","Test":"TestPlain"}
{"Action":"pass","Package":"example/a","Test":"TestPlain"}
{"Action":"fail","Package":"example/a","Elapsed":1.5}
{"ImportPath":"example/b [example/b.test]","Action":"build-output","Output":"b.go:3:1: syntax error\n"}
{"ImportPath":"example/b [example/b.test]","Action":"build-fail"}
{"Action":"start","Package":"example/b"}
{"Action":"output","Package":"example/b","Output":"FAIL\texample/b [build failed]\n"}
{"Action":"fail","Package":"example/b","FailedBuild":"example/b [example/b.test]"}
{"Action":"output","Package":"example/c","Output":"?   \texample/c\t[no test files]\n"}
{"Action":"skip","Package":"example/c"}
{"Action":"run","Package":"example/d","Test":"TestPanics"}
{"Action":"output","Package":"example/d","Test":"TestPanics","Output":"panic: out of cheese\n"}
{"Action":"fail","Package":"example/d"}
not an event
`

func TestReadsGoTest(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := &testReader{step: "test", screen: newScreen(&out), packages: map[string]*testPackage{}}
	r.read(strings.NewReader(strings.TrimPrefix(stream, "\n")))

	want := tally{pass: 2, fail: 3, skip: 1, reasons: map[string]int{"initdb is not installed": 1}}
	if diff := cmp.Diff(want, r.total, cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
	if r.untested != 1 {
		t.Errorf("untested = %d, want 1", r.untested)
	}
	for _, want := range []string{
		"FAIL  example/a  2 passed, 1 failed, 1 skipped  1.5s\n", "got 1, want 2",
		"FAIL  example/b", "b.go:3:1: syntax error", "panic: out of cheese", "not an event",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "one is quiet") || strings.Contains(out.String(), "=== RUN") {
		t.Errorf("a test that passed was printed:\n%s", &out)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args string
		ci   bool
		want options
		err  string
	}{
		{args: "", want: options{}},
		{args: "", ci: true, want: options{fuzz: fuzzTimeCI}},
		{args: "--short", ci: true, want: options{short: true}},
		{args: "--fuzz", want: options{fuzz: fuzzTime}},
		{args: "--fuzztime 2s", ci: true, want: options{fuzz: 2 * time.Second}},
		{args: "--only vet,test --no-install --allow-missing -v", want: options{only: []string{"vet", "test"}, noInstall: true, allowMissing: true, verbose: true}},
		{args: "--only fuzz", want: options{only: []string{"fuzz"}, fuzz: fuzzTime}},
		{args: "vet", err: "--only"},
		{args: "--what", err: "not defined"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got, err := parse(strings.Fields(tt.args), io.Discard, tt.ci)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := parse([]string{"-h"}, io.Discard, false); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestSelectSteps(t *testing.T) {
	t.Parallel()
	all := func() []step {
		return []step{{name: "vet"}, {name: "race", long: true}, {name: "e2e/a", long: true}, {name: "e2e/b", long: true}}
	}
	tests := []struct {
		opt  options
		want string
	}{
		{options{}, "vet race e2e/a e2e/b"},
		{options{short: true}, "vet"},
		{options{only: []string{"e2e"}}, "e2e/a e2e/b"},
		{options{only: []string{"e2e/b", "vet"}}, "e2e/b vet"},
		{options{only: []string{"e2e/"}}, "there is no step"},
		{options{only: []string{"ve"}}, "there is no step"},
	}
	for _, tt := range tests {
		var got []string
		steps, err := selectSteps(all(), tt.opt)
		if err != nil {
			got = []string{err.Error()}
		}
		for _, s := range steps {
			got = append(got, s.name)
		}
		if s := strings.Join(got, " "); !strings.HasPrefix(s, tt.want) {
			t.Errorf("%+v selects %q, want %q", tt.opt, s, tt.want)
		}
	}
}

// TestSchedule checks that nothing starts before what it comes after, that
// nothing runs beside a step that wants to be alone, and that a step whose need
// is missing is skipped with that reason.
func TestSchedule(t *testing.T) {
	t.Parallel()
	var (
		mu      sync.Mutex
		running []string
		ended   []string
	)
	mk := func(s step) step {
		s.run = func(context.Context, *work) outcome {
			mu.Lock()
			running = append(running, s.name)
			for _, a := range s.after {
				if a != "not chosen" && !slices.Contains(ended, a) {
					t.Errorf("%s started before %s had ended", s.name, a)
				}
			}
			if n := len(running); n > slots() || (n > 1 && s.alone) || (n > 1 && slices.Contains(running, "alone")) {
				t.Errorf("side by side: %v", running)
			}
			mu.Unlock()
			runtime.Gosched()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running = slices.DeleteFunc(running, func(r string) bool { return r == s.name })
			ended = append(ended, s.name)
			return outcome{tally: tally{pass: 1}}
		}
		return s
	}
	steps := []step{
		mk(step{name: "a"}), mk(step{name: "b"}), mk(step{name: "c", after: []string{"a", "not chosen"}}),
		mk(step{name: "alone", alone: true}), mk(step{name: "d", after: []string{"c", "b"}}),
		mk(step{name: "needy", needs: []string{"gcc"}}),
	}
	var out strings.Builder
	w := &work{screen: newScreen(&out), missing: map[string]string{"gcc": "nobody installed it"}}
	results := schedule(t.Context(), w, steps)
	for i, r := range results[:5] {
		if r.step != steps[i].name || r.pass != 1 || r.skipped != "" {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	if r := results[5]; r.skipped != "gcc is missing" {
		t.Errorf("needy: %+v", r)
	}

	out.Reset()
	if printSummary(&out, w, results, time.Second) {
		t.Error("a run with something missing passes")
	}
	w.opt.allowMissing = true
	out.Reset()
	if !printSummary(&out, w, results, time.Second) {
		t.Error("a run with something missing fails though it is allowed")
	}
	if !strings.HasSuffix(out.String(), "\n5 passed, 0 failed, 1 skipped\n") || !strings.Contains(out.String(), "nobody installed it") {
		t.Errorf("summary:\n%s", &out)
	}
	results[0].failed = true
	if printSummary(&out, w, results, time.Second) {
		t.Error("a run with a failed step passes")
	}
}

func TestBrokenBuildSkipsWhatBuilds(t *testing.T) {
	t.Parallel()
	steps := []step{
		{name: "build", run: func(context.Context, *work) outcome { return verdict(errors.New("no"), "") }},
		{name: "test", after: []string{"build"}, run: func(context.Context, *work) outcome { return outcome{tally: tally{pass: 1}} }},
		{name: "race", after: []string{"build"}, builds: true, run: func(context.Context, *work) outcome { t.Error("race ran"); return outcome{} }},
	}
	w := &work{screen: newScreen(io.Discard), missing: map[string]string{}}
	results := schedule(t.Context(), w, steps)
	if !results[0].failed || results[1].pass != 1 || results[2].skipped != "the build failed" {
		t.Errorf("%+v", results)
	}
}

func TestInterruptSkipsTheRest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	steps := []step{
		{name: "a", run: func(context.Context, *work) outcome { cancel(); return outcome{} }},
		{name: "b", after: []string{"a"}, run: func(context.Context, *work) outcome { t.Error("b ran"); return outcome{} }},
	}
	w := &work{screen: newScreen(io.Discard), missing: map[string]string{}}
	if r := schedule(ctx, w, steps); r[1].skipped != "interrupted" {
		t.Errorf("b: %+v", r[1])
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	root, bin := t.TempDir(), t.TempDir()
	program := filepath.Join(bin, "initdb")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	w := &work{root: root, cache: t.TempDir(), screen: newScreen(io.Discard), missing: map[string]string{}, opt: options{noInstall: true}}
	there := need{name: "there", programs: []string{"no-such-program", filepath.Join(bin, "init*")}, deb: "x", users: []string{"internal/store"}}
	steps := []step{{name: "test", tests: true}, {name: "race", tests: true, needs: []string{"gcc"}}}
	all := []need{there, {name: "gcc"}, {name: "staticcheck"}}
	if n := needsOf(all, steps, root); len(n) != 1 || n[0].name != "gcc" {
		t.Errorf("before there is a user: %v", n)
	}
	if err := os.MkdirAll(filepath.Join(root, "internal", "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	if n := needsOf(all, steps, root); len(n) != 2 || n[0].name != "there" {
		t.Errorf("once there is one: %v", n)
	}
	if n := needsOf(all, []step{{name: "vet"}}, root); len(n) != 0 {
		t.Errorf("vet alone: %v", n)
	}
	if there.find(w) != program {
		t.Errorf("found %q", there.find(w))
	}
	w.needs = []need{
		there,
		{name: "deb", programs: []string{"no-such-program"}, deb: "x"},
		{name: "tool", tool: "example/cmd/tool@v1"},
		{name: "npm", npm: []string{"x@1"}},
	}
	w.prepare(t.Context())
	for _, name := range []string{"deb", "tool", "npm"} {
		if !strings.Contains(w.missing[name], "--no-install") {
			t.Errorf("%s: %q", name, w.missing[name])
		}
	}
	if len(w.missing) != 3 {
		t.Errorf("missing: %v", w.missing)
	}
}

func TestCountFindings(t *testing.T) {
	t.Parallel()
	const said = `{"config":{}} {"finding":{"osv":"GO-1","trace":[{"module":"m"}]}}
		{"finding":{"osv":"GO-1","trace":[{"module":"m","function":"Parse"},{"function":"main"}]}}
		{"finding":{"osv":"GO-1","trace":[{"function":"Render"}]}} {"finding":{"osv":"GO-2","trace":[]}}`
	if n, err := countFindings(strings.NewReader(said)); n != 1 || err != nil {
		t.Errorf("%d, %v; want 1", n, err)
	}
	if _, err := countFindings(strings.NewReader("govulncheck: no")); err == nil {
		t.Error("what is not JSON counts as no finding")
	}
	if day := dayOf(vulnDB); len(day) != len(time.DateOnly) {
		t.Errorf("the day of the pinned database is %q", day)
	}
}

func TestFuzzTargets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x_test.go")
	source := "package x\n\nfunc FuzzParse(f *testing.F) {}\n\nfunc FuzzNot(t *testing.T) {}\n\n// func FuzzOld(f *testing.F) {}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := fuzzTargets(pkg{tests: []string{file}})
	if diff := cmp.Diff([]string{"FuzzParse"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
