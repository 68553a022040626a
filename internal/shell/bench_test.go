package shell_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// ordinary are commands of the kind agents run all day.
var ordinary = []string{
	"ls -la",
	"cd src && git status && git diff --stat",
	"git log --oneline -20 | grep -i fix | head -5",
	"find . -name '*.go' -not -path './vendor/*' | xargs grep -n TODO | sort | uniq -c | sort -rn | head -20",
	"for f in *.md; do echo \"== $f\"; head -3 \"$f\"; done",
	"cat package.json | jq '.scripts' 2>/dev/null || echo none",
	"sed -n '120,180p' internal/server/handler.go",
	"bash -lc 'rg -n \"func main\" -g \"*.go\" | head'",
	"mkdir -p build && cp config.yaml build/ && echo ok > build/stamp",
	"rm -rf build && npm ci && npm run build",
	"python3 - <<'EOF'\nimport json\nprint(json.load(open('a.json'))['x'])\nEOF",
	"curl -s https://example.com/api | jq -r '.items[].name' > names.txt",
}

// BenchmarkAnalyze measures analysis against the parser alone, on the same
// text in the same run. The ratio is of the median rounds, because the machine
// does other things as well.
func BenchmarkAnalyze(b *testing.B) { compare(b, ordinary) }

// BenchmarkCorpus is the same on the labelled commands, which are odder than
// the ordinary ones.
func BenchmarkCorpus(b *testing.B) {
	var cmds []string
	for _, r := range readRows(b, filepath.Join("testdata", "corpus.jsonl")) {
		cmds = append(cmds, r.Cmd)
	}
	compare(b, cmds)
}

func compare(b *testing.B, cmds []string) {
	shell.Analyze("ls", shell.Options{}) // reads the tables
	parser := syntax.NewParser()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	var parse, analyze []time.Duration
	for b.Loop() {
		start := threadTime()
		for _, cmd := range cmds {
			_, _ = parser.Parse(strings.NewReader(cmd), "")
		}
		mid := threadTime()
		for _, cmd := range cmds {
			shell.Analyze(cmd, shell.Options{})
		}
		parse, analyze = append(parse, mid-start), append(analyze, threadTime()-mid)
	}
	b.ReportMetric(float64(median(analyze))/float64(median(parse)), "ratio")
	b.ReportMetric(float64(median(analyze).Nanoseconds())/float64(len(cmds)), "ns/command")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkGrowth shows that twice the text takes twice the time.
func BenchmarkGrowth(b *testing.B) {
	for name, unit := range growing {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			size := shell.MaxBytes / 2 / len(unit)
			small, large := strings.Repeat(unit, size/2), strings.Repeat(unit, size)
			var n, n2 []time.Duration
			for b.Loop() {
				start := threadTime()
				shell.Analyze(small, shell.Options{})
				mid := threadTime()
				shell.Analyze(large, shell.Options{})
				n, n2 = append(n, mid-start), append(n2, threadTime()-mid)
			}
			b.ReportMetric(float64(median(n2))/float64(median(n)), "2n/n")
		})
	}
}

// growing are pieces that, repeated, once made some analysis or other slow.
var growing = map[string]string{
	"commands":     "ls -la src; ",
	"chain":        "ls && ",
	"pipes":        "cat a | ",
	"words":        "aaaa ",
	"quotes":       "'a'\"b\"",
	"substitution": "$(ls ",
	"subshell":     "( ls; ",
	"braces":       "{a,b}",
	"variables":    "x=$x$x; ",
	"doubling":     "x=\"$x$x\"; eval \"$x\"; ",
	"loops":        "for i in a b; do ",
	"functions":    "f() { ls; }; ",
	"globs":        "*a?[b]",
	"backslashes":  "\\a",
	"heredocs":     "cat <<E\nx\nE\n",
	"env":          "env ",
	"sudo":         "sudo -u a ",
	"evals":        "eval ",
	"options":      "-a -b --long ",
	"arithmetic":   "((1+",
	"parameters":   "${x:-",
	"cases":        "case a in a) ls;; esac; ",
	"redirects":    "> f ",
	"assignments":  "a=b ",
	"newlines":     "\n\n\n",
	"sql":          "psql -c 'select 1;\n\n\n'; ",
	"cd":           "cd a; ",
	"paths":        "cat a/b/../c/./d/../../e; ",
}

// Sixteen times the text takes about sixteen times as long; a square would
// take 256 times. The best of some runs counts, and the bound lies between.
func TestGrowthIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time, which a short run leaves out")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, unit := range growing {
		size := shell.MaxBytes / len(unit)
		took := func(n int) time.Duration {
			text, best := strings.Repeat(unit, n), time.Hour
			for range 3 {
				start := threadTime()
				shell.Analyze(text, shell.Options{})
				best = min(best, threadTime()-start)
			}
			return best
		}
		part, full := took(size/16), took(size)
		if full > 120*part && full > 200*time.Millisecond {
			t.Errorf("%s: a sixteenth takes %v, all of it %v", name, part, full)
		}
		t.Logf("%-14s %10v %10v", name, part, full)
	}
}
