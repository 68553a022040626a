package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const output = `goos: linux
pkg: example
BenchmarkGrouped-2   	   12345	     98123 ns/op	     0.6100 grouped/bare	     10191 grouped/s	       6 allocs/op
BenchmarkDecide/elements=10-2         	 1000000	      1024.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkBroken-2 --- FAIL
PASS
`

func TestParseBench(t *testing.T) {
	t.Parallel()
	want := map[metric]float64{
		{"BenchmarkGrouped", "ns/op"}: 98123, {"BenchmarkGrouped", "grouped/bare"}: 0.61,
		{"BenchmarkGrouped", "grouped/s"}: 10191, {"BenchmarkGrouped", "allocs/op"}: 6,
		{"BenchmarkDecide/elements=10", "ns/op"}: 1024.5, {"BenchmarkDecide/elements=10", "B/op"}: 0,
		{"BenchmarkDecide/elements=10", "allocs/op"}: 0,
	}
	if diff := cmp.Diff(want, parseBench(output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	a, b, zero := metric{"BenchmarkA", "ns/op"}, metric{"BenchmarkB", "ns/op"}, metric{"BenchmarkZero", "allocs/op"}
	by := map[string]measured{"p": {values: map[metric]float64{
		a: 30, b: 10, zero: 0, {"BenchmarkSub/x", "ns/op"}: 5, {"BenchmarkSub/y", "ns/op"}: 7, {"BenchmarkSub/y", "rate"}: 9,
	}}}
	sub := metric{"BenchmarkSub/*", "ns/op"}
	tests := []struct {
		figure figure
		want   row
	}{
		{figure{value: a, base: b, bar: 3}, row{Value: 30, Base: 10, Ratio: 3, Bar: "≤ 3×", Verdict: "ok"}},
		{figure{value: a, base: b, bar: 2.5}, row{Value: 30, Base: 10, Ratio: 3, Bar: "≤ 2.5×", Verdict: "over"}},
		{figure{value: a, base: b, bar: 4, atLeast: true}, row{Value: 30, Base: 10, Ratio: 3, Bar: "≥ 4×", Verdict: "under"}},
		{figure{value: a, base: b, none: true}, row{Value: 30, Base: 10, Ratio: 3}},
		{figure{value: a, ratio: b, bar: 9}, row{Value: 30, Ratio: 10, Bar: "≤ 9×", Verdict: "over"}},
		{figure{value: sub, bar: 6}, row{Value: 7, Bar: "≤ 6 ns/op", Verdict: "over"}},
		{figure{value: sub, bar: 6, atLeast: true}, row{Value: 5, Bar: "≥ 6 ns/op", Verdict: "under"}},
		{figure{value: metric{"BenchmarkSub/*", "none"}, bar: 6}, row{Bar: "≤ 6 none", Verdict: notMeasured}},
		{figure{value: zero}, row{Bar: "≤ 0 allocs/op", Verdict: "ok"}},
		{figure{value: a, bar: 20}, row{Value: 30, Bar: "≤ 20 ns/op", Verdict: "over"}},
		{figure{value: a, base: zero, bar: 1}, row{Bar: "≤ 1×", Verdict: notMeasured}},
		{figure{value: metric{"BenchmarkGone", "ns/op"}, bar: 1}, row{Bar: "≤ 1 ns/op", Verdict: notMeasured}},
	}
	for _, tt := range tests {
		tt.figure.pkg = "p"
		tt.want.Unit, tt.want.BaseUnit = tt.figure.value.unit, tt.figure.base.unit
		rows := judge([]figure{tt.figure}, by)
		if diff := cmp.Diff([]row{tt.want}, rows); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.figure, diff)
		}
		if bad := tt.want.Verdict != "ok" && tt.want.Verdict != ""; missed(rows) != bad {
			t.Errorf("%+v: missed = %v", tt.figure, !bad)
		}
		var out strings.Builder
		printTable(&out, rows)
		if !strings.Contains(out.String(), tt.want.Verdict) {
			t.Errorf("table lacks the verdict:\n%s", &out)
		}
	}
}

// TestFigures keeps the data in order: a name each, a limit or none.
func TestFigures(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range figures {
		if f.name == "" || seen[f.name] {
			t.Errorf("%+v: the name is empty or there twice", f)
		}
		seen[f.name] = true
		if f.none && f.bar != 0 {
			t.Errorf("%s: a bar and none", f.name)
		}
		for _, m := range []metric{f.value, f.base, f.ratio} {
			if name, _, _ := strings.Cut(m.bench, "/"); f.pkg != "" && f.pkg != hookFolder && name != "" && !declares(t, f.pkg, name) {
				t.Errorf("%s: %s has no %s; where it was renamed, rename it here", f.name, f.pkg, name)
			}
		}
		if f.value.bench == "" || f.value.unit == "" {
			t.Errorf("%s: nothing is measured", f.name)
		}
	}
}

// declares reports whether the tests of a package have the benchmark. A package
// that does not exist yet has whatever is wanted.
func declares(t *testing.T, pkg, name string) bool {
	t.Helper()
	folder := filepath.Join("..", filepath.FromSlash(pkg))
	if _, err := os.Stat(folder); err != nil {
		return true
	}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "func "+name+"(") {
			return true
		}
	}
	return false
}
