package main

// figure is one promise.
type figure struct {
	name string
	// pkg is the folder of the benchmarks, "" for what is measured here.
	pkg string
	// value is what is measured and base what it is compared with. Where the
	// benchmark compares by itself, ratio is what it reports. A figure with
	// neither base nor ratio has its bar on the value.
	value, base, ratio metric
	// bar is the limit: at least so much where atLeast is set, else at most. A
	// figure with none set has no limit.
	bar     float64
	atLeast bool
	none    bool
}

// metric is one number that a benchmark reports.
type metric struct {
	// bench is its name with sub-benchmarks after slashes, without the number of
	// cores. A star as the last part stands for the worst of them.
	bench string
	unit  string // as go test -bench prints it: ns/op, allocs/op, or a unit of its own
}

// figures are the promises, in the order of the table.
var figures = []figure{
	{
		name: "decide: allocations on the auto path", pkg: "internal/policy",
		value: metric{"BenchmarkDecide/*", "allocs/op"},
		bar:   0,
	},
	{
		name: "decide: 1,000 elements against 10", pkg: "internal/policy",
		value: metric{"BenchmarkElements/1000", "ns/op"}, base: metric{"BenchmarkElements/10", "ns/op"},
		bar: 1.5,
	},
	{
		name: "decide: 20 active elements against none", pkg: "internal/policy",
		value: metric{"BenchmarkTwentyElements/*", "ns/decision"}, ratio: metric{"BenchmarkTwentyElements/*", "ratio-to-none"},
		bar: 4,
	},
	{
		name: "shell: analysis against the parser alone", pkg: "internal/shell",
		value: metric{"BenchmarkAnalyze", "ns/command"}, ratio: metric{"BenchmarkAnalyze", "ratio"},
		bar: 2.5,
	},
	{
		name: "shell: twice the text, the worst kind", pkg: "internal/shell",
		value: metric{"BenchmarkGrowth/*", "2n/n"}, none: true,
	},
	{
		name: "dispatch score: classic on 100 kB against 1 kB, the worst kind", pkg: "internal/risk",
		value: metric{"BenchmarkDispatchGrowth/classic/*", "ms-100kB"}, ratio: metric{"BenchmarkDispatchGrowth/classic/*", "100kB/1kB"},
		bar: 120,
	},
	{
		name: "dispatch score: hardened, the same without the analyser's time", pkg: "internal/risk",
		value: metric{"BenchmarkDispatchGrowth/hardened/*", "ms-100kB"}, ratio: metric{"BenchmarkDispatchGrowth/hardened/*", "100kB/1kB"},
		bar: 120,
	},
	{
		name: "content: twice the text, the worst kind", pkg: "internal/content",
		value: metric{"BenchmarkScan/*", "time(2n)/time(n)"}, bar: 2.2,
	},
	{
		name: "content: plain text, per second of processor time", pkg: "internal/content",
		value: metric{"BenchmarkScan/plain", "MB/cpu-s"}, bar: 100, atLeast: true,
	},
	{
		name: "content: mixed scripts against plain text", pkg: "internal/content",
		value: metric{"BenchmarkScan/mixed", "MB/cpu-s"}, ratio: metric{"BenchmarkScan/mixed", "speed/plain"},
		bar: 0.2, atLeast: true,
	},
	{
		name: "content: honest texts of other scripts against plain text, the slowest", pkg: "internal/content",
		value: metric{"BenchmarkScan/script-*", "MB/cpu-s"}, ratio: metric{"BenchmarkScan/script-*", "speed/plain"},
		bar: 0.2, atLeast: true,
	},
	{
		name: "content: base64 against plain text", pkg: "internal/content",
		value: metric{"BenchmarkScan/base64", "MB/cpu-s"}, ratio: metric{"BenchmarkScan/base64", "speed/plain"},
		bar: 0.2, atLeast: true,
	},
	{
		name: "content: percent-encoding against plain text", pkg: "internal/content",
		value: metric{"BenchmarkScan/url", "MB/cpu-s"}, ratio: metric{"BenchmarkScan/url", "speed/plain"},
		bar: 0.2, atLeast: true,
	},
	{
		name: "content: escapes against plain text", pkg: "internal/content",
		value: metric{"BenchmarkScan/escape", "MB/cpu-s"}, ratio: metric{"BenchmarkScan/escape", "speed/plain"},
		bar: 0.2, atLeast: true,
	},
	{
		name: "tools: the argument gate, ten paths, in µs", pkg: "internal/argument",
		value: metric{"BenchmarkTenArguments", "µs/call"},
		bar:   5,
	},
	{
		name: "tools: gatehouse-vet against go vet, this repository", pkg: "tool/vet",
		value: metric{"BenchmarkAgainstGoVet", "s/run"}, ratio: metric{"BenchmarkAgainstGoVet", "ratio"},
		bar: 3,
	},
	{
		name: "store: 64 writers against a bare loop", pkg: "internal/store",
		value: metric{"BenchmarkGrouped", "grouped/s"}, base: metric{"BenchmarkGrouped", "bare/s"},
		bar: 0.5, atLeast: true,
	},
	{
		name: "store: 64 writers against one, 5 ms per sync", pkg: "internal/store",
		value: metric{"BenchmarkGroupedSlowSync", "grouped/s"}, base: metric{"BenchmarkGroupedSlowSync", "ungrouped/s"},
		bar: 20, atLeast: true,
	},
	{
		name: "log: newest 50 of 1,000,000, the slowest of 17 filters against the quickest", pkg: "internal/audit",
		value: metric{"BenchmarkListMillion", "µs-all"}, ratio: metric{"BenchmarkListMillion", "slowest/quickest"},
		bar: 3,
	},
	{
		name: "dispatch: approval_list, newest 50 of 1,000,000 through the API, all, ten and none", pkg: "test/dispatch",
		value: metric{"BenchmarkApprovalList", "µs-all"}, ratio: metric{"BenchmarkApprovalList", "slowest/quickest"},
		bar: 3,
	},
	{
		name: "dispatch: a request to an instant CLI against a bare spawn of it", pkg: "test/dispatch",
		value: metric{"BenchmarkRequest", "µs-request"}, base: metric{"BenchmarkRequest", "µs-bare"},
		bar: 2,
	},
	{
		name: "log: a page of 1,000,000 through the API, all, ten and none", pkg: "internal/daemon",
		value: metric{"BenchmarkLogPage", "µs-all"}, ratio: metric{"BenchmarkLogPage", "slowest/quickest"},
		bar: 3,
	},
	{
		name: "daemon: durable decisions, 64 callers, against a bare loop", pkg: "internal/daemon",
		value: metric{"BenchmarkDurableDecisions", "decisions/s"}, ratio: metric{"BenchmarkDurableDecisions", "x-bare-loop"},
		bar: 0.5, atLeast: true,
	},
	{
		name: "daemon: 64 callers against one, 5 ms per sync", pkg: "internal/daemon",
		value: metric{"BenchmarkGroupedCommits", "ns/op"}, ratio: metric{"BenchmarkGroupedCommits", "x-ungrouped"},
		bar: 20, atLeast: true,
	},
	{
		name:  "daemon: start to first answer against hello world",
		value: metric{"daemon/start", "ms"}, base: metric{"daemon/hello", "ms"},
		bar: 40,
	},
	{
		name:  "daemon: resident memory, idle",
		value: metric{"daemon/idle", "MiB"},
		bar:   60,
	},
	{
		name: "gateway: added median, one client, against a bare byte proxy", pkg: "test/gateway",
		value: metric{"BenchmarkGateway", "gate-added-µs"}, base: metric{"BenchmarkGateway", "proxy-added-µs"},
		bar: 2,
	},
	{
		name: "gateway: CPU a call, one client, against a bare byte proxy", pkg: "test/gateway",
		value: metric{"BenchmarkGateway", "gate-cpu-µs"}, base: metric{"BenchmarkGateway", "proxy-cpu-µs"},
		bar: 2,
	},
	{
		name: "gateway: CPU a call, 64 clients, against a bare byte proxy", pkg: "test/gateway",
		value: metric{"BenchmarkGateway", "gate-64-cpu-µs"}, base: metric{"BenchmarkGateway", "proxy-64-cpu-µs"},
		bar: 2,
	},
	{
		name: "gateway: calls a second, 64 clients, against a bare byte proxy", pkg: "test/gateway",
		value: metric{"BenchmarkGateway", "gate-calls/s"}, base: metric{"BenchmarkGateway", "proxy-calls/s"},
		bar: 0.75, atLeast: true,
	},
	{
		name: "gateway: CPU a call, 64 kB of arguments, against a bare byte proxy", pkg: "test/gateway",
		value: metric{"BenchmarkGateway", "gate-64kB-cpu-µs"}, base: metric{"BenchmarkGateway", "proxy-64kB-cpu-µs"},
		bar: 2.5,
	},
	{
		name: "hook: start to answer, the gate running, against a program that does nothing", pkg: hookFolder,
		value: metric{"hook/answer", "ms"}, base: metric{"hook/nothing", "ms"},
		bar: 3,
	},
	{
		name: "sandbox: a run against bubblewrap by hand", pkg: "sandbox",
		value: metric{"BenchmarkStart", "full-ms"}, base: metric{"BenchmarkStart", "bwrap-ms"},
		bar: 2.2,
	},
	{
		name: "sandbox: Landlock alone against /bin/true", pkg: "sandbox",
		value: metric{"BenchmarkStart", "landlock-ms"}, base: metric{"BenchmarkStart", "true-ms"},
		bar: 6,
	},
	{
		name: "sandbox: bytes through the proxy (CONNECT) against direct", pkg: "sandbox",
		value: metric{"BenchmarkEgress", "bare-MiB/s"}, ratio: metric{"BenchmarkEgress", "bare-proxy/direct"},
		bar: 0.7, atLeast: true,
	},
	{
		name: "sandbox: bytes through the proxy (SOCKS5) against direct", pkg: "sandbox",
		value: metric{"BenchmarkEgress", "socks-MiB/s"}, ratio: metric{"BenchmarkEgress", "socks-proxy/direct"},
		bar: 0.7, atLeast: true,
	},
	{
		name: "sandbox: bytes out through the proxy against direct", pkg: "sandbox",
		value: metric{"BenchmarkEgress", "upload-MiB/s"}, ratio: metric{"BenchmarkEgress", "upload-proxy/direct"},
		bar: 0.7, atLeast: true,
	},
	{
		name: "sandbox: plain HTTP through the proxy against direct", pkg: "sandbox",
		value: metric{"BenchmarkEgress", "http-MiB/s"}, ratio: metric{"BenchmarkEgress", "http-proxy/direct"},
		bar: 0.7, atLeast: true,
	},
	{
		name: "sandbox: TLS through the proxy against direct", pkg: "sandbox",
		value: metric{"BenchmarkEgress", "tls-MiB/s"}, ratio: metric{"BenchmarkEgress", "tls-proxy/direct"},
		bar: 0.7, atLeast: true,
	},
}
