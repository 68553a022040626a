package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// testTimeout ends a package whose tests hang.
const testTimeout = 40 * time.Minute

// goTest runs go test on the packages and reports each of them as it ends.
func goTest(ctx context.Context, w *work, name string, flags, packages []string) outcome {
	if len(packages) == 0 {
		return outcome{skipped: "no such package has tests yet"}
	}
	// vet has a step of its own.
	args := []string{"go", "test", "-json", "-vet=off", "-timeout", testTimeout.String()}
	if w.opt.short {
		args = append(args, "-short")
	}
	args = append(append(args, flags...), packages...)
	env := []string{"CGO_ENABLED=0"}
	if slices.Contains(flags, "-race") {
		env[0] = "CGO_ENABLED=1"
	}
	if len(w.missing) == 0 {
		env = append(env, needtest.Complete+"=1") // then a test that misses something fails
	}
	reader, writer := io.Pipe()
	var errs strings.Builder
	ended := make(chan error, 1)
	go func() {
		err := command{dir: w.root, env: env, args: args, out: writer, err: &errs}.run(ctx)
		writer.Close()
		ended <- err
	}()
	t := &testReader{step: name, screen: w.screen, verbose: w.opt.verbose, packages: map[string]*testPackage{}}
	t.read(reader)
	err := <-ended
	o := outcome{tally: t.total, failed: t.total.fail > 0}
	if err != nil && !o.failed {
		o.failed, o.detail = true, errs.String()+err.Error()+"\n"
		o.fail++
	}
	if t.untested > 0 {
		o.note = fmt.Sprintf("%d packages without tests", t.untested)
	}
	return o
}

// tally counts tests.
type tally struct {
	pass, fail, skip int
	// reasons are those of skipped tests, with how many gave each.
	reasons map[string]int
}

func (t *tally) add(u tally) {
	t.pass += u.pass
	t.fail += u.fail
	t.skip += u.skip
	for r, n := range u.reasons {
		if t.reasons == nil {
			t.reasons = map[string]int{}
		}
		t.reasons[r] += n
	}
}

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output, where Package is not set
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// testReader turns events into lines on the screen and a tally.
type testReader struct {
	step     string
	screen   *screen
	verbose  bool
	packages map[string]*testPackage
	// builds holds what the compiler said, by the name of the build.
	builds   map[string]*strings.Builder
	total    tally
	untested int
}

// testPackage is a package whose tests run.
type testPackage struct {
	tests  map[string]*test
	order  []string
	output strings.Builder // what belongs to no test
}

type test struct {
	action string
	parent bool // has subtests, which are counted instead
	output strings.Builder
}

// read reads events until the stream ends. Lines that are none (a tool that
// prints past test2json) are shown as they are.
func (t *testReader) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				t.event(e)
			} else {
				t.screen.text(string(line))
			}
		}
		if err != nil {
			return
		}
	}
}

func (t *testReader) event(e event) {
	if e.Action == "build-output" || e.Action == "build-fail" {
		t.build(e)
		return
	}
	p := t.packages[e.Package]
	if p == nil {
		p = &testPackage{tests: map[string]*test{}}
		t.packages[e.Package] = p
	}
	switch {
	case e.Test == "" && e.Action == "output":
		p.output.WriteString(e.Output)
	case e.Test == "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
		t.endPackage(p, e)
		delete(t.packages, e.Package)
	case e.Test != "":
		t.endTest(p, e)
	case e.Action == "start":
		t.screen.busy(t.step, short(e.Package))
	}
}

func (t *testReader) build(e event) {
	if t.builds == nil {
		t.builds = map[string]*strings.Builder{}
	}
	if t.builds[e.ImportPath] == nil {
		t.builds[e.ImportPath] = &strings.Builder{}
	}
	t.builds[e.ImportPath].WriteString(e.Output)
}

// endTest takes in an event of one test.
func (t *testReader) endTest(p *testPackage, e event) {
	x := p.tests[e.Test]
	if x == nil {
		x = &test{}
		p.tests[e.Test] = x
		p.order = append(p.order, e.Test)
		if up := p.above(e.Test); up != nil {
			up.parent = true
		}
	}
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			x.output.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		x.action = e.Action
		if t.verbose {
			t.screen.line(t.step, e.Action, short(e.Package)+" "+e.Test, time.Duration(e.Elapsed*float64(time.Second)))
		}
	}
}

// above returns the test that the named one is a subtest of, or nil. A
// subtest's own name may hold slashes.
func (p *testPackage) above(name string) *test {
	for {
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return nil
		}
		name = name[:i]
		if x := p.tests[name]; x != nil {
			return x
		}
	}
}

// endPackage counts a package's tests, prints its line and, where something
// failed, everything that the failed tests said.
func (t *testReader) endPackage(p *testPackage, e event) {
	c, failures := p.count()
	if e.Action == "fail" && c.fail == 0 {
		// It did not build, or died outside a test.
		c.fail = 1
		failures = p.output.String()
	}
	if b := t.builds[e.FailedBuild]; b != nil {
		// What is broken in one package breaks many; once is enough.
		failures = b.String() + failures
		b.Reset()
		b.WriteString("(" + short(e.FailedBuild) + " does not build, see above)\n")
	}
	t.total.add(c)
	t.screen.idle(t.step, short(e.Package))
	if len(p.tests) == 0 && e.Action != "fail" {
		t.untested++
		return
	}
	text := fmt.Sprintf("%s  %s", short(e.Package), c)
	if strings.Contains(p.output.String(), "(cached)") {
		text += " (cached)"
	}
	t.screen.line(t.step, e.Action, text, time.Duration(e.Elapsed*float64(time.Second)))
	if e.Action == "fail" {
		t.screen.text(failures)
	}
}

// count counts the tests without subtests. A test that failed though none of
// its subtests did counts as well, and so does one that never ended, which is
// where a panic or a time-out struck.
func (p *testPackage) count() (tally, string) {
	var (
		c        tally
		failures strings.Builder
	)
	blamed := map[*test]bool{}
	for _, name := range slices.Backward(p.order) {
		x := p.tests[name]
		failed := x.action == "fail" || x.action == ""
		if failed {
			if up := p.above(name); up != nil {
				blamed[up] = true
			}
		}
		switch {
		case x.parent && (!failed || blamed[x]):
		case failed:
			c.fail++
		case x.action == "skip":
			c.skip++
			c.add(tally{reasons: map[string]int{reason(x.output.String()): 1}})
		default:
			c.pass++
		}
	}
	for _, name := range p.order {
		if x := p.tests[name]; x.action == "fail" || x.action == "" {
			failures.WriteString(x.output.String())
		}
	}
	return c, failures.String() + p.panicked()
}

// panicked returns what the package printed outside its tests, where that is
// more than the closing line.
func (p *testPackage) panicked() string {
	s := p.output.String()
	if strings.Contains(s, "panic:") || strings.Contains(s, "fatal error:") || strings.Contains(s, "DATA RACE") {
		return s
	}
	return ""
}

func (t tally) String() string {
	parts := []string{fmt.Sprintf("%d passed", t.pass)}
	if t.fail > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.fail))
	}
	if t.skip > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", t.skip))
	}
	return strings.Join(parts, ", ")
}

var logged = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// reason finds why a test was skipped: the last thing it logged.
func reason(output string) string {
	m := logged.FindAllStringSubmatch(output, -1)
	if len(m) == 0 {
		return "no reason given"
	}
	return strings.TrimSpace(m[len(m)-1][1])
}

// short drops the module's name from an import path.
func short(path string) string {
	const module = "github.com/seed-3ebc6b8a/gatehouse"
	if path == module {
		return "(root)"
	}
	return strings.TrimPrefix(path, module+"/")
}
