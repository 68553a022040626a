package shell

import "strconv"

// Class is the overall verdict on a command. Larger is worse, and the class
// of several commands is the largest of theirs. The zero value is not a
// class; it reads as unknown.
type Class uint8

// The classes, in order.
const (
	_                Class = iota
	ClassSafe              // reads, and nothing else
	ClassMutating          // changes files in a way that can be undone
	ClassNetwork           // talks to another machine
	ClassUnknown           // what happens cannot be told from the words
	ClassDestructive       // loses something that cannot be brought back
)

// String gives the name used on the wire.
func (c Class) String() string {
	switch c {
	case ClassSafe:
		return "safe"
	case ClassMutating:
		return "mutating"
	case ClassNetwork:
		return "network"
	case ClassDestructive:
		return "destructive"
	}
	return "unknown"
}

// Kind is the kind of an effect.
type Kind uint8

// The kinds of effects.
const (
	KindUnknown   Kind = iota // cannot be told
	KindRead                  // reads a file
	KindWrite                 // creates or changes a file
	KindDelete                // deletes or destroys
	KindNetwork               // contacts a host
	KindExecute               // runs code the words do not show
	KindPrivilege             // acts as another user
	KindOutside               // acts through a process outside its own tree
	KindBypass                // starts an agent with its checks off
)

var kindNames = [...]string{
	"unknown", "read", "write", "delete", "network", "execute", "privilege", "outside", "bypass",
}

// String gives the name used on the wire.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Span is a range of bytes of the analysed text.
type Span struct{ Start, End int }

// Scope says where a path is.
type Scope uint8

// The scopes of paths.
const (
	ScopeUnknown   Scope = iota // cannot be told
	ScopeWorkspace              // inside a workspace root, or relative when the directory is not known
	ScopeTemp                   // a temporary directory
	ScopeHome                   // the home directory, outside the workspace
	ScopeSystem                 // a directory of the system
	ScopeDevice                 // a device
	ScopeElsewhere              // absolute, none of the above
	ScopeRemote                 // on another machine or in a container
	ScopeNull                   // /dev/null and the standard streams
)

var scopeNames = [...]string{
	"unknown", "workspace", "temp", "home", "system", "device", "elsewhere", "remote", "null",
}

// String gives the name used on the wire.
func (s Scope) String() string { return scopeNames[s] }

// Path is a file an effect is about.
type Path struct {
	// Raw is the word, with quotes removed and known values put in.
	Raw string
	// Value is Raw resolved against the working directory and cleaned;
	// relative if that directory is not known, "~/…" if the home directory is not.
	Value string
	// Known says that Value is the whole path; otherwise it is the part in
	// front of what is not known.
	Known bool
	// Glob says that Value is a pattern.
	Glob  bool
	Scope Scope
	// Joined is Raw resolved against the working directory and not cleaned,
	// where that may be another file: what ".." after a link means is for
	// whoever follows links to say. It is "" elsewhere.
	Joined string
}

// Text is the path as it is to be resolved on a machine.
func (p *Path) Text() string {
	if p.Joined != "" {
		return p.Joined
	}
	return p.Value
}

// Effect is one thing a command does.
type Effect struct {
	Kind Kind
	// Class is what this effect alone makes of the command.
	Class Class
	// Path is set for effects on files.
	Path Path
	// Host is set for network effects whose target is known: host or host:port.
	Host string
	// Server says in words what is contacted where the host is not known: the
	// variable of the environment that names it ("$DATABASE_URL"), or the
	// program whose own settings do ("by gh").
	Server string
	// General says that the program is known to contact someone, whoever the
	// command's other effects say it is.
	General bool
	// Database says that the effect is on a database, which the command's
	// other effects name.
	Database bool
	// Irreversible says that what is lost or sent cannot be brought back.
	Irreversible bool
	// Secret says that the file or variable likely holds credentials.
	Secret bool
	// Names says that only names and the like are read, not what is in files.
	Names bool
	// Moved says that what is there goes away under its old name.
	Moved bool
	// Recursive says that the effect reaches everything below Path.
	Recursive bool
	// Bounded says that the effect is code which a sandbox holds as well as
	// the words do not: code of the project, a script, inline code, a program
	// of which nothing is known. What it does stays within what the sandbox
	// lets it do.
	Bounded bool
	// Span is the text that causes the effect.
	Span Span
	// Why says it in words.
	Why string
}

// Command is one simple command, or one that a wrapper runs.
type Command struct {
	// Program is the name without directory, or empty if it is not known.
	Program string
	// Word is the command word as the shell would see it.
	Word string
	// Resolved is the file the World says it runs.
	Resolved string
	// Subcommand is what the program's table calls one ("stash drop").
	Subcommand string
	// Args are the words after the program.
	Args []Arg
	// Via names the wrappers around it, outermost first ("sudo", "xargs").
	Via []string
	// Remote says that it runs on another machine or in a container.
	Remote  bool
	Effects []Effect
	Class   Class
	Span    Span
}

// Exec names what a command runs as precisely as its words were proved: the
// file, or the name where that is not known, the subcommand and the options,
// up to the first word that is not known.
func (c *Command) Exec() string {
	name := c.Resolved
	if name == "" {
		name = c.Program
	}
	for _, a := range c.Args {
		if !a.Known || a.Glob {
			break
		}
		name += " " + a.Text
	}
	return name
}

// Arg is one word of a command.
type Arg struct {
	// Text is the value, or the part of it in front of what is not known.
	Text  string
	Known bool
	Glob  bool
	Span  Span
}

// Note is a remark about the text as a whole.
type Note struct {
	Code NoteCode
	Text string
	Span Span
}

// NoteCode identifies a note.
type NoteCode string

// The notes.
const (
	NoteParse    NoteCode = "parse"    // the text does not parse
	NoteDialect  NoteCode = "dialect"  // the text is of a shell that is not analysed
	NoteLimit    NoteCode = "limit"    // a limit was reached
	NoteControl  NoteCode = "control"  // control or invisible characters
	NoteDeferred NoteCode = "deferred" // something runs later
)

// Analysis is what is known of a command line.
type Analysis struct {
	// Class is the largest class of all commands, and at least unknown if the
	// text could not be read completely.
	Class    Class
	Commands []Command
	Notes    []Note
	// Complete says that the whole text was parsed within the limits.
	Complete bool
	// Dialect is the language the text was read as.
	Dialect Dialect
}

// Effects calls f for every effect until it returns false.
func (a *Analysis) Effects(f func(*Command, *Effect) bool) {
	for i := range a.Commands {
		c := &a.Commands[i]
		for j := range c.Effects {
			if !f(c, &c.Effects[j]) {
				return
			}
		}
	}
}

// Has says whether there is an effect of the kind.
func (a *Analysis) Has(k Kind) bool {
	found := false
	a.Effects(func(_ *Command, e *Effect) bool {
		found = e.Kind == k
		return !found
	})
	return found
}

// Irreversible says whether an effect cannot be taken back.
func (a *Analysis) Irreversible() bool {
	found := false
	a.Effects(func(_ *Command, e *Effect) bool {
		found = e.Irreversible
		return !found
	})
	return found
}

// Bounded says whether a sandbox around the whole command holds all that the
// words do not tell: everything that cannot be told is code which runs inside
// it, and nothing else acts for others, shows credentials, destroys, or works
// through a process that the sandbox is not around.
func (a *Analysis) Bounded() bool {
	if a.Class != ClassUnknown || !a.Complete || len(a.Notes) > 0 {
		return false
	}
	held := true
	a.Effects(func(c *Command, e *Effect) bool {
		switch {
		case e.Kind == KindPrivilege || e.Kind == KindOutside || e.Kind == KindBypass, e.Secret, e.Irreversible:
			held = false
		case e.Class == ClassUnknown || e.Bounded:
			held = e.Bounded && !c.Remote
		}
		return held
	})
	return held
}
