package facts

import (
	"encoding/json"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// ran is a simple command with what of the call's needs is its own.
type ran struct {
	command  *shell.Command
	from, to int
}

// holdDeclared holds a call against what its tool says about itself, and each of
// its simple commands against the declared command lines. A declaration adds to
// what a call needs and to what stands against it, and takes nothing away: to
// be declared makes no tool more trusted.
func (x *extractor) holdDeclared() {
	set := x.opts.Declared
	if set == nil {
		return
	}
	held := holding{x: x, needs: x.facts.Needs}
	for _, d := range set.Tool(x.call.Operation) {
		held.tool(d, x.call.Args, held.needs, x.ran)
	}
	if op := x.operation(); op != x.call.Operation {
		for _, d := range set.Tool(op) {
			held.tool(d, x.call.Args, held.needs, x.ran)
		}
	}
	if x.operation() == call.OpRun {
		held.run()
	}
	for _, r := range x.ran {
		held.command(r)
	}
}

// holding holds one call. The needs are those that the gate found out by
// itself, before declarations add to them.
type holding struct {
	x     *extractor
	needs []call.Need
}

// command holds a simple command against the declared command lines.
func (h *holding) command(r ran) {
	fits, odd := h.x.opts.Declared.Command(r.command)
	for _, d := range odd {
		h.note(d, false)
		if !d.Inert {
			h.violation("command", "the command line begins like the declared one of "+d.Name+" ("+strings.Join(d.Command, " ")+") and is another, so nothing says what its words mean")
		}
	}
	for _, f := range fits {
		args, err := json.Marshal(f.Args)
		if err != nil {
			h.violation("command", err.Error())
			continue
		}
		h.tool(f.Declared, args, known(h.needs[r.from:r.to], r.command), []ran{r})
	}
}

// known are the needs that a command names. What a program that no table knows
// may do besides is what its declaration is there to say.
func known(needs []call.Need, c *shell.Command) []call.Need {
	if c.Class != shell.ClassUnknown {
		return needs
	}
	var out []call.Need
	for _, n := range needs {
		if n.Scope != "" {
			out = append(out, n)
		}
	}
	return out
}

// run holds a command in a sandbox: it is read as the shell would read its
// words, and what it needs is all that the sandbox lets through.
func (h *holding) run() {
	r, err := call.ParseRun(h.x.call.Args)
	if err != nil {
		return // described as unknown
	}
	quoted := make([]string, len(r.Command))
	for i, w := range r.Command {
		quoted[i] = shell.Quote(w)
	}
	a := shell.Analyze(strings.Join(quoted, " "), shell.Options{Cwd: h.x.call.Dir, Home: h.x.base.Home, Knowledge: h.x.opts.Knowledge})
	for i := range a.Commands {
		h.command(ran{command: &a.Commands[i], to: len(h.needs)})
	}
}

// tool holds arguments, needs and programs against one declaration.
func (h *holding) tool(d *argument.Declared, args []byte, needs []call.Need, commands []ran) {
	x := h.x
	if d.Inert || d.Policy == nil {
		h.note(d, false)
		h.adds(d, nil, args)
		return
	}
	g, err := x.opts.Declared.Gate(d, match.Base{Dir: x.root, Home: x.base.Home})
	if err != nil {
		h.note(d, false)
		h.violation("operation", "what "+d.Name+" declares cannot be held against this call: "+err.Error())
		return
	}
	g = g.In(x.base.Dir)
	var links match.Linker
	if x.world != nil {
		links = x.world
	}
	x.facts.ToolViolations = append(x.facts.ToolViolations, g.Check(args, links)...)
	used := g.Uses(args)
	roles := make(map[string]bool) // where roles say more than a guess
	g.Roles(args, func(where, _ string, _ declare.RoleSet) { roles[where] = true })
	for i := range needs {
		n := &needs[i]
		if x.untrusted && judged(n, roles) || n.Capability == call.ProcExec && len(commands) > 0 && n.Scope != "" {
			continue // the programs are held below, by the words that name them
		}
		if err := g.CheckNeed(n, x.untrusted, x.root); err != nil {
			h.violation(whence(n), err.Error())
			continue
		}
		used = used || g.Grants(n.Capability)
	}
	for _, r := range commands {
		if err := program(g, r.command); err != nil {
			h.violation("command", err.Error())
		}
	}
	if x.facts.Partial && g.Engaged() {
		h.violation("command", "not all of the command line can be read, so it cannot be held against what "+d.Name+" declares")
	}
	h.note(d, used)
	h.adds(d, g, args)
}

// judged says whether a need is a guess about an argument that has a role, or
// a claim of the tool's server about all of its calls.
func judged(n *call.Need, roles map[string]bool) bool {
	where := whence(n)
	return where == "operation" || roles[where]
}

// whence is what in the call makes a need.
func whence(n *call.Need) string {
	if len(n.Evidence) == 0 {
		return "operation"
	}
	return n.Evidence[0].Where
}

// program holds the program of a command against the exec side: the words
// that name it, not the file that they lead to.
func program(g *argument.Gate, c *shell.Command) error {
	if c.Program == "" {
		return g.CheckNeed(&call.Need{Capability: call.ProcExec}, false, "")
	}
	return g.CheckProgram(c.Word)
}

func (h *holding) violation(where, text string) {
	h.x.facts.ToolViolations = append(h.x.facts.ToolViolations, call.Evidence{Where: where, Text: text})
}

// note tells that a declaration holds for the call.
func (h *holding) note(d *argument.Declared, used bool) {
	t := DeclaredTool{Name: d.Name, Risk: declare.Unknown, Used: used, Inert: d.Inert}
	if d.Policy != nil {
		t.Risk = d.Policy.Risk
	}
	for i := range h.x.facts.Declared {
		if known := &h.x.facts.Declared[i]; known.Name == t.Name {
			known.Used = known.Used || used
			return
		}
	}
	h.x.facts.Declared = append(h.x.facts.Declared, t)
}

// adds puts what the declaration says about the call's needs to those that the
// gate found out: the capabilities, and what the roles of arguments mean.
func (h *holding) adds(d *argument.Declared, g *argument.Gate, args []byte) {
	x := h.x
	for _, c := range d.Capabilities {
		x.claimed(c, "operation", "declared by "+d.Name)
	}
	if !x.untrusted || g == nil {
		return // what a known tool does with its arguments is known
	}
	g.Roles(args, func(where, text string, roles declare.RoleSet) {
		s := String{Where: where, Text: text}
		if roles&declare.IsRead != 0 && !x.has(call.FSRead, where) {
			x.path(call.FSRead, s)
		}
		if roles&declare.IsWrite != 0 {
			x.path(call.FSWrite, s)
		}
		if roles&declare.IsURL != 0 && !x.has(call.NetEgress, where) {
			x.host(text, call.Evidence{Where: where, Text: text})
		}
		if roles&declare.IsCommand != 0 {
			x.need(call.ProcExec, "", call.Evidence{Where: where, Text: "takes a command"})
			x.facts.TakesCode = true
		}
	})
}

// claims adds what the tool says that this very call needs.
func (x *extractor) claims() {
	if x.call.Tool == nil {
		return
	}
	for _, c := range x.call.Tool.Needs {
		x.claimed(c, "needs", "the tool says so of this call")
	}
}

// claimed adds a need that somebody wrote down. A path that does not say where
// it leads counts as the widest.
func (x *extractor) claimed(text, where, by string) {
	n := call.ParseNeed(text)
	n.Evidence = []call.Evidence{{Where: where, Text: by}}
	switch {
	case strings.Contains("/"+n.Scope+"/", "/../"):
		n.Scope = ""
	case strings.HasPrefix(n.Scope, "./") && x.root != "":
		n.Inside, n.Root = true, x.rootID()
	}
	x.facts.Needs = append(x.facts.Needs, n)
}

// has says whether a need was found at a place of the arguments.
func (x *extractor) has(c call.Capability, where string) bool {
	for i := range x.facts.Needs {
		if n := &x.facts.Needs[i]; n.Capability == c && whence(n) == where {
			return true
		}
	}
	return false
}
