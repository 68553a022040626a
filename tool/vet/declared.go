package vet

import (
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// A declaration is one tool as it is made in the source.
type declaration struct {
	pos      token.Pos
	name     string // "" if it is not constant
	policy   bool   // it has one
	grants   grants
	executor *ssa.Function // nil if it is not known here
}

// declarations finds the tools that the package makes: calls of tool.New and
// tool.Process, found by what they are and not by how they are spelt.
func (g *graph) declarations() []declaration {
	var out []declaration
	for fn := range g.funcs {
		if g.foreign(fn) {
			continue
		}
		for _, b := range fn.Blocks {
			for _, instr := range b.Instrs {
				if c, ok := instr.(*ssa.Call); ok && makesTool(c.Common()) {
					out = append(out, g.declared(c, nil, 0)...)
				}
			}
		}
	}
	return out
}

func makesTool(c *ssa.CallCommon) bool {
	callee := c.StaticCallee()
	if callee == nil || len(c.Args) != 2 {
		return false
	}
	if o := callee.Origin(); o != nil {
		callee = o
	}
	obj := callee.Object()
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == ours+"/tool" && (obj.Name() == "New" || obj.Name() == "Process")
}

// maxWrappers bounds how many functions of the package a declaration may pass
// through on its way to tool.New.
const maxWrappers = 3

// bindings are the arguments of the calls that led here.
type bindings map[*ssa.Parameter]ssa.Value

// declared reads one declaration. Where it depends on parameters, there is one
// for every call of the function around it.
func (g *graph) declared(c *ssa.Call, bound bindings, depth int) []declaration {
	args := c.Common().Args
	if depth < maxWrappers && g.needsCaller(args, bound) {
		var out []declaration
		for _, site := range g.callers(outermost(c.Parent(), bound)) {
			next := bindings{}
			for p, v := range bound {
				next[p] = v
			}
			for i, p := range site.Common().StaticCallee().Params {
				next[p] = site.Common().Args[i]
			}
			for _, d := range g.declared(c, next, depth+1) {
				d.pos = site.Pos()
				out = append(out, d)
			}
		}
		if out != nil {
			return out
		}
	}
	d := declaration{pos: c.Pos()}
	spec := g.fields(args[0], bound, 0)
	if name, ok := spec["Name"]; ok {
		if k, ok := resolve(name, bound).(*ssa.Const); ok && k.Value != nil && k.Value.Kind() == constant.String {
			d.name = constant.StringVal(k.Value)
		}
	}
	policy, has := spec["Policy"]
	if spec["*"] != nil {
		policy, has = unknownValue, true
	}
	if has {
		if k, ok := resolve(policy, bound).(*ssa.Const); ok && k.IsNil() {
			has = false
		}
	}
	d.policy = has
	if has {
		d.grants = g.policy(policy, bound)
	}
	d.executor = g.function(args[1], bound, 0)
	return []declaration{d}
}

// outermost returns the function whose callers would bind more.
func outermost(fn *ssa.Function, bound bindings) *ssa.Function {
	for {
		moved := false
		for p, v := range bound {
			if p.Parent() != fn {
				continue
			}
			if up := parentOf(v); up != nil && up != fn {
				fn, moved = up, true
				break
			}
		}
		if !moved {
			return fn
		}
	}
}

func parentOf(v ssa.Value) *ssa.Function {
	if p, ok := v.(interface{ Parent() *ssa.Function }); ok {
		return p.Parent()
	}
	return nil
}

// needsCaller reports whether an argument is, or is made of, a parameter that
// is not bound yet.
func (g *graph) needsCaller(args []ssa.Value, bound bindings) bool {
	if isParameter(resolve(args[1], bound)) {
		return true
	}
	if isParameter(resolve(args[0], bound)) {
		return true
	}
	spec := g.fields(args[0], bound, 0)
	if p, ok := spec["Policy"]; ok && isParameter(resolve(p, bound)) {
		return true
	}
	return false
}

func isParameter(v ssa.Value) bool {
	_, ok := v.(*ssa.Parameter)
	return ok
}

// callers returns the static calls of a function within the package.
func (g *graph) callers(fn *ssa.Function) []*ssa.Call {
	var out []*ssa.Call
	for caller := range g.funcs {
		for _, b := range caller.Blocks {
			for _, instr := range b.Instrs {
				if c, ok := instr.(*ssa.Call); ok && c.Common().StaticCallee() == fn {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// resolve follows a value to what it was bound to, through conversions and
// variables that are set once.
func resolve(v ssa.Value, bound bindings) ssa.Value {
	for range 20 {
		switch x := v.(type) {
		case *ssa.Parameter:
			to, ok := bound[x]
			if !ok {
				return v
			}
			v = to
		case *ssa.ChangeType:
			v = x.X
		case *ssa.UnOp:
			if a, ok := x.X.(*ssa.Alloc); ok && x.Op == token.MUL {
				if only := onlyStore(a); only != nil {
					v = only
					continue
				}
			}
			return v
		default:
			return v
		}
	}
	return v
}

// onlyStore returns the one value that is stored in a variable as a whole, nil
// if there are several or if parts of it are stored.
func onlyStore(a *ssa.Alloc) ssa.Value {
	var only ssa.Value
	for _, r := range *a.Referrers() {
		switch r := r.(type) {
		case *ssa.Store:
			if r.Addr == a {
				if only != nil {
					return nil
				}
				only = r.Val
			}
		case *ssa.FieldAddr:
			for _, u := range *r.Referrers() {
				if st, ok := u.(*ssa.Store); ok && st.Addr == r {
					return nil
				}
			}
		}
	}
	return only
}

// fields returns the values a struct was made of, by field. A field that is
// set twice is unknown; if nothing of the struct can be known, so is "*".
func (g *graph) fields(v ssa.Value, bound bindings, depth int) map[string]ssa.Value {
	v = resolve(v, bound)
	var at ssa.Value
	switch x := v.(type) {
	case *ssa.Const:
		return map[string]ssa.Value{} // the zero value
	case *ssa.UnOp:
		at = x.X
	case *ssa.Alloc, *ssa.Global, *ssa.FieldAddr:
		at = x
	}
	if at == nil || depth > 8 {
		return map[string]ssa.Value{"*": unknownValue}
	}
	whole, wholes := map[string]ssa.Value{}, 0
	parts := map[string][]ssa.Value{}
	for _, instr := range g.uses(at) {
		switch i := instr.(type) {
		case *ssa.Store:
			if i.Addr != at {
				continue
			}
			if wholes++; wholes > 1 {
				return map[string]ssa.Value{"*": unknownValue}
			}
			whole = g.fields(i.Val, bound, depth+1)
		case *ssa.FieldAddr:
			if i.X == at {
				name := fieldName(i)
				parts[name] = append(parts[name], stored(i)...)
			}
		}
	}
	for name, values := range parts {
		_, before := whole[name]
		switch {
		case len(values) == 1 && !before:
			whole[name] = values[0]
		case len(values) > 0:
			whole[name] = unknownValue
		}
	}
	return whole
}

// stored returns what is put into a field: values, or the field's address if it
// is a struct that is filled in place.
func stored(fa *ssa.FieldAddr) []ssa.Value {
	var out []ssa.Value
	for _, u := range *fa.Referrers() {
		switch u := u.(type) {
		case *ssa.Store:
			if u.Addr == fa {
				out = append(out, u.Val)
			}
		case *ssa.FieldAddr:
			if u.X == fa && len(out) == 0 {
				out = append(out, fa)
			}
		}
	}
	return out
}

// unknownValue stands for what cannot be read.
var unknownValue = ssa.Value(&ssa.Builtin{})

// uses returns the instructions that use an address. Globals have no list of
// them; theirs are in the package's functions.
func (g *graph) uses(at ssa.Value) []ssa.Instruction {
	if refs := at.Referrers(); refs != nil {
		return *refs
	}
	var out []ssa.Instruction
	for fn := range g.funcs {
		for _, b := range fn.Blocks {
			for _, instr := range b.Instrs {
				switch i := instr.(type) {
				case *ssa.FieldAddr:
					if i.X == at {
						out = append(out, i)
					}
				case *ssa.Store:
					if i.Addr == at {
						out = append(out, i)
					}
				}
			}
		}
	}
	return out
}

func fieldName(fa *ssa.FieldAddr) string {
	t := fa.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct)
	return t.Field(fa.Field).Name()
}

// policy reads a *declare.Policy.
func (g *graph) policy(v ssa.Value, bound bindings) grants {
	v = resolve(v, bound)
	if load, ok := v.(*ssa.UnOp); ok && load.Op == token.MUL {
		if gl, ok := load.X.(*ssa.Global); ok { // a variable that holds a pointer
			return g.variable(gl, bound)
		}
	}
	if gl, ok := v.(*ssa.Global); ok { // the address of a variable
		return g.variable(gl, bound)
	}
	if _, ok := v.(*ssa.Alloc); !ok {
		return grants{}
	}
	return g.stances(v, bound)
}

// variable reads a policy that is a package-level variable, of this package or,
// by its fact, of another.
func (g *graph) variable(gl *ssa.Global, bound bindings) grants {
	obj, ok := gl.Object().(*types.Var)
	if !ok {
		return grants{}
	}
	if obj.Pkg() != g.pass.Pkg {
		var f grants
		g.pass.ImportObjectFact(obj, &f)
		return f
	}
	var stored ssa.Value
	parts := false
	for _, u := range g.uses(gl) {
		switch u := u.(type) {
		case *ssa.Store:
			if stored != nil {
				return grants{} // it is set more than once
			}
			stored = u.Val
		case *ssa.FieldAddr:
			parts = true
		}
	}
	switch {
	case stored == nil:
		return g.stances(gl, bound)
	case parts:
		return grants{}
	}
	if _, pointer := stored.Type().Underlying().(*types.Pointer); pointer {
		return g.policy(stored, bound)
	}
	return g.stances(stored, bound)
}

// stances reads the stances of a policy from the struct's fields.
func (g *graph) stances(v ssa.Value, bound bindings) grants {
	top := g.fields(v, bound, 0)
	files := map[string]ssa.Value{}
	if f, ok := top["Filesystem"]; ok {
		files = g.fields(f, bound, 0)
	} else if top["*"] != nil {
		files = top
	}
	var out grants
	for _, s := range []struct {
		side  declare.Side
		from  map[string]ssa.Value
		field string
	}{{declare.Read, files, "Read"}, {declare.Write, files, "Write"}, {declare.Network, top, "Network"}, {declare.Environment, top, "Environment"}, {declare.Exec, top, "Exec"}} {
		value, set := s.from[s.field]
		granted, known := false, s.from["*"] == nil
		if set {
			granted, known = g.stance(value, bound)
		}
		if known {
			out.Known |= 1 << s.side
		}
		if granted {
			out.Granted |= 1 << s.side
		}
	}
	return out
}

// stance reads a stance: does it grant anything, and is that known?
func (g *graph) stance(v ssa.Value, bound bindings) (granted, known bool) {
	v = resolve(v, bound)
	switch x := v.(type) {
	case *ssa.Const:
		return false, true
	case *ssa.Call:
		callee := x.Common().StaticCallee()
		if callee == nil || !isGate(callee.Object()) || callee.Name() != "Only" {
			return false, false
		}
		k, empty := x.Common().Args[0].(*ssa.Const)
		return !empty || !k.IsNil(), true
	case *ssa.UnOp:
		switch from := x.X.(type) {
		case *ssa.Global:
			if isGate(from.Object()) {
				return from.Name() == "All", true
			}
			for _, u := range g.uses(from) {
				if st, ok := u.(*ssa.Store); ok && st.Addr == from {
					return g.stance(st.Val, bound)
				}
			}
		case *ssa.Alloc:
			return false, len(*from.Referrers()) <= 1 // the zero value
		}
	}
	return false, false
}

// function finds the function that a value is.
func (g *graph) function(v ssa.Value, bound bindings, depth int) *ssa.Function {
	if depth > 8 {
		return nil
	}
	switch x := resolve(v, bound).(type) {
	case *ssa.Function:
		return x
	case *ssa.MakeClosure:
		return g.function(x.Fn, bound, depth+1)
	case *ssa.Call: // a function that returns a literal
		callee := x.Common().StaticCallee()
		if callee == nil {
			return nil
		}
		var found *ssa.Function
		for _, b := range callee.Blocks {
			if ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok && len(ret.Results) > 0 {
				f := g.function(ret.Results[0], bound, depth+1)
				if f == nil || found != nil && f != found {
					return nil
				}
				found = f
			}
		}
		return found
	case *ssa.UnOp:
		gl, ok := x.X.(*ssa.Global)
		if !ok {
			return nil
		}
		var found *ssa.Function
		for _, u := range g.uses(gl) {
			st, ok := u.(*ssa.Store)
			if !ok {
				continue
			}
			f := g.function(st.Val, bound, depth+1)
			if f == nil || found != nil {
				return nil
			}
			found = f
		}
		return found
	}
	return nil
}
