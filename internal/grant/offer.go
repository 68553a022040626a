package grant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Offer is one answer a person can give: how long, and for what, in words.
type Offer struct {
	Use         Use         `json:"use"`
	Words       string      `json:"words"`
	Operation   string      `json:"operation,omitzero"`
	ElementType string      `json:"element_type,omitzero"`
	Needs       []call.Need `json:"needs,omitzero"`
}

// Offers lists what a person may be offered for a call, the narrowest first.
// The first is always this one call; a session offer follows only where a
// session grant could discharge every vote that asks, and where there is a
// session at all.
func Offers(c *call.Call, d *call.Decision) []Offer {
	offers := []Offer{{Use: Once, Words: "this call, once"}}
	asks := d.Confirmations()
	if d.Level != call.ConfirmSession || d.Pinned || d.TakesCode || c.Sessionless || len(asks) == 0 {
		return offers
	}
	if c.Kind == call.Native {
		words := fmt.Sprintf("%s for the rest of this session", c.Operation)
		if c.ElementType != "" {
			words = fmt.Sprintf("%s on elements of type %s for the rest of this session", c.Operation, c.ElementType)
		}
		return append(offers, Offer{Use: Session, Words: words, Operation: c.Operation, ElementType: c.ElementType})
	}
	needs, ok := neededBy(asks)
	if !ok {
		return offers
	}
	return append(offers, Offer{Use: Session, Words: words(needs) + " for the rest of this session", Needs: needs})
}

// neededBy collects the needs of votes; a vote that is not about a need with
// a scope cannot be granted for a session.
func neededBy(votes []call.Vote) (needs []call.Need, ok bool) {
	for _, v := range votes {
		if v.Need == nil || v.Need.Scope == "" {
			return nil, false
		}
		n := call.Need{Capability: v.Need.Capability, Scope: v.Need.Scope, Inside: v.Need.Inside}
		if !slices.ContainsFunc(needs, func(m call.Need) bool { return m.String() == n.String() }) {
			needs = append(needs, n)
		}
	}
	return needs, true
}

// verbs say each built-in capability as something one does to a scope.
var verbs = map[call.Capability]string{
	call.FSRead: "reading %s", call.FSWrite: "writing %s", call.FSDelete: "deleting %s",
	call.NetEgress: "connecting to %s", call.ProcExec: "running %s",
	call.DataUser: "reading personal data in %s", call.SecretsAccess: "reading secrets in %s",
}

func words(needs []call.Need) string {
	parts := make([]string, len(needs))
	for i, n := range needs {
		verb, ok := verbs[n.Capability]
		if !ok {
			verb = string(n.Capability) + " on %s"
		}
		parts[i] = fmt.Sprintf(verb, n.Scope)
	}
	return strings.Join(parts, ", ")
}
