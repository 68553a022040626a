package knowledge

// rawFile is one TOML file of program tables.
type rawFile struct {
	Family  string            `toml:"family"`
	Groups  map[string]string `toml:"groups"`
	Program []rawProgram      `toml:"program"`
}

// rawSpec is what can be said of a program and of each of its subcommands.
type rawSpec struct {
	Does      []string  `toml:"does"`
	Opts      string    `toml:"opts"`
	Operands  string    `toml:"operands"`
	AnyOption bool      `toml:"any_option"`
	Benign    bool      `toml:"benign"`
	Remote    bool      `toml:"remote"`
	Append    bool      `toml:"append"`
	Globals   bool      `toml:"globals"`
	Lists     bool      `toml:"lists"`
	ListsWith string    `toml:"lists_with"`
	Here      string    `toml:"here"`
	Shows     string    `toml:"skips_hidden"`
	Word      bool      `toml:"word"`
	Number    bool      `toml:"number"`
	Filter    bool      `toml:"filter"`
	Stdin     string    `toml:"stdin"`
	Dashdash  string    `toml:"dashdash"`
	Default   string    `toml:"default"`
	Settings  []string  `toml:"settings"`
	Why       string    `toml:"why"`
	Sub       []rawSub  `toml:"sub"`
	When      []rawWhen `toml:"when"`
}

type rawProgram struct {
	rawSpec
	Name     string   `toml:"name"`
	Aliases  []string `toml:"aliases"`
	Style    string   `toml:"style"`
	Handler  string   `toml:"handler"`
	Builtin  bool     `toml:"builtin"`
	Info     *string  `toml:"info"`
	Extend   bool     `toml:"extend"`
	Examples []string `toml:"examples"`
}

type rawSub struct {
	rawSpec
	Name string `toml:"name"`
}

type rawWhen struct {
	Any      string   `toml:"any"`
	All      string   `toml:"all"`
	None     string   `toml:"none"`
	Min      *int     `toml:"min"`
	Max      *int     `toml:"max"`
	Does     []string `toml:"does"`
	Operands *string  `toml:"operands"`
	Why      string   `toml:"why"`
}

// Program is what is known of one program.
type Program struct {
	Spec
	Name     string
	Family   string
	Handler  string
	Style    Style
	Builtin  bool     // part of the shell: there is no file to resolve
	Info     []string // options that only print, when they stand alone
	Examples []Example
	// User says that the entry, or part of it, comes from a user's file.
	User bool
}

// Example is a command with the class the table gives it; the tests of the
// shell package check each one.
type Example struct{ Class, Command string }

// Spec is what is known of a program or subcommand.
type Spec struct {
	Does    []Does
	Options map[string]*Option
	short   [128]*Option
	// Words says that there are options of several letters behind one dash.
	Words    bool
	Operands Operands
	// AnyOption accepts options the table does not name: whatever they are,
	// they change nothing about what the command does.
	AnyOption bool
	// Benign says that no option and no operand, whatever its value, can make
	// the command do more than read.
	Benign bool
	// Remote says that inner commands run on another machine or in a container.
	Remote bool
	// Append says that more operands follow at run time (xargs).
	Append bool
	// Globals says that the options stand behind the subcommand, too.
	Globals bool
	// Lists says that the output is names of files below the operands.
	Lists bool
	// ListsWith are the options with which it is.
	ListsWith []string
	// Here are the options with which it reads all below its directory where
	// it is given nothing to read; "*" if it always does.
	Here []string
	// Shows are the options with which it reads files whose names begin with
	// a dot as well; nil if it always does.
	Shows []string
	// Word says that the output is one harmless word that never looks like an option.
	Word bool
	// Number says that the output is a number, unless files are named.
	Number bool
	// Filter says that the output is some of the lines of the input.
	Filter bool
	// Stdin is the role of standard input when no operand takes its place.
	Stdin *Role
	// Dashdash is the role of what follows "--", when that differs.
	Dashdash *Role
	// Default is the subcommand taken when none is given.
	Default string
	// Settings names the repository settings that can make the command run a
	// program; nil means that none does.
	Settings []string
	Why      string
	Subs     map[string]*Spec
	Patterns []Pattern
	Whens    []When
}

// Pattern is a subcommand name with a star at its end or front.
type Pattern struct {
	Prefix, Suffix string
	Spec           *Spec
}

// Option is one option.
type Option struct {
	Name     string
	Arg      Arity
	Role     Role
	Does     []Does
	DropHead bool // takes the place of the first operand (grep -e)
	DropTail bool // takes the place of the last operand (cp -t)
}

// Arity says whether an option takes a value.
type Arity uint8

// The arities.
const (
	ArgNone     Arity = iota
	ArgRequired       // the next word, or attached
	ArgOptional       // attached only
	ArgPair           // the next word is a name, the one after it the value
)

// Operands says what the operands are: a fixed head, then one role repeated,
// then a fixed tail.
type Operands struct {
	Head   []Role
	Repeat *Role
	Tail   []Role
}

// When replaces effects and operands of a Spec if its conditions hold.
type When struct {
	Any, All, None []string
	Min, Max       int // number of operands; Max < 0 means no upper bound
	Does           []Does
	HasDoes        bool
	Operands       *Operands
	Why            string
}

// Short finds a one-letter option.
func (s *Spec) Short(c byte) *Option {
	if c < 128 {
		return s.short[c]
	}
	return nil
}

// Sub finds a subcommand by its exact name or by a pattern.
func (s *Spec) Sub(name string) *Spec {
	if sub := s.Subs[name]; sub != nil {
		return sub
	}
	for i := range s.Patterns {
		p := &s.Patterns[i]
		if len(name) >= len(p.Prefix)+len(p.Suffix) && name[:len(p.Prefix)] == p.Prefix &&
			name[len(name)-len(p.Suffix):] == p.Suffix {
			return p.Spec
		}
	}
	return nil
}

// HasSubs says whether the first operand is the name of a subcommand.
func (s *Spec) HasSubs() bool { return len(s.Subs) > 0 || len(s.Patterns) > 0 }
