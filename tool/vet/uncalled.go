package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// unasked are the methods that the standard library calls by itself on
// whatever it is given as any: to print it, to write it and to read it.
var unasked = names("String GoString Format Error MarshalJSON MarshalJSONTo MarshalText AppendText MarshalBinary AppendBinary MarshalXML MarshalXMLAttr " +
	"UnmarshalJSON UnmarshalJSONFrom UnmarshalText UnmarshalBinary UnmarshalXML UnmarshalXMLAttr GobEncode GobDecode Scan Value LogValue Set IsZero")

// uncalled charges fn with methods that nobody in sight calls: those that the
// standard library looks for in a value, and in what the value holds.
func (g *graph) uncalled(fn *ssa.Function, t types.Type) {
	list, known := g.unasked[t]
	if !known {
		list = methodsIn(t, map[types.Type]bool{}, func(name string) bool { return unasked[name] })
		g.unasked[t] = list
	}
	for _, m := range list {
		g.method(fn, m)
	}
}

// templated charges fn with all methods of what it hands to a template, whose
// text may call any of them.
func (g *graph) templated(fn *ssa.Function, c *ssa.CallCommon) {
	for _, a := range c.Args {
		if mi, ok := a.(*ssa.MakeInterface); ok {
			for _, m := range methodsIn(mi.X.Type(), map[types.Type]bool{}, ast.IsExported) {
				g.method(fn, m)
			}
		}
	}
}

// methodsIn lists the methods of a type, and of what values of it hold, that
// are called by others than those who see the type.
func methodsIn(t types.Type, seen map[types.Type]bool, called func(string) bool) (out []*types.Func) {
	if seen[t] || types.IsInterface(t) {
		return nil
	}
	seen[t] = true
	if n, ok := types.Unalias(t).(*types.Named); ok {
		if pkg := n.Obj().Pkg(); pkg != nil && isStd(pkg) {
			return nil // printing or writing one of the library's own touches nothing
		}
		set := types.NewMethodSet(types.NewPointer(n))
		for i := range set.Len() {
			if m, ok := set.At(i).Obj().(*types.Func); ok && called(m.Name()) {
				out = append(out, m)
			}
		}
	}
	var parts []types.Type
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		parts = append(parts, u.Elem())
	case *types.Slice:
		parts = append(parts, u.Elem())
	case *types.Array:
		parts = append(parts, u.Elem())
	case *types.Map:
		parts = append(parts, u.Key(), u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() || f.Embedded() {
				parts = append(parts, f.Type())
			}
		}
	}
	for _, p := range parts {
		out = append(out, methodsIn(p, seen, called)...)
	}
	return out
}

// method charges fn with a method of this package or another.
func (g *graph) method(fn *ssa.Function, m *types.Func) {
	if m.Pkg() != g.pass.Pkg {
		g.charge(fn, m, nil)
		return
	}
	if own := g.prog.FuncValue(m.Origin()); own != nil {
		g.reach(fn, own, nil)
	}
}
