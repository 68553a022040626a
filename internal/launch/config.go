package launch

import "encoding/binary"

// Config is everything the second stage needs to know. The zero value runs
// nothing: an empty Argv is an error.
type Config struct {
	Path  string   // the program, an absolute path as seen inside
	Argv  []string // its arguments, program name first
	Env   []string
	Dir   string
	Umask uint32

	Filter []byte // seccomp program, struct sock_filter array in host order
	Notify bool   // the filter asks a listener; pass its descriptor out

	HandledFS  uint64 // Landlock masks
	HandledNet uint64
	Scoped     uint64
	Rules      []Rule

	Limits []Limit
	Listen uint16 // loopback port to listen on and hand out; 0 for none
	Socket string // unix socket to listen on and hand out; "" for none
	TTY    bool   // descriptor 0 becomes the controlling terminal

	// Namespaces are the inode numbers of the first stage's namespaces in the
	// order of NamespaceNames. The report says which of them differ inside.
	Namespaces []uint64
	// Quiet skips the socket pair: a back-end that closes descriptors gets
	// its Config from a file, and the second stage exits with ExitSetup when
	// anything is missing from Want.
	Quiet bool
	Want  uint64
}

// Rule grants Access beneath Path to a Landlock domain. A path that does not
// exist inside is skipped: nothing is granted.
type Rule struct {
	Path   string
	Access uint64
}

// Limit is one resource limit, soft and hard alike.
type Limit struct {
	Resource uint32
	Value    uint64
}

// NamespaceNames is the order in which namespaces are compared and reported.
var NamespaceNames = [...]string{"user", "pid", "ipc", "uts", "net", "mnt", "cgroup"}

// Bits of a Report's Facts. The first seven are the namespaces.
const (
	FactUserNS uint64 = 1 << iota
	FactPidNS
	FactIPCNS
	FactUTSNS
	FactNetNS
	FactMountNS
	FactCgroupNS
	FactNoNewPrivs
	FactNoCaps
	FactSeccomp
	FactLandlockFS
	FactLandlockScope
	FactTerminal
	FactNotRoot
)

// Started is what a quiet second stage writes to its standard error last, so
// that the first can tell a command's failure from a back-end's.
const Started = "\x00gatehouse: started\x00"

// ExitSetup is the exit status when the second stage could not lock itself in.
const ExitSetup = 125

// Encode returns the wire form of c: numbers in eight bytes, strings with their
// length before and a NUL behind, each padded to eight bytes, lists with their
// length before. Arguments and environment have a table of as many words as the
// kernel wants addresses, which the second stage fills in: it makes no copies.
func (c *Config) Encode() []byte {
	e := encoder{}
	e.str(c.Path)
	e.vector(c.Argv)
	e.vector(c.Env)
	e.str(c.Dir)
	e.num(uint64(c.Umask))
	e.str(string(c.Filter))
	e.flag(c.Notify)
	e.num(c.HandledFS)
	e.num(c.HandledNet)
	e.num(c.Scoped)
	e.num(uint64(len(c.Rules)))
	for _, r := range c.Rules {
		e.str(r.Path)
		e.num(r.Access)
	}
	e.num(uint64(len(c.Limits)))
	for _, l := range c.Limits {
		e.num(uint64(l.Resource))
		e.num(l.Value)
	}
	e.num(uint64(c.Listen))
	e.str(c.Socket)
	e.flag(c.TTY)
	e.num(uint64(len(c.Namespaces)))
	for _, n := range c.Namespaces {
		e.num(n)
	}
	e.flag(c.Quiet)
	e.num(c.Want)
	return e.b
}

type encoder struct{ b []byte }

func (e *encoder) num(v uint64) { e.b = binary.NativeEndian.AppendUint64(e.b, v) }

func (e *encoder) flag(v bool) {
	if v {
		e.num(1)
		return
	}
	e.num(0)
}

func (e *encoder) str(s string) {
	e.num(uint64(len(s)))
	e.b = append(e.b, s...)
	e.b = append(e.b, make([]byte, 8-len(s)%8)...) // at least the NUL
}

func (e *encoder) vector(list []string) {
	e.num(uint64(len(list)))
	e.b = append(e.b, make([]byte, 8*(len(list)+1))...)
	for _, s := range list {
		e.str(s)
	}
}
