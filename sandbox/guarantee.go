package sandbox

import "strings"

// Guarantee is a set of properties that hold for a run. Each bit is claimed
// only when the run's own second stage, or the kernel's answer, proved it.
type Guarantee uint32

// The guarantees, in the order in which they are printed.
const (
	// WriteRoots: files are created and changed under declared roots only.
	WriteRoots Guarantee = 1 << iota
	// ReadRoots: the content of undeclared files cannot be read.
	ReadRoots
	// ReadAbsent: undeclared files are not there at all, not even by name.
	ReadAbsent
	// ProtectedPaths: hooks, settings and start-up files inside a writable
	// root stay as they were, absent ones included.
	ProtectedPaths
	// Metadata: mode, owner, times and attributes of undeclared files stay.
	Metadata
	// NoNetwork: no address outside is reachable, nor the host's loopback.
	NoNetwork
	// HostNames: declared hosts only, by name, through the egress proxy.
	HostNames
	// UnixSockets: sockets of the host are out of reach unless named.
	UnixSockets
	// Processes: processes outside can be neither signalled nor inspected.
	Processes
	// ProcessesHidden: processes outside cannot even be seen.
	ProcessesHidden
	// IPC: System V and POSIX shared objects of the host are out of reach.
	IPC
	// Privileges: unprivileged user, no capabilities, none to be gained.
	Privileges
	// Syscalls: the seccomp filter is in force.
	Syscalls
	// Environment: only declared variables, no loader or start-up variables.
	Environment
	// Descriptors: nothing open but the three standard streams.
	Descriptors
	// TreeDead: every process of the run is dead before the call returns.
	TreeDead
	// DiesWithGate: the tree dies even if the gate itself is killed.
	DiesWithGate
	// TerminalSafe: no input can be pushed into a terminal of the host.
	TerminalSafe
	// MemoryLimit: memory of the whole tree is bounded.
	MemoryLimit
	// ProcessLimit: the number of processes of the tree is bounded.
	ProcessLimit
	// NoPrograms: the command starts no other program.
	NoPrograms
)

var guaranteeNames = []string{
	"write-roots", "read-roots", "read-absent", "protected-paths", "metadata", "no-network", "host-names",
	"unix-sockets", "processes", "processes-hidden", "ipc", "privileges", "syscalls", "environment",
	"descriptors", "tree-dead", "dies-with-gate", "terminal", "memory-limit", "process-limit", "no-programs",
}

// AllGuarantees is every bit.
const AllGuarantees = NoPrograms<<1 - 1

// Has reports whether every bit of want is in g.
func (g Guarantee) Has(want Guarantee) bool { return g&want == want }

// Names lists the members in a fixed order.
func (g Guarantee) Names() []string {
	var names []string
	for i, n := range guaranteeNames {
		if g&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String joins the names with commas; the empty set prints as "none".
func (g Guarantee) String() string {
	if g == 0 {
		return "none"
	}
	return strings.Join(g.Names(), ",")
}

// ParseGuarantee reads one name.
func ParseGuarantee(name string) (Guarantee, bool) {
	for i, n := range guaranteeNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// needed derives from a Spec what a back-end must hold. What is not named here
// is recorded when achieved and required only on demand: bounding the memory of
// a whole tree takes a control group, which an ordinary user rarely may make.
func needed(s *Spec) Guarantee {
	need := WriteRoots | ReadRoots | Metadata | UnixSockets | Processes | IPC | Privileges | Syscalls |
		Environment | Descriptors | TreeDead | TerminalSafe
	if s.Net.Mode == NetNone {
		need |= NoNetwork
	} else {
		need |= HostNames
	}
	if len(s.Write)+len(s.Private) > 0 && !s.Overlay.active() {
		need |= ProtectedPaths
	}
	if s.NoExec {
		need |= NoPrograms
	}
	return (need | s.Require) &^ s.Without
}
