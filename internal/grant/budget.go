package grant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Budget is what the approval of a plan covers, by the count. The calls of the
// plan draw from it; what it does not hold asks again. A sub-agent gets a budget
// of its own, cut from the one above.
//
// It discharges votes about capabilities and nothing else, and of those only
// the ones that ask once per session: what asks for every use asks for every
// use, in a plan as well.
type Budget struct {
	ID        string         `json:"id"`
	Principal call.Principal `json:"principal"`
	// Parent is the budget it was cut from, "" for a plan's own.
	Parent string `json:"parent,omitzero"`
	// Call is the call of the plan; when that is over, so is the budget.
	Call string `json:"call"`
	// Votes are the keys of the votes the person was shown.
	Votes []string `json:"votes"`
	Lines []Line   `json:"lines"`
	// By and Channel say who gave it, where.
	By      string    `json:"by"`
	Channel string    `json:"channel"`
	Given   time.Time `json:"given"`
	Expires time.Time `json:"expires"`
}

// Line is one need, with how often it may be met.
type Line struct {
	Need  call.Need `json:"need"`
	Total int       `json:"total"`
	// Used is what calls have drawn, Reserved what was handed on.
	Used     int `json:"used"`
	Reserved int `json:"reserved,omitzero"`
	// From is the line above that a handed-on line was cut from.
	From int `json:"from,omitzero"`
}

// Left is how often the line can still be drawn from.
func (l *Line) Left() int { return l.Total - l.Used - l.Reserved }

// Draw takes from the budget what discharges the votes, and returns the votes
// that stay open. It changes the budget; whoever calls it keeps the change only
// if the call goes ahead.
func (b *Budget) Draw(c *call.Call, d *call.Decision, votes []call.Vote, scope Scope) (drawn int, open []call.Vote) {
	for _, v := range votes {
		if b.draw(c, d, v, scope) {
			drawn++
			continue
		}
		open = append(open, v)
	}
	return drawn, open
}

func (b *Budget) draw(c *call.Call, d *call.Decision, v call.Vote, scope Scope) bool {
	switch {
	case b.Principal != c.Principal, c.Kind != call.External, d.Pinned, d.TakesCode, d.Level == call.Deny:
		return false
	case v.Stage != call.StageSession, v.Level != call.ConfirmSession, v.Need == nil, v.Need.Scope == "", !slices.Contains(b.Votes, v.Key()):
		return false
	}
	for i := range b.Lines {
		if l := &b.Lines[i]; l.Left() > 0 && within(l.Need, *v.Need, scope) {
			l.Used++
			return true
		}
	}
	return false
}

// Delegate cuts a budget for a sub-agent. Every line asked for must lie within
// a line of this one that has enough left, which is reserved.
func (b *Budget) Delegate(id, path string, lines []Line, scope Scope) (*Budget, error) {
	if !Below(b.Principal.Path, path) {
		return nil, fmt.Errorf("%q is not a sub-agent of %q: a budget is handed downwards", path, b.Principal.Path)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("name what the sub-agent gets")
	}
	sub := &Budget{
		ID: id, Principal: b.Principal, Parent: b.ID, Call: b.Call, Votes: b.Votes, By: b.By, Channel: b.Channel, Given: b.Given, Expires: b.Expires,
	}
	sub.Principal.Path = path
	left := slices.Clone(b.Lines)
	for _, want := range lines {
		// What is handed on is the same place, narrower: all but the scope is
		// that of the line above.
		var need call.Need
		i := slices.IndexFunc(left, func(l Line) bool {
			need = l.Need
			need.Scope = want.Need.Scope
			return want.Total > 0 && l.Left() >= want.Total && l.Need.Capability == want.Need.Capability && within(l.Need, need, scope)
		})
		if i < 0 {
			return nil, fmt.Errorf("the budget does not hold %s %d times: a sub-agent gets a part of what is left", want.Need, want.Total)
		}
		left[i].Reserved += want.Total
		sub.Lines = append(sub.Lines, Line{Need: need, Total: want.Total, From: i})
	}
	b.Lines = left
	return sub, nil
}

// Return takes back what a sub-agent's budget has left. It must have been cut
// from this one, and nothing of it may still be handed on.
func (b *Budget) Return(sub *Budget) error {
	if sub.Parent != b.ID {
		return fmt.Errorf("the budget %s was not cut from %s", sub.ID, b.ID)
	}
	for i := range sub.Lines {
		l := &sub.Lines[i]
		if l.Reserved != 0 || l.From < 0 || l.From >= len(b.Lines) || b.Lines[l.From].Reserved < l.Total {
			return fmt.Errorf("the budget %s does not add up", sub.ID)
		}
		up := &b.Lines[l.From]
		up.Reserved -= l.Total
		up.Used += l.Used
		l.Total = l.Used
	}
	return nil
}

// Below says whether a path names a sub-agent below another.
func Below(above, path string) bool {
	rest := path
	if above != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(path, above+"/"); !ok {
			return false
		}
	}
	for el := range strings.SplitSeq(rest, "/") {
		if el == "" || el == "." || el == ".." {
			return false
		}
	}
	return true
}
