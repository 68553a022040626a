package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// meaning is what a does-word of the tables becomes.
type meaning struct {
	kind         Kind
	class        Class
	irreversible bool
	why          string
}

var meanings = [...]meaning{
	knowledge.DoesNothing:    {},
	knowledge.DoesRead:       {KindRead, ClassSafe, false, "reads"},
	knowledge.DoesWrite:      {KindWrite, ClassMutating, false, "changes files"},
	knowledge.DoesLocal:      {KindWrite, ClassMutating, false, "changes files below its directory"},
	knowledge.DoesRepository: {KindWrite, ClassMutating, false, "changes the repository"},
	knowledge.DoesDelete:     {KindDelete, ClassDestructive, true, "deletes"},
	knowledge.DoesRemove:     {KindDelete, ClassMutating, false, "removes"},
	knowledge.DoesDestroy:    {KindDelete, ClassDestructive, true, "destroys"},
	knowledge.DoesKill:       {KindOutside, ClassDestructive, true, "ends processes"},
	knowledge.DoesNetwork:    {KindNetwork, ClassNetwork, false, "uses the network"},
	knowledge.DoesLookup:     {KindNetwork, ClassNetwork, false, "asks its server"},
	knowledge.DoesPublish:    {KindNetwork, ClassNetwork, true, "publishes"},
	knowledge.DoesExecute:    {KindExecute, ClassUnknown, false, "runs code the words do not show"},
	knowledge.DoesProject:    {KindExecute, ClassUnknown, false, "runs code of the project"},
	knowledge.DoesInstall:    {KindExecute, ClassNetwork, false, "installs code, which may run while it is installed"},
	knowledge.DoesPersist:    {KindExecute, ClassUnknown, false, "arranges for something to run later"},
	knowledge.DoesSecret:     {KindRead, ClassUnknown, false, "shows credentials or the environment"},
	knowledge.DoesPrivilege:  {KindPrivilege, ClassUnknown, false, "acts as another user"},
	knowledge.DoesOutside:    {KindOutside, ClassUnknown, false, "acts outside its own processes"},
	knowledge.DoesBypass:     {KindBypass, ClassUnknown, false, "switches an agent's own checks off"},
	knowledge.DoesUnknown:    {KindUnknown, ClassUnknown, false, "does something the table cannot tell"},
}

// does records one effect word of a table.
func (a *analyzer) does(d knowledge.Does, span Span, why string) {
	m := &meanings[d]
	if d == knowledge.DoesNothing {
		return
	}
	e := Effect{Kind: m.kind, Class: m.class, Irreversible: m.irreversible, Span: span, Why: m.why}
	e.Secret = d == knowledge.DoesSecret
	e.Bounded = d == knowledge.DoesProject
	switch d {
	case knowledge.DoesNetwork:
		e.General = true
	case knowledge.DoesLookup:
		e.General = true
		e.Server = "by " + a.out.Commands[a.cur].Program
	case knowledge.DoesLocal:
		e.Path, e.Recursive = a.project(), true
	case knowledge.DoesRepository:
		e.Path, e.Recursive = a.repository(), true
	}
	if strings.HasPrefix(why, "by ") {
		e.Why += " " + why
	} else if why != "" {
		e.Why = why
	}
	a.add(e)
}

// project is where a command writes that keeps to its project: the workspace
// that its directory is in, because such programs look upwards for the
// project's root. It is not known if a word leads out of there.
func (a *analyzer) project() Path {
	at := a.here(".")
	if at.Scope == ScopeWorkspace {
		for _, root := range a.roots {
			if within(root, at.Value) {
				at.Value, at.Raw = root, root
				break
			}
		}
	}
	for _, arg := range a.out.Commands[a.cur].Args {
		text := arg.Text
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		leads := strings.HasPrefix(text, "/") && !within(at.Value, cleanPath(text)) || strings.HasPrefix(text, "~") ||
			text == ".." || strings.HasPrefix(text, "../") || strings.Contains(text, "/../") || strings.HasSuffix(text, "/..")
		if !arg.Known || leads {
			return Path{}
		}
	}
	return at
}

// repository is where git keeps its own files. A repository that a directory
// of the workspace is in counts as the workspace's, whichever directory it is.
func (a *analyzer) repository() Path {
	at := a.here(".git")
	if at.Scope == ScopeWorkspace {
		for _, root := range a.roots {
			if within(root, at.Value) {
				at.Value = cleanPath(root + "/.git")
				at.Raw = at.Value
				break
			}
		}
	}
	return at
}

// here is a path below the working directory of the current command.
func (a *analyzer) here(name string) Path {
	w := word{text: name, known: true, at: -1}
	return a.resolve(&w, name).Path
}

func within(dir, p string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir+"/")
}
