package call

import "strings"

// Taint is what an agent has taken in that makes what it sends later delicate.
// Taints are joined; the zero value is none.
type Taint uint8

// The taints.
const (
	// TaintSecrets: it has read credentials.
	TaintSecrets Taint = 1 << iota
	// TaintUntrusted: it has read what nobody vouches for, such as a web page.
	TaintUntrusted
)

var taintNames = []struct {
	taint Taint
	name  string
}{{TaintSecrets, "secrets"}, {TaintUntrusted, "untrusted"}}

// Names lists the taints by name.
func (t Taint) Names() []string {
	var names []string
	for _, n := range taintNames {
		if t&n.taint != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String joins the names.
func (t Taint) String() string { return strings.Join(t.Names(), ", ") }

// ParseTaint reads one name; what is none of them is every taint there is, so
// that a row nobody understands makes nothing looser.
func ParseTaint(name string) Taint {
	for _, n := range taintNames {
		if n.name == name {
			return n.taint
		}
	}
	return TaintSecrets | TaintUntrusted
}
