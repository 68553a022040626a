package main

// figure is one promise.
type figure struct {
	name string
	// pkg is the folder of the benchmarks, "" for what is measured here.
	pkg string
	// value is what is measured and base what it is compared with; a figure
	// without a base has its bar on the value itself.
	value, base metric
	// bar is the limit of the ratio, or of the value where there is no base:
	// at least so much where more is better, else at most so much. Zero with
	// none set means that there is no bar.
	bar     float64
	none    bool
	atLeast bool
}

// metric is one number that a benchmark reports.
type metric struct {
	bench string // with sub-benchmarks after slashes, without the -N of the cores
	unit  string // as go test -bench prints it: ns/op, allocs/op, or a unit of its own
}

// figures are the promises, in the order of the table.
var figures = []figure{
	{
		name:  "write, 64 callers, against a bare loop",
		pkg:   "internal/store",
		value: metric{"BenchmarkGrouped", "grouped/s"}, base: metric{"BenchmarkGrouped", "bare/s"},
		bar: 0.5, atLeast: true,
	},
	{
		name:  "write, 64 callers, 5 ms per sync, against one",
		pkg:   "internal/store",
		value: metric{"BenchmarkGroupedSlowSync", "grouped/s"}, base: metric{"BenchmarkGroupedSlowSync", "ungrouped/s"},
		bar: 20, atLeast: true,
	},
	{
		name:  "sandbox: a run, against bubblewrap by hand",
		pkg:   "sandbox",
		value: metric{"BenchmarkRun", "ns/op"}, base: metric{"BenchmarkHand", "ns/op"},
		bar: 2.2,
	},
	{
		name:  "daemon: start to first answer, against hello world",
		value: metric{"daemon/start", "ms"}, base: metric{"daemon/hello", "ms"},
		bar: 40,
	},
	{
		name:  "daemon: resident memory, idle",
		value: metric{"daemon/idle", "MiB"},
		bar:   60,
	},
}
