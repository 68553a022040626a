package gatehouse_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"testing"
)

// core are the packages that decide. The same call in the same world gives the
// same decision, on every machine and in every test, because they take time,
// randomness and the world as arguments. A folder covers those below it.
var core = []string{
	"internal/call",
	"internal/content",
	"internal/element",
	"internal/facts",
	"internal/grant",
	"internal/manifest",
	"internal/match",
	"internal/policy",
	"internal/risk",
	"internal/shell",
}

// impure are the imports that reach out of a pure function.
var impure = []string{
	"crypto/rand", "database/sql", "log", "math/rand", "math/rand/v2", "net/http", "os", "os/exec",
	"os/signal", "os/user", "plugin", "syscall", "golang.org/x/sys/unix", "golang.org/x/sys/windows",
}

// impureNames are functions of packages that are fine otherwise.
var impureNames = map[string][]string{
	"time":          {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until", "LoadLocation"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"runtime":       {"GOMAXPROCS", "Gosched", "NumCPU"},
}

// pureNames are all that the core may use of a package that is impure but for
// them.
var pureNames = map[string][]string{
	// How a value shows itself to a logger, and no logger.
	"log/slog": {"Attr", "GroupValue", "IntValue", "LogValuer", "StringValue", "Value"},
	"net":      {"IP", "IPMask", "IPNet", "JoinHostPort", "ParseCIDR", "ParseIP", "SplitHostPort"},
}

// TestCoreIsPure holds the core to it.
func TestCoreIsPure(t *testing.T) {
	t.Parallel()
	coreIsPure(parsedTree(t), t.Errorf)
}

func coreIsPure(files []*file, report reporter) {
	for _, f := range shipped(files) {
		if !slices.ContainsFunc(core, func(c string) bool { return under(f.dir, c) }) {
			continue
		}
		for p, spec := range f.imports() {
			if slices.Contains(impure, p) {
				report("%s: the core must not import %s: take what it gives as an argument", f.at(spec), p)
			}
		}
		named := importNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if startsGoroutine(n) {
				report("%s: the core starts no goroutine", f.at(n))
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && reachesOut(named[x.Name], sel.Sel.Name) {
				report("%s: the core must not use %s.%s: take what it gives as an argument", f.at(n), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// reachesOut reports whether a name of a package does.
func reachesOut(importPath, name string) bool {
	only, limited := pureNames[importPath]
	return slices.Contains(impureNames[importPath], name) || limited && !slices.Contains(only, name)
}

// importNames maps the names that a file uses for its imports to their paths.
func importNames(f *file) map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}
