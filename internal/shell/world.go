package shell

import "github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"

// Dialect is a shell language.
type Dialect uint8

// The dialects. Zsh and PowerShell text is recognised and not analysed.
const (
	Bash Dialect = iota
	POSIX
	Mksh
	Zsh
	PowerShell
)

// String names the dialect.
func (d Dialect) String() string {
	return [...]string{"bash", "posix", "mksh", "zsh", "powershell"}[d]
}

// Options say what is known around a command. The zero value judges the
// words alone.
type Options struct {
	// Dialect is the shell that will run the text: Bash, POSIX or Mksh; text
	// for Zsh and PowerShell is never analysed.
	Dialect Dialect
	// Cwd is the absolute working directory, if known.
	Cwd string
	// Home is the absolute home directory, if known.
	Home string
	// Workspace are the absolute roots the work belongs in. Cwd is one if the
	// list is empty.
	Workspace []string
	// World answers questions about the machine. Without it the words alone
	// are judged; with it, what it does not know is not safe.
	World World
	// Knowledge are the program tables; nil means those built in.
	Knowledge *knowledge.Base
}

// World answers what the words alone do not say. Implementations live
// outside this package and must be cheap: a command asks once per program,
// path and repository.
type World interface {
	// Program says what a command word runs in the given directory.
	Program(word, cwd string) Program
	// Path says what is at an absolute path.
	Path(abs string) PathInfo
	// Repository gives the settings that hold in a directory and can make a
	// version-control command run a program.
	Repository(dir string) Repository
	// Script gives the shell text a task runner would run: kind is "npm" or
	// "make", name the script or target.
	Script(kind, dir, name string) (text string, known bool)
	// Names lists what is in a directory. It is not known if that is too much.
	Names(dir string) (names []string, known bool)
}

// Program is what a command word runs.
type Program struct {
	State ProgramState
	// Path is the file, with links followed.
	Path string
}

// ProgramState says whether a program may be trusted by its name.
type ProgramState uint8

// The states of programs.
const (
	ProgramUnknown  ProgramState = iota // not looked up
	ProgramTrusted                      // outside the workspace, and the agent cannot write it or its directory
	ProgramWritable                     // the agent could have put it there
	ProgramMissing                      // there is no such program
)

// PathInfo is what is at a path.
type PathInfo struct {
	Known  bool
	Exists bool
	Dir    bool
	// Real is the path with links followed; empty if it is the same.
	Real string
}

// Repository is what is set in a version-control work tree.
type Repository struct {
	Known bool
	// Settings are those an agent could have written and that name programs:
	// "core.fsmonitor", "filter.x.clean", "diff.external", "alias.st", …
	Settings []Setting
}

// Setting is one key of a repository's configuration.
type Setting struct{ Key, Value string }
