package vet

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Declared reports what the executor of a tool reaches and its policy does not
// declare.
var Declared = &analysis.Analyzer{
	Name: "declared", Doc: "report what a tool's executor reaches and its policy does not declare",
	Requires: []*analysis.Analyzer{findTools}, Run: runDeclared,
}

// Undeclared reports tools without a policy whose executors reach anything.
var Undeclared = &analysis.Analyzer{
	Name: "undeclared", Doc: "report tools that declare no policy and whose executors reach something",
	Requires: []*analysis.Analyzer{findTools}, Run: runUndeclared,
}

// findTools finds the tools of a package and what they reach; the two rules
// stand on it.
var findTools = &analysis.Analyzer{
	Name: "gatehousetools", Doc: "find the tools of a package and what their executors reach", Run: runFind,
	ResultType: reflect.TypeFor[[]finding](), FactTypes: []analysis.Fact{(*reaches)(nil), (*analysed)(nil), (*grants)(nil)},
}

// finding is one tool with what it reaches.
type finding struct {
	declaration
	reach  summary
	waived map[string]bool
}

func runFind(pass *analysis.Pass) (any, error) {
	if isStd(pass.Pkg) || isOurs(pass.Pkg) {
		return []finding(nil), nil
	}
	pass.ExportPackageFact(&analysed{Done: true})
	std := newStdTable()
	// What other people wrote is read more coarsely: it is not ours to mend.
	if pass.Module != nil && pass.Module.Version != "" {
		exportMentions(pass, std)
		return []finding(nil), nil
	}
	g := buildGraph(pass, std)
	g.export()
	waivers := collectWaivers(pass.Files)
	var out []finding
	for _, d := range g.declarations() {
		f := finding{declaration: d, waived: waivers[d.name]}
		if d.executor == nil {
			f.reach.add(opaque, path{"the executor, which is not known here"})
		} else if own := g.sum[d.executor]; own != nil {
			f.reach = *own
		} else {
			probe := &summary{}
			g.sum[nil] = probe
			g.reach(nil, d.executor, nil)
			for _, to := range g.edges[nil] {
				probe.join(g.name(to), g.sum[to])
			}
			f.reach = *probe
			delete(g.edges, nil)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b finding) int { return cmp.Compare(a.pos, b.pos) })
	return out, nil
}

// export makes facts of what this package's functions reach and its policies
// grant.
func (g *graph) export() {
	for fn, s := range g.sum {
		obj, ok := fn.Object().(*types.Func)
		if ok && s.has != 0 && obj.Pkg() == g.pass.Pkg && fn.Origin() == nil && fn.Synthetic == "" {
			g.pass.ExportObjectFact(obj, s.fact())
		}
	}
	for _, m := range g.pkg.Members {
		gl, ok := m.(*ssa.Global)
		if !ok || gl.Object() == nil || !isPolicy(gl.Object().Type()) {
			continue
		}
		f := g.variable(gl, nil)
		g.pass.ExportObjectFact(gl.Object(), &f)
	}
}

func isPolicy(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Policy" && isGate(n.Obj())
}

func runDeclared(pass *analysis.Pass) (any, error) {
	for _, f := range pass.ResultOf[findTools].([]finding) {
		if !f.policy {
			continue
		}
		for c := range kinds {
			if !f.reach.has.has(c) || f.waived[c.waiverWord()] {
				continue
			}
			switch {
			case c == opaque:
				report(pass, &f, "declare.unanalysable", "%s uses code that cannot be analysed (%s); write it another way, or waive it with: //gatehouse:waive %s opaque: REASON",
					title(&f), f.reach.via[c], f.name)
			case f.grants.Known&(1<<c) == 0:
				report(pass, &f, "declare.policy.unreadable", "%s can %s (%s), and its policy cannot be read here; write the policy as a literal", title(&f), c.words(), f.reach.via[c])
			case f.grants.Granted&(1<<c) == 0:
				report(pass, &f, "declare."+c.waiverWord()+".undeclared", "%s can %s (%s), which its policy does not declare; widen the policy or remove it",
					title(&f), c.words(), f.reach.via[c])
			}
		}
	}
	return nil, nil
}

func runUndeclared(pass *analysis.Pass) (any, error) {
	for _, f := range pass.ResultOf[findTools].([]finding) {
		if f.policy {
			continue
		}
		for c := range kinds {
			if f.reach.has.has(c) && !f.waived[c.waiverWord()] {
				report(pass, &f, "undeclared."+c.waiverWord(), "%s declares no policy and can %s (%s); declare a policy", title(&f), c.words(), f.reach.via[c])
			}
		}
	}
	return nil, nil
}

func title(f *finding) string {
	if f.name == "" {
		return "this tool"
	}
	return "the tool " + f.name
}

func report(pass *analysis.Pass, f *finding, code, format string, args ...any) {
	pass.Report(analysis.Diagnostic{Pos: f.pos, Category: code, Message: fmt.Sprintf(format, args...)})
}

// waiverPrefix starts a waiver: //gatehouse:waive TOOL WHAT: REASON
const waiverPrefix = "//gatehouse:waive "

// Waiver is one comment that waives a finding.
type Waiver struct{ Tool, What, Reason string }

// Waivers returns the waivers in a file. One without a reason waives nothing.
func Waivers(f *ast.File) []Waiver {
	var out []Waiver
	for _, group := range f.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, waiverPrefix)
			if !ok {
				continue
			}
			head, reason, _ := strings.Cut(text, ":")
			words := strings.Fields(head)
			if reason = strings.TrimSpace(reason); len(words) == 2 && reason != "" {
				out = append(out, Waiver{Tool: words[0], What: words[1], Reason: reason})
			}
		}
	}
	return out
}

func collectWaivers(files []*ast.File) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range files {
		for _, w := range Waivers(f) {
			if out[w.Tool] == nil {
				out[w.Tool] = map[string]bool{}
			}
			out[w.Tool][w.What] = true
		}
	}
	return out
}

// exportMentions makes facts for a package of another module without building
// it: a function reaches whatever a function reaches that it names. Calls
// through interfaces of other packages are not followed.
func exportMentions(pass *analysis.Pass, std stdTable) {
	sums := map[*types.Func]*summary{}
	callers := map[*types.Func][]*types.Func{}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			fd, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			fn, ok := pass.TypesInfo.Defs[fd.Name].(*types.Func)
			if !ok {
				continue
			}
			s := &summary{}
			sums[fn] = s
			if fd.Body == nil {
				s.add(opaque, path{fn.Name() + ", which has no body in Go (assembly, linkname or cgo)"})
				continue
			}
			ast.Inspect(fd.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if used, ok := pass.TypesInfo.Uses[id].(*types.Func); ok && used.Pkg() != nil {
						mentionOther(pass, std, s, fn, used.Origin(), callers)
					}
				}
				return true
			})
		}
	}
	todo := make([]*types.Func, 0, len(sums))
	for fn := range sums {
		todo = append(todo, fn)
	}
	for len(todo) > 0 {
		fn := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, caller := range callers[fn] {
			if sums[caller].join(fn.Name(), sums[fn]) {
				todo = append(todo, caller)
			}
		}
	}
	for fn, s := range sums {
		if s.has != 0 {
			pass.ExportObjectFact(fn, s.fact())
		}
	}
}

func mentionOther(pass *analysis.Pass, std stdTable, s *summary, fn, used *types.Func, callers map[*types.Func][]*types.Func) {
	switch {
	case used.Pkg() == pass.Pkg:
		callers[used] = append(callers[used], fn)
	case isStd(used.Pkg()):
		for c, does := capability(0), std.of(used); c < kinds; c++ {
			if does.has(c) {
				s.add(c, path{used.Pkg().Name() + "." + used.Name()})
			}
		}
	case !isOurs(used.Pkg()):
		var f reaches
		if pass.ImportObjectFact(used, &f) {
			s.join(used.Pkg().Name()+"."+used.Name(), f.summary())
		}
	}
}
