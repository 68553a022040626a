package shell

import "strings"

// value is what is known of a variable.
type value struct {
	// alts are the values it may have; none means that nothing is known.
	alts []string
	// glob says that the alternatives are patterns that stand for file names.
	glob bool
	// plain says that, although not known, the value is a harmless word: a
	// number, a hash, a date.
	plain bool
	// number says that it is a number.
	number bool
	// listing says that the value is the name of a file below root.
	listing bool
	root    string
	// secret names the variable a credential came from.
	secret string
	// loop is the serial number of the loop the assignment stands in.
	loop int
}

func (v *value) known() bool { return v != nil && len(v.alts) > 0 }

// directory is what is known of the working directory.
type directory struct {
	// abs is the absolute path, if known.
	abs string
	// rel is the way from the directory the command started in, if abs is
	// not known: "" at the start.
	rel string
	// lost says that neither is known.
	lost bool
}

func (d directory) join(path string) string {
	switch {
	case strings.HasPrefix(path, "/"), strings.HasPrefix(path, "~"):
		return path
	case d.abs != "":
		return d.abs + "/" + path
	case d.rel != "":
		return d.rel + "/" + path
	}
	return path
}

// state is what holds at one point of the script.
type state struct {
	vars  map[string]*value
	funcs map[string]*function
	cwd   directory
	// log remembers what assignments replaced, so that leaving a branch or a
	// subshell can undo them.
	log []undo
	// loop is the serial number of the innermost loop, loops the last one given.
	loop, loops int
	// ifs says that IFS is no longer the default.
	ifs bool
}

type undo struct {
	name string
	old  *value
	cwd  directory
	dir  bool
}

type function struct {
	// runsArgs says that the body runs its own arguments as a command.
	runsArgs bool
}

func (s *state) set(name string, v *value) {
	if s.vars == nil {
		s.vars = map[string]*value{}
	}
	s.log = append(s.log, undo{name: name, old: s.vars[name]})
	if v != nil {
		v.loop = s.loop
	}
	s.vars[name] = v
}

func (s *state) chdir(d directory) {
	s.log = append(s.log, undo{cwd: s.cwd, dir: true})
	s.cwd = d
}

func (s *state) mark() int { return len(s.log) }

// restore undoes everything since the mark: a subshell has ended.
func (s *state) restore(mark int) {
	for i := len(s.log) - 1; i >= mark; i-- {
		u := &s.log[i]
		if u.dir {
			s.cwd = u.cwd
		} else {
			s.vars[u.name] = u.old
		}
	}
	s.log = s.log[:mark]
}

// forget makes everything assigned since the mark unknown: it happened in a
// branch that may not have been taken. The log stays, for outer regions.
func (s *state) forget(mark int) {
	for i := mark; i < len(s.log); i++ {
		u := &s.log[i]
		if !u.dir {
			s.vars[u.name] = nil
			continue
		}
		if s.cwd != u.cwd {
			s.cwd = joinDirs(s.cwd, u.cwd)
		}
	}
}

// joinDirs is where the script may be if it is in one of two directories.
func joinDirs(a, b directory) directory {
	if a == b {
		return a
	}
	if a.abs == "" && b.abs == "" && !a.lost && !b.lost && inside(a.rel) && inside(b.rel) {
		// Both are below the start: the shorter one covers the longer one well enough.
		if len(a.rel) < len(b.rel) {
			return a
		}
		return b
	}
	if a.abs != "" && b.abs != "" {
		if strings.HasPrefix(b.abs, a.abs+"/") {
			return a
		}
		if strings.HasPrefix(a.abs, b.abs+"/") {
			return b
		}
	}
	return directory{lost: true}
}

func inside(rel string) bool {
	return !strings.HasPrefix(rel, "/") && !strings.HasPrefix(rel, "~") && rel != ".." && !strings.HasPrefix(rel, "../")
}

// setVar assigns, and remembers which names were given something else than a number.
func (a *analyzer) setVar(name string, v *value) {
	if a.wordAssigned != nil && (v == nil || !v.number && !allNumbers(v.alts)) {
		a.wordAssigned[name] = true
	}
	a.st.set(name, v)
}

// lookup finds the value of a variable as far as it is known here. In a
// function only what the function itself assigned is known, because the call
// may stand anywhere.
func (a *analyzer) lookup(name string) *value {
	v, set := a.st.vars[name]
	if v != nil && v.loop != a.st.loop && (a.inFunc != nil || a.loopAssigned[name]) {
		v = nil
	}
	if v == nil && set && a.wordAssigned != nil && !a.wordAssigned[name] && a.inFunc == nil {
		// Whichever assignment it was, it was of a number.
		return &value{plain: true, number: true}
	}
	return v
}
