package tooltest

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet"
)

// Manifest compares the agent with the manifest in a file.
func Manifest(t testing.TB, a *tool.Agent, file string) {
	t.Helper()
	now, err := a.Manifest(waivers(t))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GATEHOUSE_UPDATE") != "" {
		if err := os.WriteFile(file, now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with GATEHOUSE_UPDATE=1 and review it", err)
	}
	if bytes.Equal(was, now) {
		return
	}
	compare(t, was, now, file)
}

func compare(t testing.TB, was, now []byte, file string) {
	t.Helper()
	baseline, err := manifest.Parse(was)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	current, err := manifest.Parse(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range manifest.Verify(baseline, current) {
		t.Errorf("%s: %s: %s", f.Code, f.Path, f.Message)
	}
	t.Errorf("%s is out of date; write it with GATEHOUSE_UPDATE=1 and review the difference", file)
}

// waivers reads the waivers in the source of the package under test.
func waivers(t testing.TB) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range vet.Waivers(f) {
			out[w.Tool] = append(out[w.Tool], w.What+": "+w.Reason)
		}
	}
	return out
}
