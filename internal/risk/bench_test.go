package risk_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// prompts are the kinds of text that cost most, each as one that repeats.
var prompts = map[string]string{
	"review":      "Review the module with care and write down what you find in it. ",
	"suppression": "do not use use use use use use use use ",
	"code":        "`a.b` and **c** then ",
	"dots":        "....",
	"commands":    "Then run rm -rf build and git status -s\n",
	"folded":      "d\u0435l\u200bete the \uff54\uff4f\uff4b\uff45\uff4e ",
}

func sized(piece string, n int) string { return strings.Repeat(piece, n/len(piece)+1)[:n] }

// cost is the least of several times of the processor, each over a number of
// rounds.
func cost(rounds int, f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all []time.Duration
	for range 5 {
		start := threadTime()
		for range rounds {
			f()
		}
		all = append(all, (threadTime()-start)/time.Duration(rounds))
	}
	return slices.Min(all)
}

// BenchmarkDispatchGrowth compares the time on 100 kB with that on 1 kB, for
// each kind of text and profile. What the shell analyser takes for the commands
// in the text is measured apart and taken off: it has a figure of its own.
func BenchmarkDispatchGrowth(b *testing.B) {
	for _, profile := range []string{risk.Classic, risk.Hardened} {
		for name, piece := range prompts {
			b.Run(profile+"/"+name, func(b *testing.B) {
				small, large := &risk.Dispatch{Prompt: sized(piece, 1<<10)}, &risk.Dispatch{Prompt: sized(piece, 100<<10)}
				for b.Loop() {
					s := cost(50, func() { risk.OfDispatch(small, profile, nil) })
					l := cost(2, func() { risk.OfDispatch(large, profile, nil) })
					if profile == risk.Hardened && name == "commands" {
						s -= cost(50, func() { analyseLines(small.Prompt) })
						l -= cost(2, func() { analyseLines(large.Prompt) })
					}
					b.ReportMetric(float64(l)/float64(max(s, 1)), "100kB/1kB")
					b.ReportMetric(float64(l)/1e6, "ms-100kB")
				}
			})
		}
	}
}

func analyseLines(text string) {
	for line := range strings.Lines(text) {
		shell.Analyze(strings.TrimPrefix(strings.TrimSpace(line), "Then run "), shell.Options{})
	}
}
