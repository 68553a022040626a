package knowledge

import "fmt"

// Does is one thing a program, a subcommand or an option does.
type Does uint8

// What a table can say with does = [...] or with "!name" behind an option.
const (
	DoesNothing    Does = iota
	DoesRead            // reads what it is told to read
	DoesWrite           // changes files in a way that can be undone
	DoesLocal           // the same, below the working directory and nowhere else
	DoesRepository      // the same, in the repository's own files and nowhere else
	DoesDelete          // deletes for good
	DoesRemove          // removes something that is easily made again
	DoesDestroy         // destroys state that is not a file of this machine, or whole trees
	DoesKill            // ends processes or services
	DoesNetwork         // talks to another machine
	DoesLookup          // asks the one server of its own for something, and changes nothing there
	DoesPublish         // sends something out that cannot be called back
	DoesExecute         // runs a program or code the words do not show
	DoesProject         // runs code of the project: tests, builds, scripts
	DoesInstall         // brings in foreign code that may run while it is installed
	DoesPersist         // arranges for something to run later
	DoesSecret          // shows credentials or the environment
	DoesPrivilege       // acts as another user
	DoesOutside         // acts through a process outside its own tree
	DoesBypass          // starts an agent with its own checks switched off
	DoesUnknown         // the table knows the option and cannot say what follows
	numDoes
)

var doesNames = [numDoes]string{
	"nothing", "read", "write", "local", "repository", "delete", "remove", "destroy", "kill", "network", "lookup", "publish", "execute",
	"project", "install", "persist", "secret", "privilege", "outside", "bypass", "unknown",
}

// String gives the name used in the tables.
func (d Does) String() string { return doesNames[d] }

func parseDoes(s string) (Does, error) {
	for i, n := range doesNames {
		if n == s {
			return Does(i), nil
		}
	}
	return DoesUnknown, fmt.Errorf("unknown effect %q", s)
}

// Role is what a word means to the program that gets it.
type Role uint8

// The roles of operands and option values.
const (
	RoleData      Role = iota // text without effect: a pattern, a format, a number
	RoleRead                  // a file whose contents are read
	RoleList                  // a file or directory of which only names or metadata are read
	RoleWrite                 // a file that is created or overwritten
	RoleNew                   // a file or directory that is created, never overwritten
	RoleMutate                // a file that is changed in place
	RoleMoved                 // a file that is moved away
	RoleDelete                // a file or tree that is deleted for good
	RoleRemove                // an empty directory or the like
	RoleCwd                   // the working directory of this one command
	RoleURL                   // a URL that is contacted
	RoleHost                  // a host that is contacted
	RoleHostPath              // host:path, a URL, or a local file that is read
	RoleHostDest              // host:path, a URL, or a local file that is written
	RoleCommand               // this word and all after it are a command
	RoleProgram               // one word that names a program (with arguments, sometimes)
	RoleShell                 // shell code
	RoleShellArg              // this word and all after it, joined, are shell code
	RoleScript                // a file whose contents are run
	RoleConfig                // a file or setting that decides what runs
	RoleAssign                // NAME=VALUE for the environment of the command that follows
	RoleVar                   // the name of a shell variable, evaluated by the shell
	RoleSed                   // a sed script
	RoleAwk                   // an awk program
	RoleSQL                   // SQL statements
	RoleGitConfig             // key=value for git
	RolePython                // inline code of the named language
	RoleCode                  // inline code of another language
	RoleMount                 // source:target of a container mount
	RoleCheckout              // git checkout's ambiguous operand: a branch or a file
	RoleRefspec               // git push's refspec
	RoleMethod                // an HTTP method
	RoleVerb                  // data, except that a verb like delete means what it says
	RoleJQ                    // a jq or yq program
	RoleConnect               // how to reach a server, credentials included
	RoleStamp                 // the format of a date, which begins with "+"; anything else sets the clock
	RoleObject                // what git is to show: data, unless it names a file with credentials
	RoleUpload                // a file that is read and sent out
	RoleSent                  // text that is sent out, or @FILE, NAME=@FILE, NAME@FILE: then the file is
	RoleInclude               // a pattern of names: of what lies in directories only that is read; "!" takes away
	RoleSetting               // the name of a setting or resource that is shown: data, unless it names credentials
	numRoles
)

var roleNames = [numRoles]string{
	"data", "read", "list", "write", "new", "mutate", "moved", "delete", "remove", "cwd", "url", "host", "hostpath",
	"hostdest", "command", "program", "shell", "shellarg", "script", "config", "assign", "var", "sed", "awk", "sql",
	"gitconfig", "python", "code", "mount", "checkout", "refspec", "method", "verb", "jq", "connect", "stamp", "object",
	"upload", "sent", "include", "setting",
}

// String gives the name used in the tables.
func (r Role) String() string { return roleNames[r] }

func parseRole(s string) (Role, error) {
	for i, n := range roleNames {
		if n == s {
			return Role(i), nil
		}
	}
	return RoleData, fmt.Errorf("unknown role %q", s)
}

// Harmless says that a word of this role cannot have an effect beyond
// reading, whatever its value.
func (r Role) Harmless() bool {
	return r == RoleData || r == RoleRead || r == RoleList || r == RoleInclude
}

// Style says how a program reads its options.
type Style uint8

// The styles of option parsing.
const (
	StyleGNU    Style = iota // short clusters, long options, options anywhere
	StylePOSIX               // the same, but the first operand ends the options
	StyleSingle              // -name value or -name=value, as find, go and terraform do
	StyleNone                // no options at all: every word is an operand
)

func parseStyle(s string) (Style, error) {
	switch s {
	case "", "gnu":
		return StyleGNU, nil
	case "posix":
		return StylePOSIX, nil
	case "single":
		return StyleSingle, nil
	case "none":
		return StyleNone, nil
	}
	return StyleGNU, fmt.Errorf("unknown style %q", s)
}
