package call

import "strings"

// Capability names a kind of access, such as fs.write. The names below are
// built in; a policy file can add more without Go code.
type Capability string

// The built-in capabilities.
const (
	FSRead        Capability = "fs.read"
	FSWrite       Capability = "fs.write"
	FSDelete      Capability = "fs.delete"
	NetEgress     Capability = "net.egress"
	ProcExec      Capability = "proc.exec"
	DataUser      Capability = "data.user"
	SecretsAccess Capability = "secrets.access"
)

// Capabilities lists the built-in capabilities.
func Capabilities() []Capability {
	return []Capability{FSRead, FSWrite, FSDelete, NetEgress, ProcExec, DataUser, SecretsAccess}
}

// Confined is the scope of proc.exec for code that runs in the gate's sandbox
// around the workspace: it can change files there, has no network and sees no
// more of the machine than programs need to start. Which program it is makes
// no difference, because any code can start any other.
const Confined = "confined"

// Need is one capability that a call requires, with the scope it requires it
// for. An empty scope is the widest: the call may reach anything. A path is
// absolute and clean, or starts with "./" and is relative to the workspace;
// one that ends in "/**" stands for everything below. A host is host:port or
// a URL; a program is its name or file, with the words that were proven.
type Need struct {
	Capability Capability `json:"capability"`
	Scope      string     `json:"scope,omitzero"`
	// Inside says that a path scope lies inside the workspace.
	Inside bool `json:"inside,omitzero"`
	// Root is the workspace that a scope inside it is relative to, by its real
	// path, device and inode. A grant for a scope holds in the root it was
	// given for and in no other that is put in its place.
	Root string `json:"root,omitzero"`
	// Below says that all that lies below a path goes with it: it is deleted,
	// or moved. A rule about something there objects.
	Below bool `json:"below,omitzero"`
	// Evidence points at what in the call makes the need.
	Evidence []Evidence `json:"evidence,omitzero"`
}

// String writes the need as capability:scope.
func (n Need) String() string {
	if n.Scope == "" {
		return string(n.Capability)
	}
	return string(n.Capability) + ":" + n.Scope
}

// ParseNeed reads capability:scope; the scope may be left out.
func ParseNeed(s string) Need {
	name, scope, _ := strings.Cut(s, ":")
	return Need{Capability: Capability(name), Scope: scope}
}

// Evidence points at the part of a call that a vote or a need rests on.
type Evidence struct {
	// Where is a JSON pointer into the arguments, or the name of another part
	// of the call, optionally with a byte range: "/command[3:9]".
	Where string `json:"where"`
	// Text is what stands there or what was found out about it.
	Text string `json:"text"`
}
