package gatehouse_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// order lists every package of the module from the bottom to the top. A
// package may import those on lines below its own (above it in this list),
// never those beside it or above. A new package goes on the lowest line that
// works; moving one up is a design decision.
var order = [][]string{
	// The profiles that ship, as files.
	{"policies"},

	// The pure core: what a call is, what it needs, what is decided. Time,
	// randomness and the world come in as arguments.
	{"internal/call"},
	{"internal/match"},
	{"internal/content"},
	{"internal/shell/knowledge"},
	{"internal/shell"},
	{"internal/risk"},     // scores what the shell analysis found
	{"tool/declare"},      // what tools say about themselves
	{"internal/argument"}, // holds a call's arguments against it
	{"internal/facts"},
	{"internal/element", "internal/manifest"},
	{"internal/grant"},
	{"internal/policy"},

	// The way of a call. It stands on the core alone and declares the
	// interfaces it needs, so that what holds state or has effects implements
	// them from above and the way can be read without either.
	{"internal/gate"},

	// Where the gate's files are. It names places and opens none.
	{"internal/place"},

	// State: one database, and what is kept in it.
	{"internal/store"},
	{"internal/keyring"}, // ties its keys to one database
	{"internal/audit"},
	{"internal/session"},
	{"internal/approval"},
	{"internal/autonomy", "internal/upstream", "internal/dispatch/flight"},

	// Effects: what looks at the machine or runs something on it.
	{"internal/launch", "internal/supervise", "internal/beside", "sandbox/egress", "internal/gitobj"},
	{"sandbox"},
	{"sandbox/changes", "internal/confine"}, // the latter: from a policy to what the sandbox holds
	{"internal/observe", "internal/library", "internal/restore"},
	{"internal/activation"},                     // what is in force, against what is on disk
	{"internal/dispatch/job", "internal/inrun"}, // processes that outlive the call that asked for them; what is said to them while they run
	{"internal/dispatch/provider"},              // how each CLI is started and read
	{"internal/aql", "internal/dispatch"},

	// What people do, beside what agents do: one transaction per act.
	{"internal/admin"},
	{"internal/rulebook"}, // a loosening policy waits for a person's act

	// How MCP messages are read and carried; the front above decides.
	{"internal/mcp/wire"},
	{"internal/mcp/link"},

	// Surfaces: where calls and people come in.
	{"internal/api", "internal/hook", "internal/mcp"},
	{"internal/console"},

	// The wiring. It alone may know everything.
	{"internal/daemon"},

	// Clients of the gate, which speak its API, and the commands.
	{"internal/client", "internal/canary", "internal/connect", "internal/install", "internal/transcript"},
	{"internal/connect/rules"}, // rules of agents' settings as rules of the policy
	{"tool", "tool/vet"},       // what authors of tools use, and what holds their code against it
	{"tool/serve", "tool/standard", "tool/tooltest"},
	{"examples/internal/program"},
	{"examples/echo", "examples/fetch", "examples/report", "examples/search"},
	{"cmd/gatehouse-hook/forward"}, // the hook's whole work, for its own binary and `gatehouse hook`
	{"cmd/gatehouse", "cmd/gatehouse-hook", "cmd/gatehouse-launch", "cmd/gatehouse-vet"},
}

// never are imports that the order would allow and that are wrong all the
// same. A folder stands for all below it.
var never = []struct{ from, to, because string }{
	{"internal/api", "internal/store", "surfaces reach state through gate and admin"},
	{"internal/console", "internal/store", "surfaces reach state through gate and admin"},
	{"internal/hook", "internal/store", "surfaces reach state through gate and admin"},
	{"internal/inrun", "internal/store", "surfaces reach state through gate and admin"},
	{"internal/mcp", "internal/store", "surfaces reach state through gate and admin"},
	{"internal/mcp", "internal/admin", "an agent surface must not be able to act as a person"},
	{"internal/hook", "internal/admin", "an agent surface must not be able to act as a person"},
	{"internal/inrun", "internal/admin", "an agent surface must not be able to act as a person"},
	{"sandbox", "internal/policy", "the sandbox is public and confines what it is told; it does not decide"},
	{"sandbox", "internal/gate", "the sandbox is public and confines what it is told; it does not decide"},
	{"sandbox", "internal/store", "the sandbox is public and holds no state of the gate"},
	{"internal/client", "internal/daemon", "a client may have been started by an agent: it opens neither store nor key"},
	{"internal/client", "internal/store", "a client may have been started by an agent: it opens neither store nor key"},
	{"internal/client", "internal/keyring", "a client may have been started by an agent: it opens neither store nor key"},
	{"internal/place", "internal", "it names places and knows nobody"},
	{"policies", "internal", "it is files to read, and knows nobody"},
	{"tool", "internal/daemon", "a client speaks to the gate over its API"},
	{"tool", "internal/store", "a client speaks to the gate over its API"},
	{"cmd/gatehouse", "internal/store", "commands change state through the API; the wiring is in internal/daemon"},
	{"cmd/gatehouse-hook", "internal", "it starts on every call of an agent and is paid for in milliseconds"},
	{"cmd/gatehouse-launch", "sandbox", "it is small; internal/launch and internal/supervise are all of it"},
}

// TestImportsPointDownwards holds the import graph against the order.
func TestImportsPointDownwards(t *testing.T) {
	t.Parallel()
	importsPointDownwards(parsedTree(t), t.Errorf)
}

func importsPointDownwards(files []*file, report reporter) {
	line := map[string]int{}
	for i, packages := range order {
		for _, p := range packages {
			if _, twice := line[p]; twice {
				report("%s is in the order twice", p)
			}
			line[p] = i
		}
	}
	unknown := map[string]bool{}
	for _, f := range shipped(files) {
		if f.dir == "." {
			continue
		}
		from, known := line[f.dir]
		if !known {
			unknown[f.dir] = true
			continue
		}
		for p, spec := range f.imports() {
			dir, ours := local(p)
			if !ours {
				continue
			}
			if forTests(dir) {
				report("%s: imports %s, which is for tests only", f.at(spec), dir)
				continue
			}
			if to, known := line[dir]; known && to >= from {
				report("%s: %s must not import %s: imports point downwards (see order in imports_test.go)", f.at(spec), f.dir, dir)
			}
			for _, n := range never {
				if under(f.dir, n.from) && under(dir, n.to) {
					report("%s: %s must not import %s: %s", f.at(spec), f.dir, dir, n.because)
				}
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(unknown)) {
		report("package %s is new: add it to the order in imports_test.go, on the lowest line that works, with the reason", p)
	}
}

// TestTestHelpersStayOut keeps packages that help tests from importing what is
// above the package they help: they would make its tests depend on everything.
func TestTestHelpersStayOut(t *testing.T) {
	t.Parallel()
	testHelpersStayOut(parsedTree(t), t.Errorf)
}

func testHelpersStayOut(files []*file, report reporter) {
	for _, f := range files {
		if f.test || !strings.HasPrefix(f.dir, "internal/") || !forTests(f.dir) {
			continue
		}
		for p, spec := range f.imports() {
			if dir, ours := local(p); ours && (under(dir, "internal/daemon") || under(dir, "cmd")) {
				report("%s: a helper for tests imports %s", f.at(spec), dir)
			}
		}
	}
}
