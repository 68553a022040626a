package vet

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// graph is what the functions of one package reach.
type graph struct {
	pass  *analysis.Pass
	std   stdTable
	prog  *ssa.Program
	pkg   *ssa.Package
	funcs map[*ssa.Function]bool
	calls *callgraph.Graph
	sum   map[*ssa.Function]*summary
	edges map[*ssa.Function][]*ssa.Function
	// unasked are the methods of types that the standard library calls by
	// itself.
	unasked map[types.Type][]*types.Func
}

// buildGraph builds the package in SSA form and finds out what each of its
// functions reaches.
func buildGraph(pass *analysis.Pass, std stdTable) *graph {
	prog := ssa.NewProgram(pass.Fset, ssa.InstantiateGenerics)
	created := map[*types.Package]bool{}
	var create func(pkgs []*types.Package)
	create = func(pkgs []*types.Package) {
		for _, p := range pkgs {
			if !created[p] {
				created[p] = true
				prog.CreatePackage(p, nil, nil, true)
				create(p.Imports())
			}
		}
	}
	create(pass.Pkg.Imports())
	g := &graph{pass: pass, std: std, prog: prog, sum: map[*ssa.Function]*summary{}, edges: map[*ssa.Function][]*ssa.Function{}, unasked: map[types.Type][]*types.Func{}}
	g.pkg = prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	g.pkg.Build()
	g.funcs = map[*ssa.Function]bool{}
	for fn := range ssautil.AllFunctions(prog) {
		g.take(fn)
	}
	// Methods of types that are never put into an interface are not among them.
	for _, obj := range pass.TypesInfo.Defs {
		if fn, ok := obj.(*types.Func); ok {
			if f := prog.FuncValue(fn); f != nil {
				g.take(f)
			}
		}
	}
	g.calls = vta.CallGraph(g.funcs, cha.CallGraph(prog))
	for fn := range g.funcs {
		g.sum[fn] = &summary{}
	}
	for fn := range g.funcs {
		g.look(fn)
	}
	g.settle()
	return g
}

// take notes a function that has a body, and the literals in it.
func (g *graph) take(fn *ssa.Function) {
	if len(fn.Blocks) == 0 || g.funcs[fn] {
		return
	}
	g.funcs[fn] = true
	for _, lit := range fn.AnonFuncs {
		g.take(lit)
	}
}

// settle lets what callees reach flow to their callers until nothing changes.
func (g *graph) settle() {
	callers := map[*ssa.Function][]*ssa.Function{}
	var todo []*ssa.Function
	for fn, to := range g.edges {
		for _, callee := range to {
			callers[callee] = append(callers[callee], fn)
		}
	}
	for fn := range g.funcs {
		todo = append(todo, fn)
	}
	for len(todo) > 0 {
		fn := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, caller := range callers[fn] {
			if g.sum[caller].join(g.name(fn), g.sum[fn]) {
				todo = append(todo, caller)
			}
		}
	}
}

// name is how a function is called in a report.
func (g *graph) name(fn *ssa.Function) string {
	if fn.Parent() != nil {
		return "a function literal"
	}
	return strings.TrimPrefix(fn.RelString(g.pass.Pkg), "bound ")
}

// look notes what one function does by itself and whom it calls or mentions.
func (g *graph) look(fn *ssa.Function) {
	var ops [10]*ssa.Value
	for _, b := range fn.Blocks {
		for _, instr := range b.Instrs {
			called := ssa.Value(nil)
			if c, ok := instr.(ssa.CallInstruction); ok {
				called = c.Common().Value
				g.call(fn, c)
			}
			// A function that is mentioned may be called by whoever gets it.
			for _, op := range instr.Operands(ops[:0]) {
				if *op == nil || *op == called {
					continue
				}
				g.mention(fn, *op)
			}
			switch i := instr.(type) {
			case *ssa.MakeInterface:
				g.convert(fn, i)
			case *ssa.Alloc:
				g.client(fn, i.Type())
			}
		}
	}
}

func (g *graph) mention(fn *ssa.Function, v ssa.Value) {
	switch v := v.(type) {
	case *ssa.Function:
		g.reach(fn, v, nil)
	case *ssa.Global:
		g.client(fn, v.Type())
		g.global(fn, v)
	}
}

// client charges fn for an HTTP client that it makes or takes from a variable.
// One that it was given needs no declaration by itself: it came from whoever
// made it, or from the tool's Env.
func (g *graph) client(fn *ssa.Function, pointer types.Type) {
	t := pointer.(*types.Pointer).Elem()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if isHTTPClient(t) {
		g.sum[fn].add(network, path{"an http." + t.(*types.Named).Obj().Name() + " of its own"})
	}
}

func isHTTPClient(t types.Type) bool {
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "net/http" && (n.Obj().Name() == "Client" || n.Obj().Name() == "Transport")
}

// given reports whether a value is a parameter or came out of the tool's Env.
func given(v ssa.Value) bool {
	switch v := resolve(v, nil).(type) {
	case *ssa.Parameter:
		return true
	case *ssa.Call:
		callee := v.Common().StaticCallee()
		return callee != nil && isGate(callee.Object())
	}
	return false
}

// global notes the use of a variable of another package that holds code which
// only that package knows.
func (g *graph) global(fn *ssa.Function, v *ssa.Global) {
	obj, ok := v.Object().(*types.Var)
	if !ok || obj.Pkg() == nil || obj.Pkg() == g.pass.Pkg || isStd(obj.Pkg()) || isOurs(obj.Pkg()) {
		return
	}
	switch t := obj.Type().Underlying().(type) {
	case *types.Signature:
	case *types.Interface:
		if t.NumMethods() == 0 || isError(obj.Type()) {
			return
		}
	default:
		return
	}
	g.sum[fn].add(opaque, path{"the variable " + obj.Pkg().Name() + "." + obj.Name() + ", which is set elsewhere"})
}

// call notes one call.
func (g *graph) call(fn *ssa.Function, site ssa.CallInstruction) {
	c := site.Common()
	if callee := c.StaticCallee(); callee != nil {
		g.reach(fn, callee, c)
		return
	}
	if _, builtin := c.Value.(*ssa.Builtin); builtin {
		return
	}
	known := false
	if node := g.calls.Nodes[fn]; node != nil {
		for _, e := range node.Out {
			if e.Site == site {
				known = true
				g.reach(fn, e.Callee.Func, c)
			}
		}
	}
	if known {
		return
	}
	if c.IsInvoke() {
		g.unknownMethod(fn, c)
		return
	}
	if !fromOutside(c.Value, 0) {
		g.sum[fn].add(opaque, path{"a function value that comes from elsewhere"})
	}
}

// unknownMethod is a call through an interface whose value this package did
// not make. A parameter's was made by a caller, who is charged for it.
func (g *graph) unknownMethod(fn *ssa.Function, c *ssa.CallCommon) {
	m := c.Method
	if m.Pkg() == nil || isStd(m.Pkg()) {
		if m.Pkg() != nil {
			g.charge(fn, m, c)
		}
		return
	}
	if isOurs(m.Pkg()) || fromOutside(c.Value, 0) {
		return
	}
	g.sum[fn].add(opaque, path{"the method " + m.Name() + " of an interface whose value comes from elsewhere"})
}

// fromOutside reports whether a value is, or was taken out of, a parameter:
// the caller passed it and is charged for it.
func fromOutside(v ssa.Value, depth int) bool {
	if depth > 20 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Parameter, *ssa.FreeVar:
		return true // a free variable was bound where the literal was made, which VTA has looked at
	case *ssa.UnOp, *ssa.FieldAddr, *ssa.Field, *ssa.IndexAddr, *ssa.Index, *ssa.Lookup, *ssa.Extract, *ssa.TypeAssert, *ssa.ChangeType, *ssa.ChangeInterface:
		taken := v.(ssa.Instruction).Operands(nil)[0] // what it was taken out of comes first
		return fromOutside(*taken, depth+1)
	case *ssa.Phi:
		for _, e := range v.Edges {
			if !fromOutside(e, depth+1) {
				return false
			}
		}
		return len(v.Edges) > 0
	case *ssa.Call:
		// What a function returns was made by it, and it was charged.
		return true
	case *ssa.Const:
		return v.IsNil()
	}
	return false
}

// reach notes that fn gets to a function, by a call or by handing it on.
func (g *graph) reach(fn, callee *ssa.Function, c *ssa.CallCommon) {
	if g.funcs[callee] && (callee.Pkg == g.pkg || callee.Pkg == nil) && !g.foreign(callee) {
		g.edges[fn] = append(g.edges[fn], callee)
		g.typeArguments(fn, callee)
		return
	}
	obj, ok := callee.Object().(*types.Func)
	if !ok {
		if o := callee.Origin(); o != nil {
			obj, ok = o.Object().(*types.Func)
		}
	}
	if !ok || obj.Pkg() == nil {
		if g.funcs[callee] {
			g.edges[fn] = append(g.edges[fn], callee) // a wrapper
		}
		return
	}
	if obj.Pkg() == g.pass.Pkg {
		if own := g.prog.FuncValue(obj.Origin()); own != nil && len(own.Blocks) > 0 {
			g.edges[fn] = append(g.edges[fn], own)
		} else {
			g.sum[fn].add(opaque, path{obj.Name() + ", which has no body in Go (assembly, linkname or cgo)"})
		}
		return
	}
	g.charge(fn, obj, c)
	g.typeArguments(fn, callee)
}

// foreign reports whether a function's body was made from another package's
// declaration (a wrapper or an instance of it).
func (g *graph) foreign(fn *ssa.Function) bool {
	obj, ok := fn.Object().(*types.Func)
	return ok && obj.Pkg() != nil && obj.Pkg() != g.pass.Pkg
}

// typeArguments charges fn with the methods of types it hands to a generic
// function, as far as the constraint lets that function call them.
func (g *graph) typeArguments(fn, callee *ssa.Function) {
	origin := callee.Origin()
	if origin == nil || origin.Object() == nil || isGate(origin.Object()) {
		return // a literal inside an instance has no object; the function around it was charged
	}
	sig, ok := origin.Object().Type().(*types.Signature)
	if !ok {
		return
	}
	params := sig.TypeParams()
	for i, arg := range callee.TypeArgs() {
		if i < params.Len() {
			if iface, ok := params.At(i).Constraint().Underlying().(*types.Interface); ok {
				g.methods(fn, arg, iface, nil)
			}
		}
	}
}

// convert charges fn with the methods of a value it puts into an interface,
// since whoever gets that may call them. Where the interface is this
// package's and stays in it, the call graph knows who is called.
func (g *graph) convert(fn *ssa.Function, mi *ssa.MakeInterface) {
	g.uncalled(fn, mi.X.Type())
	iface, ok := mi.Type().Underlying().(*types.Interface)
	if !ok || iface.NumMethods() == 0 {
		return
	}
	if n, ok := mi.Type().(*types.Named); ok && n.Obj().Pkg() == g.pass.Pkg && !returnsInterface(fn) {
		return
	}
	g.methods(fn, mi.X.Type(), iface, mi.X)
}

// returnsInterface reports whether others may get an interface from fn.
func returnsInterface(fn *ssa.Function) bool {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	obj := fn.Object()
	if obj == nil || !obj.Exported() {
		return false
	}
	for v := range fn.Signature.Results().Variables() {
		if types.IsInterface(v.Type()) && !isError(v.Type()) {
			return true
		}
	}
	return false
}

// methods charges fn with a type's methods that an interface has.
func (g *graph) methods(fn *ssa.Function, t types.Type, iface *types.Interface, value ssa.Value) {
	if types.IsInterface(t) {
		return
	}
	for i := range iface.NumMethods() {
		m := iface.Method(i)
		obj, _, _ := types.LookupFieldOrMethod(t, true, m.Pkg(), m.Name())
		method, ok := obj.(*types.Func)
		if !ok || method.Pkg() == nil {
			continue
		}
		if value != nil && isStandardStream(value) {
			continue
		}
		g.method(fn, method)
	}
}

// charge notes what a function of another package does.
func (g *graph) charge(fn *ssa.Function, obj *types.Func, c *ssa.CallCommon) {
	obj = obj.Origin()
	pkg := obj.Pkg()
	if isOurs(pkg) {
		return
	}
	name := pkg.Name() + "." + obj.Name()
	if r := receiver(obj); r != "" {
		name = pkg.Name() + "." + r + "." + obj.Name()
	}
	if isStd(pkg) {
		does := g.std.of(obj)
		if c != nil {
			if strings.HasSuffix(pkg.Path(), "/template") && strings.HasPrefix(obj.Name(), "Execute") {
				g.templated(fn, c)
			}
			does = refine(pkg.Path(), obj.Name(), does, c)
		}
		for k := range kinds {
			if does.has(k) {
				g.sum[fn].add(k, path{name})
			}
		}
		return
	}
	var f reaches
	if g.pass.ImportObjectFact(obj, &f) {
		g.sum[fn].join(name, f.summary())
		return
	}
	if !g.pass.ImportPackageFact(pkg, new(analysed)) {
		g.sum[fn].add(opaque, path{name, "package " + pkg.Path() + " was not analysed"})
	}
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// ours is the module of the gate. Its tool package hands out access that is
// held against the policy when it is used.
const ours = "github.com/seed-3ebc6b8a/gatehouse"

// isOurs reports whether a package is the tool package or one it is made of.
func isOurs(pkg *types.Package) bool {
	switch strings.TrimPrefix(pkg.Path(), ours) {
	case "/tool", "/tool/declare":
		return strings.HasPrefix(pkg.Path(), ours)
	}
	return false
}

func isGate(obj types.Object) bool { return obj != nil && obj.Pkg() != nil && isOurs(obj.Pkg()) }
