package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

func (a *analyzer) stmts(list []*syntax.Stmt) output {
	var out output
	for _, s := range list {
		out = a.stmt(s)
	}
	if len(list) != 1 {
		return output{given: true}
	}
	return out
}

// stmt follows one statement and says what is known of its output.
func (a *analyzer) stmt(s *syntax.Stmt) output {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && !s.Background {
		return a.call(s, call)
	}
	saved := a.stdin
	if len(s.Redirs) > 0 {
		if in, ok := a.redirects(s.Redirs, s.Cmd == nil); ok {
			a.stdin = in
		}
	}
	var out output
	if s.Background || s.Coprocess {
		mark := a.st.mark()
		a.forks++
		out = a.command(s)
		a.forks--
		a.st.restore(mark)
	} else {
		out = a.command(s)
	}
	a.stdin = saved
	if redirectsStdout(s.Redirs) {
		return output{}
	}
	return out
}

func (a *analyzer) command(s *syntax.Stmt) output {
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		bare := *s
		bare.Redirs = nil
		return a.call(&bare, c)
	case *syntax.BinaryCmd:
		return a.binary(c)
	case *syntax.Block:
		return a.stmts(c.Stmts)
	case *syntax.Subshell:
		return a.subshell(c.Stmts)
	case *syntax.IfClause:
		a.ifClause(c)
	case *syntax.WhileClause:
		a.loop(func() {
			a.stmts(c.Cond)
			a.stmts(c.Do)
		})
	case *syntax.ForClause:
		a.forClause(c)
	case *syntax.CaseClause:
		a.caseClause(c)
	case *syntax.FuncDecl:
		a.funcDecl(c)
	case *syntax.ArithmCmd:
		a.arithmetic(c.X)
	case *syntax.TestClause:
		a.test(c.X)
	case *syntax.DeclClause:
		a.declClause(c)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			a.arithmetic(x)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return a.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		if c.Name != nil {
			a.one(c.Name)
		}
		return a.subshell([]*syntax.Stmt{c.Stmt})
	default:
		a.note(NoteDialect, "a construct that is not analysed", a.span(s))
	}
	return output{given: true}
}

// subshell follows statements whose assignments end with them.
func (a *analyzer) subshell(list []*syntax.Stmt) output {
	if a.depth >= maxDepth {
		a.limit("code is nested too deeply", Span{})
		return output{given: true}
	}
	mark, cur, funcs := a.st.mark(), a.cur, a.st.funcs
	a.cur = -1
	a.depth++
	out := a.stmts(list)
	a.depth--
	a.st.restore(mark)
	a.cur, a.st.funcs = cur, funcs
	return out
}

// processSubstitution follows <(…) and >(…).
func (a *analyzer) processSubstitution(p *syntax.ProcSubst) {
	saved := a.stdin
	if p.Op == syntax.CmdOut {
		a.stdin = output{given: true, at: -1}
	}
	a.subshell(p.Stmts)
	a.stdin = saved
}

// binary follows pipelines and && and || lists. In a chain of && each command
// runs only if those before it succeeded, so what they assigned holds until
// the chain ends. The chain is flattened, because it may be long.
func (a *analyzer) binary(c *syntax.BinaryCmd) output {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		return a.pipeline(c)
	}
	var buf [8]*syntax.BinaryCmd
	links, first := chain(buf[:0], c, syntax.AndStmt, syntax.OrStmt)
	out := a.stmt(first)
	mark := a.st.mark()
	for i := len(links) - 1; i >= 0; i-- {
		if links[i].Op == syntax.OrStmt {
			a.st.forget(mark)
			mark = a.st.mark()
		}
		out = a.stmt(links[i].Y)
	}
	a.st.forget(mark)
	if len(links) > 1 {
		return output{given: true}
	}
	return out
}

// chain takes a list of commands joined by either of two operators apart:
// the links from the last to the first, and the command before them all.
func chain(links []*syntax.BinaryCmd, c *syntax.BinaryCmd, one, other syntax.BinCmdOperator) ([]*syntax.BinaryCmd, *syntax.Stmt) {
	for {
		links = append(links, c)
		b, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || (b.Op != one && b.Op != other) || len(c.X.Redirs) > 0 || c.X.Background || c.X.Negated {
			return links, c.X
		}
		c = b
	}
}

// pipeline follows a | b | c: each runs in a subshell and gets the output of
// the one before.
func (a *analyzer) pipeline(c *syntax.BinaryCmd) output {
	var buf [8]*syntax.BinaryCmd
	parts, first := chain(buf[:0], c, syntax.Pipe, syntax.PipeAll)
	saved := a.stdin
	mark := a.st.mark()
	a.forks++
	defer func() { a.forks-- }()
	out := a.stmt(first)
	a.st.restore(mark)
	for i := len(parts) - 1; i >= 0; i-- {
		out.given = true
		a.stdin = out
		out = a.stmt(parts[i].Y)
		a.st.restore(mark)
	}
	a.stdin = saved
	return out
}

func (a *analyzer) ifClause(c *syntax.IfClause) {
	mark := a.st.mark()
	for c != nil {
		a.stmts(c.Cond)
		branch := a.st.mark()
		a.stmts(c.Then)
		a.st.forget(branch)
		c = c.Else
	}
	a.st.forget(mark)
}

func (a *analyzer) caseClause(c *syntax.CaseClause) {
	a.one(c.Word)
	mark := a.st.mark()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.one(p)
		}
		a.stmts(item.Stmts)
		a.st.forget(mark)
	}
}

// loop follows a body that runs any number of times. What the body assigns is
// not known at its start; collectLoops has gathered those names.
func (a *analyzer) loop(body func()) {
	mark, outer := a.st.mark(), a.st.loop
	if a.loopDirs {
		a.st.chdir(directory{lost: true})
	}
	a.st.loops++
	a.st.loop = a.st.loops
	body()
	a.st.loop = outer
	a.st.forget(mark)
}

func (a *analyzer) forClause(c *syntax.ForClause) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		var items []word
		for _, w := range l.Items {
			items = a.fields(items, w)
		}
		v := iterValue(items)
		if !l.InPos.IsValid() {
			v = nil // the positional parameters
		}
		a.loop(func() {
			a.setVar(l.Name.Value, v)
			a.assigns(l.Name.Value, a.span(l))
			a.stmts(c.Do)
		})
	case *syntax.CStyleLoop:
		a.arithmetic(l.Init)
		a.loop(func() {
			for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
				a.counter(x)
			}
			a.stmts(c.Do)
			a.arithmetic(l.Cond)
			a.arithmetic(l.Post)
		})
	}
}

// counter marks the variable a C-style loop counts with as a number.
func (a *analyzer) counter(x syntax.ArithmExpr) {
	if b, ok := x.(*syntax.BinaryArithm); ok {
		if name := assignedName(b); name != "" {
			a.setVar(name, &value{plain: true, number: true})
		}
	}
}

// iterValue is what a loop variable may be.
func iterValue(items []word) *value {
	if len(items) == 0 {
		return nil
	}
	v := &value{plain: true, number: true, listing: true, root: items[0].listRoot()}
	total := 0
	for i := range items {
		w := &items[i]
		v.plain = v.plain && w.plain
		v.number = v.number && w.number
		v.listing = v.listing && w.listing && w.listRoot() == v.root
		if !w.known {
			total = maxAlternatives + 1
			continue
		}
		if w.glob {
			v.glob = true
		}
		if w.values() != nil {
			v.alts = append(v.alts, w.values()...)
		} else {
			v.alts = append(v.alts, w.text)
		}
	}
	if v.plain || v.listing {
		v.alts = nil
		return v
	}
	if allNumbers(v.alts) && total == 0 {
		return &value{plain: true, number: true}
	}
	if total > 0 || len(v.alts) > maxAlternatives {
		return nil
	}
	v.plain, v.number, v.listing = false, false, false
	return v
}

// funcDecl follows the body as if it were called with arguments that are not
// known: what a function does counts whether or not a call is seen.
func (a *analyzer) funcDecl(c *syntax.FuncDecl) {
	if c.Name == nil {
		a.note(NoteDialect, "a function without a name", a.span(c))
		return
	}
	fn := &function{}
	if a.st.funcs == nil {
		a.st.funcs = map[string]*function{}
	}
	a.st.funcs[c.Name.Value] = fn
	outer := a.inFunc
	a.inFunc = fn
	a.loop(func() {
		if a.anyDirs {
			a.st.chdir(directory{lost: true}) // the call may stand behind a cd
		}
		a.stmt(c.Body)
	})
	a.inFunc = outer
}

// collectLoops gathers the names that loops and functions assign, once for
// the whole text, so that a loop need not be searched for each of them.
func (a *analyzer) collectLoops(file *syntax.File) {
	assigned, words := map[string]bool{}, map[string]bool{}
	for name := range a.loopAssigned {
		assigned[name], words[name] = true, true
	}
	depth := 0
	var depths []bool
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			if depths[len(depths)-1] {
				depth--
			}
			depths = depths[:len(depths)-1]
			return true
		}
		enters := false
		switch n := n.(type) {
		case *syntax.WhileClause, *syntax.FuncDecl:
			enters = true
		case *syntax.ForClause:
			enters = true
			if it, ok := n.Loop.(*syntax.WordIter); ok {
				words[it.Name.Value] = true
				if depth > 0 {
					assigned[it.Name.Value] = true
				}
			}
		case *syntax.Assign:
			if n.Name != nil {
				if !numericAssign(n) {
					words[n.Name.Value] = true
				}
				if depth > 0 {
					assigned[n.Name.Value] = true
				}
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				a.collectBuiltin(n, assigned, words, depth > 0)
			}
		case *syntax.BinaryArithm:
			if name := assignedName(n); name != "" && depth > 0 {
				assigned[name] = true
			}
		}
		if enters {
			depth++
		}
		depths = append(depths, enters)
		return true
	})
	a.loopAssigned, a.wordAssigned = assigned, words
}

// numericAssign recognises x=1 and x=$((…)).
func numericAssign(n *syntax.Assign) bool {
	if n.Value == nil || n.Append || n.Index != nil || len(n.Value.Parts) != 1 {
		return false
	}
	if _, ok := n.Value.Parts[0].(*syntax.ArithmExp); ok {
		return true
	}
	return isNumber(n.Value.Lit())
}

// collectBuiltin notices the builtins that assign or change directory.
func (a *analyzer) collectBuiltin(n *syntax.CallExpr, assigned, words map[string]bool, inLoop bool) {
	switch n.Args[0].Lit() {
	case "read", "printf", "mapfile", "readarray", "getopts":
		for _, w := range n.Args[1:] {
			words[w.Lit()] = true
			if inLoop {
				assigned[w.Lit()] = true
			}
		}
	case "cd", "pushd", "popd":
		a.anyDirs = true
		a.loopDirs = a.loopDirs || inLoop
	}
}
