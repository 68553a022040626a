package launch

import (
	"encoding/binary"
	"errors"
)

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

var errConfig = errors.New("launch: malformed configuration")

// Encode returns the wire form of c.
func (c *Config) Encode() []byte {
	e := encoder{}
	e.str(c.Path)
	e.strs(c.Argv)
	e.strs(c.Env)
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

// Decode reads the wire form. Anything short, long or out of range is refused.
func Decode(b []byte) (*Config, error) {
	d := decoder{b: b}
	c := &Config{
		Path:  d.str(),
		Argv:  d.strs(),
		Env:   d.strs(),
		Dir:   d.str(),
		Umask: uint32(d.num()),
	}
	c.Filter = []byte(d.str())
	c.Notify = d.flag()
	c.HandledFS, c.HandledNet, c.Scoped = d.num(), d.num(), d.num()
	for range d.count() {
		c.Rules = append(c.Rules, Rule{Path: d.str(), Access: d.num()})
	}
	for range d.count() {
		c.Limits = append(c.Limits, Limit{Resource: uint32(d.num()), Value: d.num()})
	}
	c.Listen = uint16(d.num())
	c.Socket = d.str()
	c.TTY = d.flag()
	for range d.count() {
		c.Namespaces = append(c.Namespaces, d.num())
	}
	c.Quiet = d.flag()
	c.Want = d.num()
	if d.bad || len(d.b) != 0 || c.Path == "" || len(c.Argv) == 0 {
		return nil, errConfig
	}
	return c, nil
}

type encoder struct{ b []byte }

func (e *encoder) num(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

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
}

func (e *encoder) strs(list []string) {
	e.num(uint64(len(list)))
	for _, s := range list {
		e.str(s)
	}
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) num() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) flag() bool { return d.num() == 1 }

// count reads a length that cannot exceed what is left, so that a malformed
// file cannot make the loop above run for ever.
func (d *decoder) count() int {
	n := d.num()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) str() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) strs() []string {
	n := d.count()
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.str())
	}
	return list
}
