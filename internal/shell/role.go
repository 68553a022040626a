package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// connect records which server a client is told to talk to. The word may hold
// a password, so nothing of it but the server is kept.
func (a *analyzer) connect(w *word) {
	e := Effect{Kind: KindNetwork, Class: ClassNetwork, Span: w.span, Why: "contacts the server that is named"}
	if env := w.rareParts().env; env != "" {
		e.Server = "$" + env
		a.add(e)
		return
	}
	if !w.known {
		a.add(e)
		return
	}
	w.each(func(text string) {
		e := e
		switch {
		case strings.Contains(text, "://"):
			e.Host = hostOf(text)
		case strings.Contains(text, "host="):
			_, rest, _ := strings.Cut(text, "host=")
			e.Host, _, _ = strings.Cut(rest, " ")
		default:
			return // the name of a database on the server that is used anyway
		}
		a.add(e)
	})
}

// apply records what a word does in its role. Roles that take all the words
// after it are handled by applyOperands.
func (a *analyzer) apply(role knowledge.Role, w *word, p *knowledge.Program) {
	switch role {
	case knowledge.RoleData:
	case knowledge.RoleConnect:
		a.connect(w)
	case knowledge.RoleRead:
		a.readPath(w, false)
	case knowledge.RoleList:
		a.readPath(w, true)
	case knowledge.RoleObject:
		a.object(w)
	case knowledge.RoleUpload:
		a.upload(w)
	case knowledge.RoleSent:
		a.sent(w)
	case knowledge.RoleSetting:
		a.setting(w)
	case knowledge.RoleInclude:
		if w.known && w.values() == nil && !strings.HasPrefix(w.text, "!") {
			a.picks = append(a.picks, w.text)
		}
	case knowledge.RoleStamp:
		if !strings.HasPrefix(w.text, "+") {
			a.does(knowledge.DoesPrivilege, w.span, "")
			a.does(knowledge.DoesDestroy, w.span, "sets the clock")
		}
	case knowledge.RoleWrite:
		if w.known && w.text == "-" {
			return
		}
		if p.Name == "mv" && w.known && w.text == "/dev/null" {
			a.does(knowledge.DoesDestroy, w.span, "moves it to where nothing is kept")
		}
		a.writePath(w, writeFile, w.span)
	case knowledge.RoleNew:
		a.writePath(w, writeNew, w.span)
	case knowledge.RoleMutate:
		a.writePath(w, writeMutate, w.span)
	case knowledge.RoleMoved:
		a.movedPath(w)
	case knowledge.RoleDelete:
		a.deletePath(w, false)
	case knowledge.RoleRemove:
		a.writePath(w, writeMutate, w.span)
	case knowledge.RoleCwd:
		a.enter(w)
	case knowledge.RoleURL, knowledge.RoleHost:
		a.contact(w, p)
	case knowledge.RoleHostPath, knowledge.RoleHostDest:
		a.hostPath(w, role == knowledge.RoleHostDest)
	case knowledge.RoleProgram:
		a.programWord(w, p.Name)
	case knowledge.RoleShell:
		a.shellCode(w, p.Name)
	case knowledge.RoleScript:
		a.scriptFile(w)
	case knowledge.RoleConfig:
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Path: a.resolve(w, w.text).Path, Span: w.span, Why: "takes settings that can run programs:"})
	case knowledge.RoleVar:
		a.varName(w)
	case knowledge.RoleSed:
		a.sedScript(w)
	case knowledge.RoleAwk:
		a.awkProgram(w)
	case knowledge.RoleJQ:
		a.jqProgram(w)
	case knowledge.RoleSQL:
		a.sql(w)
	case knowledge.RoleGitConfig:
		a.gitConfig(w)
	case knowledge.RolePython:
		a.code("python", w)
	case knowledge.RoleCode:
		a.code(p.Name, w)
	case knowledge.RoleMount:
		a.mount(w)
	case knowledge.RoleCheckout:
		a.checkout(w)
	case knowledge.RoleRefspec:
		a.refspec(w)
	case knowledge.RoleMethod:
		a.method(w)
	case knowledge.RoleVerb:
		a.verb(w)
	case knowledge.RoleAssign:
		name, _, _ := strings.Cut(w.text, "=")
		a.assigns(name, w.span)
	case knowledge.RoleCommand, knowledge.RoleShellArg:
		// One word that is a whole command (an option's value).
		a.shellCode(w, p.Name)
	}
}

// applyOperands gives each operand its role.
func (a *analyzer) applyOperands(p *knowledge.Program, spec *knowledge.Spec, ops *knowledge.Operands, ps *parsed) output {
	words := ps.operands()
	head, tail := ops.Head, ops.Tail
	hits := ps.hits()
	for i := range hits {
		if hits[i].opt.DropHead && len(head) > 0 {
			head = head[1:]
		}
		if hits[i].opt.DropTail && len(tail) > 0 {
			tail = tail[:len(tail)-1]
		}
	}
	root := ""
	for i := 0; i < len(words); i++ {
		w := &words[i]
		role, ok := operandRole(head, ops.Repeat, tail, i, len(words))
		if ps.dashes >= 0 && i >= ps.dashes && spec.Dashdash != nil {
			role, ok = *spec.Dashdash, true
		}
		if role == knowledge.RoleAssign && (!w.known || !strings.Contains(w.text, "=")) {
			// The assignments are over: the rest is what comes behind them.
			if len(tail) > 0 {
				role = tail[0]
			}
		}
		switch {
		case !ok:
			a.secretUse(w)
			a.unknown(w.span, "an operand its table does not know")
			continue
		case role == knowledge.RoleCommand:
			return a.commandOperand(p, spec, words[i:])
		case role == knowledge.RoleShellArg:
			a.remoteShell(p, spec, words[i:])
			return output{given: true}
		case role == knowledge.RoleList && root == "" && w.known:
			root = w.text
		case role == knowledge.RoleRead && len(spec.ListsWith) > 0:
			root = below(root, w)
		}
		if role != knowledge.RoleConnect {
			a.secretUse(w)
		}
		if role == knowledge.RoleDelete {
			a.deletePath(w, ps.find("-r", "-R", "--recursive") != nil)
			continue
		}
		if role == knowledge.RoleWrite && i == 1 && words[0].known && words[0].text == "/dev/null" && (p.Name == "cp" || p.Name == "install") {
			a.writePath(w, writeTruncate, w.span)
			continue
		}
		a.apply(role, w, p)
	}
	return a.outputOf(spec, root, ps)
}

// below is the directory that all files are in which a command was given: the
// one, the directory it works in if there are several in there, or else one
// that nothing is known of.
func below(root string, w *word) string {
	switch {
	case root == "" && w.known && !w.glob && w.values() == nil:
		return w.text
	case (root == "" || inside(root)) && w.known && inside(w.text):
		return "."
	}
	return ".."
}

// operandRole finds the role of operand i of n.
func operandRole(head []knowledge.Role, repeat *knowledge.Role, tail []knowledge.Role, i, n int) (knowledge.Role, bool) {
	if n-i <= len(tail) && i >= len(head) {
		return tail[len(tail)-(n-i)], true
	}
	if i < len(head) {
		return head[i], true
	}
	if repeat != nil {
		return *repeat, true
	}
	return knowledge.RoleData, false
}

// outputOf says what a command prints.
func (a *analyzer) outputOf(spec *knowledge.Spec, root string, ps *parsed) output {
	out := output{given: true, at: -1, plain: spec.Word || spec.Number, number: spec.Number}
	if hits := ps.hits(); out.plain {
		for i := range hits {
			if spec.Options[hits[i].opt.Name] != hits[i].opt {
				out.plain, out.number = false, false // an option the table does not know may change it
			}
		}
	}
	if spec.Lists || len(spec.ListsWith) > 0 && ps.find(spec.ListsWith...) != nil {
		if root == "" {
			root = "."
		}
		out.listing, out.root = a.listable(root), root
	}
	reads := false
	cmd := &a.out.Commands[a.cur]
	for i := range cmd.Effects {
		switch cmd.Effects[i].Kind {
		case KindNetwork:
			out.network = true
		case KindRead:
			reads = true
		}
	}
	if r := spec.Operands.Repeat; spec.Number && len(ps.operands()) > 0 && r != nil && *r != knowledge.RoleData {
		out.plain, out.number = false, false // it prints names, too
	}
	if ops := ps.operands(); out.plain {
		for i := range ops {
			if strings.HasPrefix(ops[i].text, "-") || strings.HasPrefix(ops[i].text, "+-") {
				out.plain = false // date +-x prints what looks like an option
			}
		}
	}
	if spec.Filter && a.stdin.listing && !reads {
		// What it prints are lines of its input, not of a file of its own.
		out.listing, out.root = true, a.stdin.root
	}
	if spec.Filter && a.stdin.network {
		out.network = true
	}
	return out
}

// listable says that files below a directory may be read without looking at
// each name: it is not one where credentials are kept.
func (a *analyzer) listable(root string) bool {
	if d := a.st.cwd; root == "." && d.abs == "" && d.rel == "" && !d.lost {
		return true // the directory the command starts in
	}
	r := a.resolve(&word{text: root, known: true}, root)
	switch r.where {
	case ScopeHome, ScopeSystem, ScopeDevice, ScopeUnknown:
		return false
	}
	return r.tags.Name != knowledge.TagSecret && r.Value != "/"
}

// commandOperand runs the command a wrapper was given.
func (a *analyzer) commandOperand(p *knowledge.Program, spec *knowledge.Spec, args []word) output {
	args = append([]word(nil), args...)
	if len(args) > 1 && args[0].known && args[0].text == "-c" {
		// flock FILE -c CODE
		a.shellCode(&args[1], p.Name)
		return output{given: true}
	}
	if spec.Append {
		args = append(args, a.moreOperands(args[0].span))
	}
	if !spec.Remote {
		return a.inner(p.Name, args)
	}
	cwd := a.st.cwd
	a.remote++
	a.st.cwd = directory{}
	a.inner(p.Name, args)
	a.st.cwd = cwd
	a.remote--
	return output{given: true}
}

// moreOperands stands for the operands xargs adds: names of files if that is
// what comes in, else anything.
func (a *analyzer) moreOperands(span Span) word {
	w := word{span: span, at: -1, multi: true}
	if a.stdin.listing {
		w.listing = true
		w.setRare(func(r *rare) { r.root = a.stdin.root })
	}
	return w
}

// remoteShell joins words to the code a shell elsewhere is given.
func (a *analyzer) remoteShell(p *knowledge.Program, spec *knowledge.Spec, words []word) {
	joined := word{known: true, at: -1, span: Span{words[0].span.Start, words[len(words)-1].span.End}}
	if len(words) == 1 {
		joined = words[0]
	} else {
		parts := make([]string, len(words))
		for i := range words {
			joined.known = joined.known && words[i].known
			parts[i] = words[i].text
		}
		joined.text = strings.Join(parts, " ")
	}
	cwd := a.st.cwd
	if spec.Remote {
		a.remote++
		a.st.cwd = directory{}
	}
	a.shellCode(&joined, p.Name)
	if spec.Remote {
		a.st.cwd = cwd
		a.remote--
	}
}

// stdinRole applies a role to what comes in on standard input.
func (a *analyzer) stdinRole(role knowledge.Role, p *knowledge.Program) {
	in := a.stdin
	if !in.given {
		return
	}
	w := word{text: in.text, known: in.known, span: in.span, at: in.at}
	if in.span == (Span{}) {
		w.span = a.out.Commands[a.cur].Span
	}
	a.apply(role, &w, p)
}

// applySettings asks which settings of the repository make the command run a
// program.
func (a *analyzer) applySettings(p *knowledge.Program, spec, parent *knowledge.Spec) {
	if len(spec.Settings) == 0 || a.remote > 0 {
		return
	}
	span := a.out.Commands[a.cur].Span
	d := a.st.cwd
	if a.world == nil {
		if d.lost || !inside(d.rel) || d.abs != "" && a.scope(d.abs, knowledge.Tags{}) != ScopeWorkspace {
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: span,
				Why: "works in another directory, whose settings may run programs", Bounded: true})
		}
		return
	}
	if d.abs == "" {
		a.unknown(span, "the directory is not known, and its settings may run programs")
		return
	}
	repo := a.world.Repository(d.abs)
	if !repo.Known {
		a.unknown(span, "the settings of the repository are not known")
		return
	}
	for _, s := range repo.Settings {
		for _, pattern := range spec.Settings {
			if settingMatches(pattern, s.Key) {
				a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: span, Why: "the repository sets " + s.Key + ", which runs a program", Bounded: true})
				break
			}
		}
	}
}

// settingMatches compares a key with a pattern in which "*" stands for any
// middle part.
func settingMatches(pattern, key string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return strings.EqualFold(pattern, key)
	}
	key = strings.ToLower(key)
	return len(key) >= len(head)+len(tail) && strings.HasPrefix(key, head) && strings.HasSuffix(key, tail)
}
