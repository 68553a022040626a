package vet

import (
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// refine looks at the arguments of a call: which flags a file is opened with,
// whether a stream is one of the process's own, whether a file system is
// embedded.
func refine(pkg, name string, does caps, c *ssa.CallCommon) caps {
	args := c.Args
	switch {
	case pkg == "os" && name == "OpenFile":
		for _, a := range args {
			if b, ok := a.Type().Underlying().(*types.Basic); ok && b.Kind() == types.Int {
				return openFlags(a)
			}
		}
	case pkg == "os" && len(args) > 0 && isStandardStream(args[0]), pkg == "net/http" && isMethodOfClient(c) && given(args[0]):
		return 0
	case pkg == "go/parser" && name == "ParseFile" && len(args) > 2:
		if _, given := args[2].(*ssa.MakeInterface); given {
			return 0 // it parses what it is given
		}
	case pkg == "io/fs" && len(args) > 0:
		if mi, ok := args[0].(*ssa.MakeInterface); ok && embedded(mi.X.Type()) {
			return 0
		}
	}
	return does
}

func isMethodOfClient(c *ssa.CallCommon) bool {
	fn := c.StaticCallee()
	if fn == nil || fn.Signature.Recv() == nil || len(c.Args) == 0 {
		return false
	}
	p, ok := fn.Signature.Recv().Type().(*types.Pointer)
	return ok && isHTTPClient(p.Elem())
}

// openFlags reads the flag of os.OpenFile; a flag that is not constant may be
// any.
func openFlags(v ssa.Value) caps {
	k, ok := v.(*ssa.Const)
	if !ok || k.Value == nil {
		return set(reads, writes)
	}
	flag, _ := constant.Int64Val(k.Value)
	switch {
	case flag&int64(os.O_RDWR) != 0:
		return set(reads, writes)
	case flag&int64(os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0:
		return set(writes)
	}
	return set(reads)
}

// embedded reports whether a file system has only what the program brought.
func embedded(t types.Type) bool {
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && (n.Obj().Pkg().Path() == "embed" || n.Obj().Pkg().Path() == "testing/fstest")
}

// isStandardStream reports whether a value is os.Stdin, os.Stdout or os.Stderr.
func isStandardStream(v ssa.Value) bool {
	load, ok := v.(*ssa.UnOp)
	if !ok || load.Op != token.MUL {
		return false
	}
	v2, ok := load.X.(*ssa.Global)
	if !ok || v2.Object() == nil || v2.Object().Pkg() == nil || v2.Object().Pkg().Path() != "os" {
		return false
	}
	return strings.HasPrefix(v2.Name(), "Std")
}
