package gatehouse_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// The limits. Aim well below them: files under 500 lines, functions under 80.
const (
	maxFileLines     = 700
	maxFunctionLines = 120
	// A test may carry its table.
	maxTestLines = 160
	minDocLines  = 10
	maxDocLines  = 40
)

// tooLong excuses a file, or a function as file:name, that is over the limit,
// with the reason. It should be empty.
var tooLong = map[string]string{}

// TestLengths keeps files and functions to a size that can be read.
func TestLengths(t *testing.T) {
	t.Parallel()
	lengths(parsedTree(t), t.Errorf)
}

func lengths(files []*file, report reporter) {
	excused := map[string]bool{}
	over := func(name, format string, args ...any) {
		if tooLong[name] != "" {
			excused[name] = true
			return
		}
		report(format, args...)
	}
	for _, f := range files {
		if ast.IsGenerated(f.ast) {
			continue
		}
		if f.lines > maxFileLines {
			over(f.path, "%s has %d lines, over %d: split it by what its parts do", f.path, f.lines, maxFileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			limit := maxFunctionLines
			if f.test {
				limit = maxTestLines
			}
			if lines > limit {
				over(f.path+":"+fn.Name.Name, "%s: %s has %d lines, over %d", f.at(fn), fn.Name.Name, lines, limit)
			}
		}
	}
	for name := range tooLong {
		if !excused[name] {
			report("tooLong excuses %s, which is not too long: remove the entry", name)
		}
	}
}

// TestNoInit keeps start-up explicit: an init function is paid for by every
// program that links the package, and nobody can see it in main.
func TestNoInit(t *testing.T) {
	t.Parallel()
	noInit(parsedTree(t), t.Errorf)
}

func noInit(files []*file, report reporter) {
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report("%s: no init functions", f.at(fn))
			}
		}
	}
}

// TestPackagesAreIntroduced asks for a package comment everywhere, and in
// packages that others build on for a doc.go that says what the package is, what it never
// does and where to start reading.
func TestPackagesAreIntroduced(t *testing.T) {
	t.Parallel()
	packagesAreIntroduced(parsedTree(t), t.Errorf)
}

func packagesAreIntroduced(files []*file, report reporter) {
	introduced := map[string]bool{}
	for _, f := range files {
		if f.test {
			continue
		}
		introduced[f.dir] = introduced[f.dir] || f.ast.Doc != nil
		if path.Base(f.path) != "doc.go" {
			if f.ast.Doc != nil && hasDocFile(files, f.dir) {
				report("%s: the package comment belongs in doc.go alone", f.path)
			}
			continue
		}
		if f.ast.Doc == nil {
			continue
		}
		lines := strings.Count(strings.TrimRight(f.ast.Doc.Text(), "\n"), "\n") + 1
		if inDepth(f.dir) && (lines < minDocLines || lines > maxDocLines) {
			report("%s: %d lines of introduction, want %d to %d", f.path, lines, minDocLines, maxDocLines)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(introduced)) {
		switch {
		case !introduced[dir]:
			report("package %s has no package comment", dir)
		case inDepth(dir) && !hasDocFile(files, dir):
			report("package %s has no doc.go", dir)
		}
	}
}

// inDepth reports whether a package needs a doc.go: the code that others build
// on. Commands are documented by their help.
func inDepth(dir string) bool {
	return (under(dir, "internal") || under(dir, "sandbox") || under(dir, "tool")) && !forTests(dir)
}

// startsGoroutine reports whether the node is a go statement or a call of a
// method Go, as sync.WaitGroup and errgroup have it.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

func hasDocFile(files []*file, dir string) bool {
	return slices.ContainsFunc(files, func(f *file) bool { return f.path == path.Join(dir, "doc.go") })
}

// TestExportedNamesAreDocumented asks for a comment on whatever other packages
// can use.
func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	exportedNamesAreDocumented(parsedTree(t), t.Errorf)
}

func exportedNamesAreDocumented(files []*file, report reporter) {
	for _, f := range files {
		if f.test || f.ast.Name.Name == "main" || ast.IsGenerated(f.ast) {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && onExported(d) && !obvious[d.Name.Name] {
					report("%s: %s is exported and has no comment", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					report("%s: %s is exported and has no comment", f.at(name), name.Name)
				}
			}
		}
	}
}

// obvious are methods whose interface says all there is to say.
var obvious = map[string]bool{
	"Error": true, "Is": true, "Unwrap": true, "String": true, "MarshalText": true, "UnmarshalText": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalJSONTo": true, "UnmarshalJSONFrom": true,
	"Len": true, "Less": true, "Swap": true, "ServeHTTP": true, "LogValue": true, "Close": true,
	"Read": true, "Write": true,
}

// onExported reports whether a function is none of an unexported type.
func onExported(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	exported := false
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

// undocumented lists the exported names of a declaration without a comment. A
// comment on a group covers the group's constants and variables.
func undocumented(d *ast.GenDecl) []*ast.Ident {
	var out []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				out = append(out, s.Name)
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil || d.Tok == token.IMPORT {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// TestSkipsSayWhy: a test that is left out without a reason is forgotten.
func TestSkipsSayWhy(t *testing.T) {
	t.Parallel()
	skipsSayWhy(parsedTree(t), t.Errorf)
}

func skipsSayWhy(files []*file, report reporter) {
	for _, f := range files {
		if !f.test && !forTests(f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := c.Fun.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Fuzz" {
				return false // there it says that the input is not of the kind
			}
			if ok && len(c.Args) == 0 && (sel.Sel.Name == "Skip" || sel.Sel.Name == "SkipNow") {
				report("%s: %s without a reason", f.at(c), sel.Sel.Name)
			}
			return true
		})
	}
}

// unleaked excuses packages that start goroutines and have no leak check, with
// the reason.
var unleaked = map[string]string{}

// TestGoroutinesAreLeakChecked asks for goleak in the tests of every shipped
// package that starts a goroutine: whoever starts one must join it.
func TestGoroutinesAreLeakChecked(t *testing.T) {
	t.Parallel()
	goroutinesAreLeakChecked(parsedTree(t), t.Errorf)
}

func goroutinesAreLeakChecked(files []*file, report reporter) {
	starts, checked := map[string]string{}, map[string]bool{}
	for _, f := range files {
		if _, ok := f.imports()["go.uber.org/goleak"]; ok && f.test {
			checked[f.dir] = true
		}
		if f.test || forTests(f.dir) || under(f.dir, "cmd") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if starts[f.dir] == "" && startsGoroutine(n) {
				starts[f.dir] = f.at(n)
			}
			return true
		})
	}
	for _, dir := range slices.Sorted(maps.Keys(starts)) {
		if !checked[dir] && unleaked[dir] == "" {
			report("%s: %s starts a goroutine and its tests do not use goleak: add goleak.VerifyTestMain", starts[dir], dir)
		}
	}
}
