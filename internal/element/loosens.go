package element

import (
	"fmt"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Change is what a call would do to the active elements of its principal.
type Change struct {
	// Remove are the ids of elements that would no longer be active; an
	// ensemble takes its members along.
	Remove []string
	// Add are elements that would be active, in place of those of the same id.
	Add []Element
	// Unjudged says why the change cannot be judged here, "" if it can; such a
	// change counts as loosening.
	Unjudged string
}

// Apply returns the elements as they would be after a change.
func Apply(elements []Element, ch *Change) []Element {
	var out []Element
	for _, e := range elements {
		id := e.Type + "/" + e.Name
		gone := slices.Contains(ch.Remove, e.ID()) || e.Of != "" && slices.Contains(ch.Remove, e.Of) || e.Of == "" && slices.Contains(ch.Remove, id)
		if !gone {
			out = append(out, e)
		}
	}
	for _, e := range ch.Add {
		out = slices.DeleteFunc(out, func(old Element) bool { return old.ID() == e.ID() })
		out = append(out, e)
	}
	return out
}

// Loosens says in which ways a change makes the set looser, or may.
func (s *Set) Loosens(ch *Change) []string {
	switch {
	case ch == nil:
		return []string{"it was not judged"}
	case ch.Unjudged != "":
		return []string{ch.Unjudged}
	}
	return Loosens(s.Active(), Apply(s.Active(), ch))
}

// Loosens compares two sets of active elements and says in which ways the
// second is looser, or may be: an operation with a lower level, a question
// that is not asked any more, a pattern that is gone. It errs on the side of
// calling a change loosening.
func Loosens(before, after []Element) []string {
	old, new := Compile(before), Compile(after)
	out := nativeLoosens(old, new)
	return append(out, externalLoosens(old, new)...)
}

func nativeLoosens(old, new *Set) []string {
	var out []string
	types := append(call.ElementTypes(), "")
	for _, op := range call.Operations() {
		for _, tightening := range []bool{false, true} {
			for _, t := range types {
				a, b := old.Resolve(op.Name, t, tightening), new.Resolve(op.Name, t, tightening)
				what := op.Name
				if t != "" {
					what += " of " + t
				}
				switch {
				case a.Level.StricterThan(b.Level):
					out = append(out, fmt.Sprintf("%s: %s → %s", what, a.Level, b.Level))
				case b.Level != call.Deny && lost(a.Votes, b.Votes):
					out = append(out, what+": a question is not asked any more")
				}
			}
		}
	}
	return slices.Compact(out)
}

// lost says whether one of the votes that ask is gone: a session's grant could
// be enough for those that are left.
func lost(old, new []call.Vote) bool {
	return slices.ContainsFunc(old, func(v call.Vote) bool {
		return v.Level.Asks() && !slices.ContainsFunc(new, func(n call.Vote) bool { return n.Key() == v.Key() })
	})
}

// externalLoosens compares the patterns: every objection of the old set must
// be held by one of the new, and every allow of the new one by the old.
func externalLoosens(old, new *Set) []string {
	var out []string
	for i := range old.externs {
		x := &old.externs[i]
		out = append(out, gone("denyPatterns", x.deny, new, func(y *extern) []pattern { return y.deny })...)
		out = append(out, gone("confirmPatterns", x.confirm, new, func(y *extern) []pattern { return append(slices.Clone(y.deny), y.confirm...) })...)
		for _, class := range x.element.External.Require {
			if !slices.ContainsFunc(new.externs, func(y extern) bool { return y.requires(class, &x.element.External) }) {
				out = append(out, "approvalPolicy: "+class+" is not asked any more, or answered for longer")
			}
		}
		if len(x.only) > 0 && !slices.ContainsFunc(new.externs, func(y extern) bool { return len(y.only) > 0 && heldAll(x.only, y.only) }) {
			out = append(out, "tools: a list of tools is gone or longer")
		}
		if x.element.Quarantine != "" && !slices.ContainsFunc(new.externs, func(y extern) bool { return y.element.Quarantine != "" }) {
			out = append(out, "quarantine: "+x.element.ID()+" is out of it")
		}
	}
	for i := range new.allowed {
		if p := &new.allowed[i]; !held(p, old.allowed) {
			out = append(out, "allowPatterns: "+p.src+" is new")
		}
	}
	if len(old.lists) > 0 && len(new.lists) == 0 {
		out = append(out, "allowPatterns: what is on no list is not denied any more")
	}
	if old.terms.Once && !new.terms.Once {
		out = append(out, "approvalPolicy: answers are not for single calls alone any more")
	}
	if life := old.terms.Life; life > 0 && (new.terms.Life == 0 || new.terms.Life > life) {
		out = append(out, "approvalPolicy: answers count for longer than "+life.String())
	}
	return out
}

// requires says whether the element asks about a class at least as strictly as
// another one does.
func (x *extern) requires(class string, as *External) bool {
	y := &x.element.External
	return slices.Contains(y.Require, class) && (y.Scope != scopeSession || as.Scope == scopeSession)
}

// gone lists the patterns that none of the new set's holds.
func gone(key string, old []pattern, new *Set, of func(*extern) []pattern) []string {
	var out []string
	for i := range old {
		found := false
		for j := range new.externs {
			found = found || held(&old[i], of(&new.externs[j]))
		}
		if !found {
			out = append(out, key+": "+old[i].src+" is gone")
		}
	}
	return out
}

// held says whether one of the patterns holds everything that p does.
func held(p *pattern, list []pattern) bool {
	return slices.ContainsFunc(list, func(w pattern) bool {
		if w.src == p.src {
			return true
		}
		if w.tool.Covers(p.tool) != match.Yes {
			return false
		}
		return !w.hasArg || p.hasArg && w.arg.Covers(p.arg) == match.Yes
	})
}

// heldAll says whether every pattern of the new list was on the old one.
func heldAll(old, new []pattern) bool {
	for i := range new {
		if !held(&new[i], old) {
			return false
		}
	}
	return true
}
