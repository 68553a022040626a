package policy

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// TestResult is what became of one test of a policy file.
type TestResult struct {
	Name string     `json:"name"`
	Want call.Level `json:"want"`
	// Got is the level the call was decided to, Why the reasons for it.
	Got call.Level `json:"got"`
	Why string     `json:"why"`
	// Problem says why the call could not be decided on; "" if it was.
	Problem string `json:"problem,omitzero"`
	// Source is the test's place, as file:line.
	Source string `json:"source"`
}

// OK reports whether the call was decided as the test wants it.
func (r TestResult) OK() bool { return r.Problem == "" && r.Got == r.Want }

// Analyse finds out what a command line does. The analysis of commands is
// above this package, so whoever runs tests brings it along.
type Analyse func(command string) (*facts.Facts, error)

// RunTests decides the calls in the [[tests]] of a file and compares. Where a
// test names a command and neither needs nor class, the command is analysed.
func (s *Snapshot) RunTests(f *File, analyse Analyse) []TestResult {
	results := make([]TestResult, len(f.Tests))
	for i := range f.Tests {
		t := &f.Tests[i]
		results[i] = TestResult{Name: t.Name, Want: t.Level, Source: f.source(join("tests", strconv.Itoa(i)))}
		in, err := t.input(s.home, analyse)
		if err != nil {
			results[i].Problem = err.Error()
			continue
		}
		d := s.Decide(in, nil)
		results[i].Got, results[i].Why = d.Level, d.Why()
	}
	return results
}

var errNoAnalysis = errors.New("the command cannot be analysed here; write down its needs and class")

// input makes the call that a test describes.
func (t *Test) input(home string, analyse Analyse) (*Input, error) {
	c := &call.Call{
		Kind: call.External, Surface: "test", Operation: t.Operation, Dir: checkWorkspace,
		Principal: call.Principal{Agent: "test", Session: "test"},
	}
	if c.Operation == "" {
		c.Operation = "Bash"
	}
	if _, ok := call.LookupOperation(c.Operation); ok {
		c.Kind = call.Native
	}
	if err := c.Normalize(); err != nil {
		return nil, err
	}
	f := &facts.Facts{Workspace: checkWorkspace, Class: t.Class, Words: t.Name, World: sha256.Sum256(nil)}
	if t.Command != "" {
		f.Commands = []string{t.Command}
	}
	for _, need := range t.Needs {
		n := call.ParseNeed(need)
		switch {
		case strings.HasPrefix(n.Scope, "./"):
			n.Scope, n.Inside = checkWorkspace+n.Scope[1:], true
		case strings.HasPrefix(n.Scope, "~/"):
			n.Scope = home + n.Scope[1:]
		}
		f.Needs = append(f.Needs, n)
	}
	if t.Command != "" && t.Class == "" && len(t.Needs) == 0 {
		if analyse == nil {
			return nil, errNoAnalysis
		}
		analysed, err := analyse(t.Command)
		if err != nil {
			return nil, err
		}
		f = analysed
	}
	return &Input{Call: c, Facts: f, Digest: c.Digest()}, nil
}
