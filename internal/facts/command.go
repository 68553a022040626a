package facts

import (
	"fmt"
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// commandFields are the arguments that hold the command of a shell tool.
var commandFields = fields("command cmd script CommandLine")

// command describes a command line by what its simple commands do.
func (x *extractor) command(strs []String) {
	text, where, ok := commandText(strs)
	if !ok {
		x.unknown("runs a command that is not in the usual place", true)
		return
	}
	x.nul(strings.IndexByte(text, 0) >= 0, text)
	dir, ok := x.workdir(strs)
	if !ok {
		x.unknown("runs a command in a directory that cannot be told", true)
		return
	}
	opts := shell.Options{Cwd: dir, Home: x.base.Home, Knowledge: x.opts.Knowledge}
	if x.root != "" {
		opts.Workspace = []string{x.root}
	}
	if x.world != nil {
		opts.World = x.world
	}
	a := shell.Analyze(text, opts)
	f := x.facts
	f.Script = text
	f.Class, f.Irreversible = a.Class.String(), a.Irreversible()
	// Code that the analysis sees through is described by its effects; what
	// it does not see through is code.
	f.Partial = !a.Complete
	f.TakesCode = a.Class == shell.ClassUnknown || !a.Complete
	x.confine(a, where)
	for i := range a.Commands {
		c := &a.Commands[i]
		f.Commands = append(f.Commands, strings.TrimSpace(span(text, c.Span)))
		f.Simple = append(f.Simple, simple(c))
		if c.Resolved != "" {
			x.look(c.Resolved)
		}
		x.guardCommand(c, where)
	}
	for i := range a.Commands {
		c, had := &a.Commands[i], len(f.Needs)
		for j := range c.Effects {
			e := &c.Effects[j]
			x.effect(c, e, call.Evidence{Where: fmt.Sprintf("%s[%d:%d]", where, e.Span.Start, e.Span.End), Text: span(text, e.Span)})
		}
		x.ran = append(x.ran, ran{command: c, from: had, to: len(f.Needs)})
	}
	f.Words = a.Words()
	x.score(risk.Of(risk.FromShell(a)), where)
}

// dirFields are the arguments that say where a command runs.
var dirFields = fields("workdir cwd Cwd directory dir_path working_directory working_dir dir")

// workdir is where a command runs: where the call was made, or where its
// arguments say.
func (x *extractor) workdir(strs []String) (dir string, ok bool) {
	dir = x.call.Dir
	for _, s := range strs {
		if s.Key || s.Text == "" || !dirFields[s.Name] {
			continue
		}
		real, byWords, problem := x.resolve(s.Text)
		if problem != "" || real != byWords || !path.IsAbs(real) {
			return "", false
		}
		x.look(real)
		// Everything that is relative is relative to there.
		dir, x.base.Dir = real, real
	}
	return dir, true
}

// confine describes a command whose unknown parts are all code that a sandbox
// holds, where the host lets the gate put one around it: what it needs is to
// run code that can change the workspace and nothing else, and reach nobody.
func (x *extractor) confine(a *shell.Analysis, where string) {
	if !x.call.Rewrites || x.root == "" || !a.Bounded() || !hostsKnown(a) {
		return
	}
	x.facts.Wrapped, x.facts.TakesCode = true, false
	x.facts.Needs = append(x.facts.Needs, call.Need{
		Capability: call.ProcExec, Scope: call.Confined, Inside: true, Root: x.rootID(),
		Evidence: []call.Evidence{{Where: where, Text: "runs code that the words do not show, confined to the workspace"}},
	})
}

// hostsKnown says whether everything that a command contacts is a host with a
// public name, which a sandbox can let it reach and nobody else.
func hostsKnown(a *shell.Analysis) bool {
	known := true
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		if e.Kind != shell.KindNetwork || e.General && (namesServer(c) || bounded(c)) {
			return true // it has a host, or does without the network
		}
		h, err := match.ParseHost(e.Host)
		known = err == nil && e.Host != "" && !h.Class().Local()
		return known
	})
	return known
}

// shells are the programs that run text given with -c.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true, "mksh": true}

// commandText finds the command among the arguments. A list of words, as some
// hosts send it, is judged as the shell text that runs just these words; the
// text in ["bash", "-lc", text] is taken out.
func commandText(strs []String) (text, where string, ok bool) {
	var words []String
	for _, s := range strs {
		if !s.Key && commandFields[s.Name] {
			words = append(words, s)
		}
	}
	switch {
	case len(words) == 0:
		return "", "", false
	case len(words) == 1:
		return words[0].Text, words[0].Where, true
	case len(words) == 3 && shells[path.Base(words[0].Text)] && (words[1].Text == "-c" || words[1].Text == "-lc"):
		return words[2].Text, words[2].Where, true
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shell.Quote(w.Text)
	}
	return strings.Join(quoted, " "), words[0].Where, true
}

// effect turns one effect into what the call needs.
func (x *extractor) effect(c *shell.Command, e *shell.Effect, at call.Evidence) {
	x.loses(c, e)
	switch e.Kind {
	case shell.KindRead:
		x.commandPath(call.FSRead, e, at)
		x.readsBelow(c, e, at)
	case shell.KindWrite:
		if x.facts.Wrapped && (e.Bounded || e.Path.Scope == shell.ScopeTemp && e.Path.Known) {
			return // inside the sandbox, which says where it may, and has temporary files of its own
		}
		if e.Database {
			x.database(c, at)
			return
		}
		x.commandPath(call.FSWrite, e, at)
	case shell.KindDelete:
		x.commandPath(call.FSDelete, e, at)
	case shell.KindNetwork:
		x.network(c, e, at)
	case shell.KindExecute:
		if !x.facts.Wrapped {
			x.need(call.ProcExec, c.Exec(), at)
		}
		x.script(e, at)
	case shell.KindPrivilege, shell.KindOutside:
		x.facts.Outside = true
		x.need(call.ProcExec, "", at)
	case shell.KindBypass:
		x.self(at.Where, "it starts an agent with its checks off; dispatch it through the gate instead")
	case shell.KindUnknown:
		x.script(e, at)
	}
}

// script looks at a file whose content is run, now or later: an approval of the
// command is one of what was in it. Writing an agent's settings is arranging
// for something to run, and what their hooks say is not an agent's to change.
func (x *extractor) script(e *shell.Effect, at call.Evidence) {
	if !e.Path.Known || e.Path.Glob || e.Path.Value == "" || e.Path.Scope == shell.ScopeRemote {
		return
	}
	if real, byWords, problem := x.resolve(e.Path.Text()); problem == "" {
		x.path(call.FSRead, String{Where: "command", Text: e.Path.Text()})
		if x.hookSettings(real) || x.hookSettings(byWords) {
			x.self(at.Where, "an agent's hook settings "+real)
		}
	}
}

// commandPath adds the need for a path of a command. Where the analysis does
// not know the whole path the need is as wide as can be.
func (x *extractor) commandPath(c call.Capability, e *shell.Effect, at call.Evidence) {
	switch {
	case e.Path.Scope == shell.ScopeNull || e.Path.Scope == shell.ScopeRemote:
		return
	case e.Secret && c == call.FSRead && e.Path.Raw == "":
		x.need(call.SecretsAccess, "environment", at)
		return
	case !e.Path.Known || e.Path.Value == "":
		x.loss.writesBlind = x.loss.writesBlind || c != call.FSRead
		if c != call.FSRead || e.Secret {
			x.need(c, "", at)
		}
		if e.Secret {
			x.need(call.SecretsAccess, "", at)
		}
		return
	case e.Path.Glob:
		x.pattern(c, e, at)
		return
	}
	if e.Recursive && c == call.FSWrite {
		// Somewhere below: what exactly its other effects say, or nobody.
		saved := x.loss
		saved.writesBlind = true
		x.tree(c, e.Path.Text()+"/**", at.Where)
		x.loss = saved
		return
	}
	had := len(x.facts.Needs)
	scope := x.path(c, String{Where: at.Where, Text: e.Path.Text()})
	if e.Moved {
		x.below(had, c, true)
	}
	if e.Secret && !x.needs(call.SecretsAccess, scope) {
		x.need(call.SecretsAccess, scope, at)
	}
}

// pattern adds the need for a pattern of paths: for the directory that holds
// all of them.
func (x *extractor) pattern(c call.Capability, e *shell.Effect, at call.Evidence) {
	dir := e.Path.Value
	if i := strings.IndexAny(dir, "*?["); i >= 0 {
		dir = dir[:strings.LastIndexByte(dir[:i], '/')+1]
	}
	if dir == "" {
		dir = "."
	}
	had := len(x.facts.Needs)
	x.path(c, String{Where: at.Where, Text: dir})
	// What a pattern picks are files, unless whole directories are taken.
	x.below(had, c, e.Recursive || e.Moved)
}

// below says of the needs that were added for a path whether all below it goes
// with it.
func (x *extractor) below(had int, c call.Capability, all bool) {
	for i := had; i < len(x.facts.Needs); i++ {
		n := &x.facts.Needs[i]
		if n.Capability != c {
			continue
		}
		real := n.Scope
		if rel, inside := strings.CutPrefix(real, "."); inside {
			real = x.root + rel
		}
		n.Below = all && x.holds(real)
	}
}

// network adds the need to reach what a command contacts. What only the
// program's own settings say is named by the program, unless the command says
// it elsewhere; where code runs on top of that, it is anyone's guess.
func (x *extractor) network(c *shell.Command, e *shell.Effect, at call.Evidence) {
	switch {
	case e.Host != "":
		x.commandHost(c.Program, e.Host, at)
	case e.General && (namesServer(c) || x.facts.Wrapped):
	case e.General && runsCode(c), e.Irreversible:
		x.need(call.NetEgress, "", at)
	case strings.HasPrefix(e.Server, "$") && !x.call.Rewrites:
		// A shell that lives on may have set the variable to anything.
		x.need(call.NetEgress, "", at)
	default:
		x.need(call.NetEgress, e.Server, at)
	}
}

// namesServer says whether a command says itself what it contacts.
func namesServer(c *shell.Command) bool {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == shell.KindNetwork && !e.General {
			return true
		}
	}
	return false
}

// bounded says whether a command runs code that a sandbox holds. Such a program
// may want the network, and finds out that there is none.
func bounded(c *shell.Command) bool {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == shell.KindExecute && e.Bounded {
			return true
		}
	}
	return false
}

func runsCode(c *shell.Command) bool {
	for i := range c.Effects {
		if k := c.Effects[i].Kind; k == shell.KindExecute || k == shell.KindUnknown {
			return true
		}
	}
	return false
}

// database adds the need to change a database: the file that the command
// writes anyway, or the one on the server that it contacts.
func (x *extractor) database(c *shell.Command, at call.Evidence) {
	server := ""
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.Kind == shell.KindWrite && e.Path.Value != "":
			return
		case e.Kind == shell.KindNetwork && e.Host != "":
			server = e.Host
		case e.Kind == shell.KindNetwork && (server == "" || strings.HasPrefix(server, "by ")):
			server = e.Server
		}
	}
	if server == "" || strings.HasPrefix(server, "$") && !x.call.Rewrites {
		x.need(call.FSWrite, "", at)
		return
	}
	x.need(call.FSWrite, "database "+server, at)
}

// commandHost adds the need to reach a host that a command names.
func (x *extractor) commandHost(program, host string, at call.Evidence) {
	h, err := match.ParseHost(host)
	if err != nil {
		x.need(call.NetEgress, "", at)
		return
	}
	if h.Port == 0 {
		h.Port = shell.DefaultPort(program)
	}
	x.addHost(h, at)
}

func span(text string, s shell.Span) string {
	if s.Start < 0 || s.End > len(text) || s.Start > s.End {
		return ""
	}
	return text[s.Start:s.End]
}

// score notes the risk with the lines of the table that it comes from.
func (x *extractor) score(r risk.Score, where string) {
	x.facts.Risk = r.Value
	for _, e := range r.Evidence {
		x.facts.RiskEvidence = append(x.facts.RiskEvidence, call.Evidence{
			Where: fmt.Sprintf("%s[%d:%d]", where, e.Span.Start, e.Span.End), Text: fmt.Sprintf("%s %+d: %s", e.Rule, e.Points, e.Why),
		})
	}
}
