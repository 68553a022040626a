package grant

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Use says how long a grant is good for. The zero value is the narrowest.
type Use uint8

const (
	// Once is good for one call, which it is bound to by its digests.
	Once Use = iota
	// Session is good for every covered call of the session.
	Session
)

// String returns once or session.
func (u Use) String() string {
	if u == Session {
		return "session"
	}
	return "once"
}

// MarshalText writes once or session.
func (u Use) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads once or session.
func (u *Use) UnmarshalText(text []byte) error {
	switch string(text) {
	case "once":
		*u = Once
	case "session":
		*u = Session
	default:
		return fmt.Errorf("%q is not a use of a grant: use once or session", text)
	}
	return nil
}

// Grant is a person's answer as it is stored.
type Grant struct {
	ID        string         `json:"id"`
	Use       Use            `json:"use"`
	Principal call.Principal `json:"principal"`
	// Votes are the keys of the votes the person was shown.
	Votes []string `json:"votes"`
	// Digest, World and Policy bind a single-use grant.
	Digest call.Digest `json:"digest,omitzero"`
	World  call.Digest `json:"world,omitzero"`
	Policy call.Digest `json:"policy,omitzero"`
	// Operation and ElementType bound a session grant for native calls.
	Operation   string `json:"operation,omitzero"`
	ElementType string `json:"element_type,omitzero"`
	// Needs bound a session grant for external calls.
	Needs []call.Need `json:"needs,omitzero"`
	// Words is the scope as the person read it.
	Words string `json:"words"`
	// By and Channel say who gave it, where.
	By      string `json:"by"`
	Channel string `json:"channel"`
	// Factor says that the person proved presence afresh (TOTP, passkey).
	Factor  bool      `json:"factor,omitzero"`
	Request string    `json:"request"`
	Given   time.Time `json:"given"`
	Expires time.Time `json:"expires"`
	Uses    int       `json:"uses"`
}

// Under keeps the grants that count under the terms of active elements, for an
// external call. A grant from before they were active is held to them too.
func Under(terms call.Terms, grants []Grant, now time.Time) []Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool {
		return terms.Once && g.Use == Session || terms.Life > 0 && !now.Before(g.Given.Add(terms.Life))
	})
}

// Scope says whether one need lies within another. The policy's matchers
// implement it; a nil Scope compares for equality.
type Scope func(wide, narrow call.Need) bool

// Cover finds grants that together discharge every vote of the decision that
// asks. It returns them, and the votes that stay open; the call may go ahead
// only if none does. Grants must still be good (not expired, revoked or used
// up) and are tried in the order given.
func Cover(c *call.Call, d *call.Decision, grants []Grant, scope Scope) (used []Grant, open []call.Vote) {
	if d.Level == call.Deny {
		return nil, []call.Vote{deniedVote} // no grant answers a denial
	}
	asks := d.Confirmations()
	if d.Pinned && len(asks) == 0 {
		// Pinned calls take a grant even where no vote is left to ask.
		asks = []call.Vote{pinnedVote}
	}
	for _, v := range asks {
		i := slices.IndexFunc(grants, func(g Grant) bool { return g.discharges(c, d, v, scope) })
		if i < 0 {
			open = append(open, v)
			continue
		}
		if !slices.ContainsFunc(used, func(g Grant) bool { return g.ID == grants[i].ID }) {
			used = append(used, grants[i])
		}
	}
	return used, open
}

// pinnedVote stands for the pin itself.
var pinnedVote = call.Vote{
	Stage: call.StageElement, Source: "operation table", Rule: "pinned", Level: call.ConfirmSingleUse,
	Reason: "the operation is pinned: every use is confirmed",
}

// deniedVote stays open whatever was granted.
var deniedVote = call.Vote{Stage: call.StageSwitch, Source: "gatehouse", Rule: "denied", Level: call.Deny, Reason: "a denial cannot be confirmed"}

// Keys returns the keys of the votes of a decision that a person is shown.
func Keys(d *call.Decision) []string {
	var keys []string
	for _, v := range d.Confirmations() {
		keys = append(keys, v.Key())
	}
	if d.Pinned {
		keys = append(keys, pinnedVote.Key())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// discharges says whether the grant answers one vote about one call.
func (g *Grant) discharges(c *call.Call, d *call.Decision, v call.Vote, scope Scope) bool {
	if g.Principal != c.Principal || !slices.Contains(g.Votes, v.Key()) {
		return false
	}
	if g.Use == Once {
		return g.Digest == d.Digest && g.World == d.World && g.Policy == d.Policy && !d.Digest.IsZero()
	}
	if v.Level != call.ConfirmSession || d.Pinned || d.TakesCode || c.Sessionless {
		return false
	}
	if c.Kind == call.Native {
		return g.Operation == c.Operation && g.ElementType == c.ElementType && g.Operation != ""
	}
	return v.Need != nil && slices.ContainsFunc(g.Needs, func(n call.Need) bool { return within(n, *v.Need, scope) })
}

func within(wide, narrow call.Need, scope Scope) bool {
	if wide.Capability != narrow.Capability {
		return false
	}
	if scope != nil {
		return scope(wide, narrow)
	}
	return wide.Scope == narrow.Scope && wide.Scope != ""
}
