package facts

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// commandFields are the arguments that hold the command of a shell tool.
var commandFields = map[string]bool{"command": true, "cmd": true, "script": true}

// command describes a command line by what its simple commands do.
func (x *extractor) command(strs []String) {
	text, where, ok := commandText(strs)
	if !ok {
		x.unknown("runs a command that is not in the usual place", true)
		return
	}
	opts := shell.Options{Cwd: x.call.Dir, Home: x.base.Home, Knowledge: x.opts.Knowledge}
	if x.root != "" {
		opts.Workspace = []string{x.root}
	}
	if x.world != nil {
		opts.World = x.world
	}
	a := shell.Analyze(text, opts)
	f := x.facts
	f.Class, f.Irreversible = a.Class.String(), a.Irreversible()
	// Code that the analysis sees through is described by its effects; what
	// it does not see through is code.
	f.Partial = !a.Complete
	f.TakesCode = a.Class == shell.ClassUnknown || !a.Complete
	f.Project = projectCode(a)
	for i := range a.Commands {
		c := &a.Commands[i]
		f.Commands = append(f.Commands, strings.TrimSpace(span(text, c.Span)))
		f.Simple = append(f.Simple, simple(c))
		if c.Resolved != "" {
			x.look(c.Resolved)
		}
		x.guardCommand(c, where)
	}
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		x.effect(c, e, call.Evidence{Where: fmt.Sprintf("%s[%d:%d]", where, e.Span.Start, e.Span.End), Text: span(text, e.Span)})
		return true
	})
	f.Words = a.Words()
	x.score(risk.Of(risk.FromShell(a)), where)
}

// projectCode names the programs of a command that run code of the project, if
// that is all that is unknown about it.
func projectCode(a *shell.Analysis) []string {
	if a.Class != shell.ClassUnknown || !a.Complete {
		return nil
	}
	var programs []string
	for i := range a.Commands {
		c := &a.Commands[i]
		if c.Class != shell.ClassUnknown {
			continue
		}
		runs := false
		for j := range c.Effects {
			e := &c.Effects[j]
			if e.Class == shell.ClassUnknown && !e.Project {
				return nil
			}
			runs = runs || e.Project
		}
		if !runs || c.Remote || c.Program == "" {
			return nil
		}
		programs = append(programs, c.Program)
	}
	slices.Sort(programs)
	return slices.Compact(programs)
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
		quoted[i] = "'" + strings.ReplaceAll(w.Text, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " "), words[0].Where, true
}

// effect turns one effect into what the call needs.
func (x *extractor) effect(c *shell.Command, e *shell.Effect, at call.Evidence) {
	x.loses(c, e)
	switch e.Kind {
	case shell.KindRead:
		x.commandPath(call.FSRead, e, at)
	case shell.KindWrite:
		x.commandPath(call.FSWrite, e, at)
	case shell.KindDelete:
		x.commandPath(call.FSDelete, e, at)
	case shell.KindNetwork:
		if e.Host == "" {
			x.need(call.NetEgress, "", at)
			return
		}
		x.commandHost(e.Host, at)
	case shell.KindExecute:
		x.need(call.ProcExec, c.Program, at)
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
		x.look(real)
		x.look(byWords)
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
	case !e.Path.Known || e.Path.Value == "":
		x.loss.writesBlind = x.loss.writesBlind || c != call.FSRead
		if c != call.FSRead || e.Secret {
			x.need(c, "", at)
		}
		return
	case e.Path.Glob:
		x.pattern(c, e, at)
		return
	}
	scope := x.path(c, String{Where: at.Where, Text: e.Path.Text()})
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
	x.path(c, String{Where: at.Where, Text: dir})
}

// commandHost adds the need to reach a host that a command names.
func (x *extractor) commandHost(host string, at call.Evidence) {
	h, err := match.ParseHost(host)
	if err != nil {
		x.need(call.NetEgress, "", at)
		return
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
