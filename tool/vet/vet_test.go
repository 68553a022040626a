package vet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/tool/vet"
)

// checker builds the checker as users run it.
func checker(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "gatehouse-vet")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/seed-3ebc6b8a/gatehouse/cmd/gatehouse-vet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// place is a line of a file.
type place struct {
	file string
	line int
}

// report runs go vet with the checker and returns the codes by place.
func report(t *testing.T, bin, dir string, pkgs ...string) map[place][]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + bin, "-json"}, pkgs...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var kept []byte
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line...)
		}
	}
	found := map[place][]string{}
	for dec := json.NewDecoder(bytes.NewReader(kept)); dec.More(); {
		var byPackage map[string]map[string][]struct{ Category, Posn, Message string }
		if err := dec.Decode(&byPackage); err != nil {
			t.Fatalf("%v\n%s", err, kept)
		}
		for _, byRule := range byPackage {
			for _, ds := range byRule {
				for _, d := range ds {
					parts := strings.Split(d.Posn, ":")
					line, err := strconv.Atoi(parts[len(parts)-2])
					if err != nil {
						t.Fatal(err)
					}
					code := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(d.Category, "declare."), "undeclared."), ".undeclared")
					at := place{filepath.Base(strings.Join(parts[:len(parts)-2], ":")), line}
					found[at] = append(found[at], strings.Replace(code, "unanalysable", "opaque", 1))
				}
			}
		}
	}
	return found
}

// TestCorpus runs the checker over executors that declare right, declare wrong
// and hide what they do. Each says in a want comment what is to be reported.
func TestCorpus(t *testing.T) {
	t.Parallel()
	got := report(t, checker(t), ".", "./testdata/corpus")
	fset := token.NewFileSet()
	var decls []ast.Decl
	for _, name := range []string{"right.go", "wrong.go", "hidden.go", "sly.go", "honest.go"} {
		f, err := parser.ParseFile(fset, filepath.Join("testdata/corpus", name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, f.Decls...)
	}
	right, wrong, missed, alarms := 0, 0, 0, 0
	for _, decl := range decls {
		gd, ok := decl.(*ast.GenDecl)
		if !ok || gd.Doc == nil {
			continue
		}
		for _, c := range gd.Doc.List {
			text, ok := strings.CutPrefix(c.Text, "// want:")
			if !ok {
				continue
			}
			want := strings.Fields(text)
			at := fset.Position(gd.Pos())
			name := toolName(gd)
			have := got[place{filepath.Base(at.Filename), at.Line}]
			slices.Sort(have)
			if len(want) == 0 {
				right++
				if len(have) > 0 {
					alarms++
					t.Logf("%s: false alarm: %v", name, have)
				}
				continue
			}
			wrong++
			for _, w := range want {
				if !slices.Contains(have, w) {
					missed++
					t.Errorf("%s: %s was missed (%v)", name, w, have)
				}
			}
			for _, h := range have {
				if !slices.Contains(want, h) {
					alarms++
					t.Logf("%s: %s is a false alarm", name, h)
				}
			}
		}
	}
	t.Logf("%d executors declared right, %d wrong; %d missed, %d false alarms", right, wrong, missed, alarms)
	if alarms*20 > right+wrong {
		t.Errorf("more than 5 %% false alarms: %d of %d", alarms, right+wrong)
	}
	if right+wrong < 60 {
		t.Errorf("only %d executors", right+wrong)
	}
}

// TestShapes runs the checker over tools that are made in every way a program
// may. A want comment stands on the line that is to be reported.
func TestShapes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/shapes/shapes.go")
	if err != nil {
		t.Fatal(err)
	}
	got := report(t, checker(t), ".", "./testdata/shapes")
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		_, want, ok := strings.Cut(line, "// want:")
		if !ok {
			if have := got[place{"shapes.go", n}]; have != nil {
				t.Errorf("line %d: %v", n, have)
			}
			continue
		}
		if diff := cmp.Diff(strings.Fields(want), got[place{"shapes.go", n}], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("line %d (-want +got):\n%s%s", n, diff, line)
		}
	}
}

func toolName(gd *ast.GenDecl) string {
	name := "?"
	ast.Inspect(gd, func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if ok && fmt.Sprint(kv.Key) == "Name" && name == "?" {
			if lit, ok := kv.Value.(*ast.BasicLit); ok {
				name, _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	return name
}

func TestWaivers(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n\n//gatehouse:waive a exec: because\n//gatehouse:waive b exec\n//gatehouse:waive c: why\nvar X int\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]vet.Waiver{{Tool: "a", What: "exec", Reason: "because"}}, vet.Waivers(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
