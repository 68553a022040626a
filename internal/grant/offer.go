package grant

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Offer is one answer a person can give: how long, and for what, in words.
type Offer struct {
	Use         Use         `json:"use"`
	Words       string      `json:"words"`
	Operation   string      `json:"operation,omitzero"`
	ElementType string      `json:"element_type,omitzero"`
	Needs       []call.Need `json:"needs,omitzero"`
	// Seconds is the longest that the answer counts, 0 as the policy has it.
	Seconds int `json:"seconds,omitzero"`
	// Suggested says that active elements have this answer in mind.
	Suggested bool `json:"suggested,omitzero"`
}

// Bound returns the shorter of a life and the offer's own.
func (o *Offer) Bound(life time.Duration) time.Duration {
	return call.Terms{Life: time.Duration(o.Seconds) * time.Second}.Bound(life)
}

// Offers lists what a person may be offered for a call, the narrowest first.
// The first is always this one call. Offers for the session follow only where
// there is a session at all and a session grant could discharge every vote
// that asks: for the place that the call touches, then for the whole workspace.
// The terms narrow what is offered for external calls.
func Offers(c *call.Call, d *call.Decision, terms call.Terms) []Offer {
	offers := []Offer{{Use: Once, Words: "this call, once"}}
	if c.Kind != call.External {
		terms = call.Terms{}
	}
	offers[0].Seconds = int(terms.Life / time.Second)
	asks := d.Confirmations()
	if d.Level != call.ConfirmSession || d.Pinned || d.TakesCode || c.Sessionless || terms.Once || len(asks) == 0 {
		return offers
	}
	if c.Kind == call.Native {
		words := fmt.Sprintf("%s for the rest of this session", c.Operation)
		if c.ElementType != "" {
			words = fmt.Sprintf("%s on elements of type %s for the rest of this session", c.Operation, c.ElementType)
		}
		return append(offers, Offer{Use: Session, Words: words, Operation: c.Operation, ElementType: c.ElementType})
	}
	for _, widen := range []func(call.Need) string{place, workspace} {
		needs, ok := neededBy(asks, widen)
		if !ok {
			return offers
		}
		o := Offer{Use: Session, Words: words(needs, c.Rewrites) + " for this session", Needs: needs, Seconds: offers[0].Seconds, Suggested: terms.Session && len(offers) == 1}
		if terms.Life > 0 {
			o.Words += ", " + terms.Life.String() + " at most"
		}
		if !slices.ContainsFunc(offers, func(other Offer) bool { return other.Words == o.Words }) {
			offers = append(offers, o)
		}
	}
	return offers
}

// neededBy collects the needs of votes, each with the scope that it is offered
// for. A vote that is not about a need with a scope cannot be granted for a
// session, and neither can one that runs a program which may run others.
func neededBy(votes []call.Vote, widen func(call.Need) string) (needs []call.Need, ok bool) {
	for _, v := range votes {
		if v.Need == nil || v.Need.Scope == "" || v.Need.Capability == call.ProcExec && v.Need.Scope != call.Confined {
			return nil, false
		}
		n := call.Need{Capability: v.Need.Capability, Scope: widen(*v.Need), Inside: v.Need.Inside, Root: v.Need.Root}
		if !slices.ContainsFunc(needs, func(m call.Need) bool { return m.String() == n.String() }) {
			needs = append(needs, n)
		}
	}
	return needs, true
}

// placeDepth is how deep below the workspace the place of a file is: a part of
// the project, and not each of its folders.
const placeDepth = 2

// place is the scope that is offered first: of a change in the workspace the
// part of it that the file is in, of one elsewhere the file's directory, and
// of everything else the very thing.
func place(n call.Need) string {
	if n.Capability != call.FSWrite && n.Capability != call.FSRead {
		return n.Scope
	}
	if tree, ok := strings.CutSuffix(n.Scope, "/**"); ok && tree != "" {
		return n.Scope
	}
	if !strings.HasPrefix(n.Scope, ".") && !strings.HasPrefix(n.Scope, "/") {
		return n.Scope // no path: a database
	}
	dir := path.Dir(n.Scope)
	if !n.Inside {
		if tmp := temporary(n.Scope); tmp != "" {
			return tmp + "/**"
		}
		if strings.Count(dir, "/") < 2 || systemDir(dir) {
			return n.Scope // right below the root: the file itself
		}
		return dir + "/**"
	}
	if dir == "." {
		return "./**" // go.mod, Makefile, setup.py: what the whole project stands on
	}
	parts := strings.Split(dir, "/")
	return "./" + strings.Join(parts[:min(len(parts), placeDepth)], "/") + "/**"
}

// temporary is the directory for temporary files that a path is in.
func temporary(p string) string {
	for _, d := range []string{"/tmp", "/var/tmp", "/private/tmp"} {
		if strings.HasPrefix(p, d+"/") {
			return d
		}
	}
	return ""
}

// systemDir says whether a directory is the system's, where one file says
// nothing about its neighbours.
func systemDir(dir string) bool {
	for _, d := range []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/sys", "/proc", "/dev", "/run", "/var", "/opt"} {
		if dir == d || strings.HasPrefix(dir, d+"/") {
			return true
		}
	}
	return false
}

// workspace is the wider scope: of what lies in the workspace, all of it.
func workspace(n call.Need) string {
	if n.Inside && (n.Capability == call.FSWrite || n.Capability == call.FSRead) {
		return "./**"
	}
	return place(n)
}

// verbs say each built-in capability as something that is done to a scope.
var verbs = map[call.Capability]string{
	call.FSRead: "reads", call.FSWrite: "writes", call.FSDelete: "deletions",
	call.NetEgress: "network to", call.ProcExec: "running",
	call.DataUser: "personal data in", call.SecretsAccess: "secrets in",
}

// words says what an offer is for. Where the gate can confine project code, who
// may write anywhere in the workspace may run it there: confined, it can do no
// more than that. The person is told.
func words(needs []call.Need, confines bool) string {
	parts := make([]string, len(needs))
	for i, n := range needs {
		verb, ok := verbs[n.Capability]
		if !ok {
			verb = string(n.Capability) + " on"
		}
		parts[i] = verb + " " + scopeWords(n)
		if confines && n.Capability == call.FSWrite && n.Scope == "./**" {
			parts[i] += ", also by project code (tests, builds, scripts) confined to it without network"
		}
	}
	return strings.Join(parts, ", ")
}

// scopeWords says a scope as people say it.
func scopeWords(n call.Need) string {
	files := n.Capability == call.FSRead || n.Capability == call.FSWrite || n.Capability == call.FSDelete
	tree, isTree := strings.CutSuffix(n.Scope, "/**")
	switch {
	case n.Capability == call.ProcExec && n.Scope == call.Confined:
		return "project code (tests, builds, scripts) confined to the workspace without network"
	case files && strings.HasPrefix(n.Scope, "database "):
		return "in the " + strings.Replace(n.Scope, "database by ", "database of ", 1)
	case n.Capability == call.NetEgress && strings.HasPrefix(n.Scope, "by "):
		return "whatever " + n.Scope[len("by "):] + " contacts"
	case files && n.Scope == "./**":
		return "anywhere in the workspace"
	case files && isTree:
		return "under " + tree
	case files:
		return "to " + n.Scope
	}
	return n.Scope
}
