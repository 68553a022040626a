//go:build linux

package sandbox_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

var update = flag.Bool("update", false, "rewrite generated documentation")

const docsFile = "../docs/sandbox.md"

// TestDocumentedLimits generates the table of what each back-end cannot hold
// from the attempts that are known to succeed under it, and from the guarantees
// its probe does not reach. TestEscapes fails when that list is wrong in either
// direction, so the table is neither better nor worse than the truth.
func TestDocumentedLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("| attempt | bubblewrap | landlock | firejail | podman | docker |\n| --- | --- | --- | --- | --- | --- |\n")
	held, mechanisms := 0, map[string]bool{}
	list := attempts()
	slices.SortFunc(list, func(x, y attempt) int { return strings.Compare(x.name, y.name) })
	for _, a := range list {
		if len(a.leaks) == 0 {
			held++
			mechanisms[a.how] = true
			continue
		}
		mark := func(x sandbox.Backend) string {
			if slices.Contains(a.leaks, x) {
				return "**not held**"
			}
			return "held"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", a.name,
			mark(sandbox.Bubblewrap), mark(sandbox.Landlock), mark(sandbox.Firejail), mark(sandbox.Podman), mark(sandbox.Docker))
	}
	// Machines differ in what they have to be attacked, so not to the last one.
	fmt.Fprintf(&b, "\nHeld by all wherever they apply: more than %d further attempts over %d mechanisms.\n\n", held/50*50, len(mechanisms))
	b.WriteString("| guarantee | bubblewrap | landlock |\n| --- | --- | --- |\n")
	s := sandbox.Supported()
	for _, name := range sandbox.AllGuarantees.Names() {
		g, _ := sandbox.ParseGuarantee(name)
		mark := func(x sandbox.Backend) string {
			if s.Of(x).Guarantees.Has(g) {
				return "held"
			}
			return "**not held**"
		}
		if name == "memory-limit" || name == "process-limit" {
			continue // depends on the machine: see the text
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, mark(sandbox.Bubblewrap), mark(sandbox.Landlock))
	}
	raw, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: limits -->\n", "<!-- end -->"
	head, rest, ok1 := strings.Cut(string(raw), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the documentation has no place for the table")
	}
	if *update {
		if err := os.WriteFile(docsFile, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), old); diff != "" {
		t.Errorf("run the test with -update: %s", diff)
	}
}
