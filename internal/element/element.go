package element

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Lists are the operations that an element allows, confirms and denies. Each
// entry is an operation's name, an alias of it, or a glob over names.
type Lists struct {
	Allow   []string `json:"allow,omitzero"`
	Confirm []string `json:"confirm,omitzero"`
	Deny    []string `json:"deny,omitzero"`
}

// Scope bounds the element types that native operations may touch while the
// element is active.
type Scope struct {
	AllowedTypes []string `json:"allowedTypes,omitzero"`
	BlockedTypes []string `json:"blockedTypes,omitzero"`
}

// Element is an active element with the policy it carries.
type Element struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Lists Lists  `json:"lists"`
	Scope Scope  `json:"scope,omitzero"`
	// External is what it says about calls to tools outside the gate.
	External External `json:"external,omitzero"`
	// Of is the ensemble that brought the element, "" if none did.
	Of string `json:"of,omitzero"`
	// Quarantine says why the policy did not load; "" if it did.
	Quarantine string `json:"quarantine,omitzero"`
}

// ID names the element as type/name, with the ensemble that brought it.
func (e *Element) ID() string {
	if e.Of != "" {
		return e.Type + "/" + e.Name + " of " + e.Of
	}
	return e.Type + "/" + e.Name
}

// Set is the compiled policy of all active elements. The zero value and nil
// hold no elements. It is immutable.
type Set struct {
	ballots  map[key]call.Ballot
	externs  []extern
	index    *index    // over the patterns of all elements that deny or confirm
	allowed  []pattern // the allow patterns of all elements
	lists    []string  // the elements that have such
	types    bool      // whether any element restricts types
	terms    call.Terms
	frozen   []string
	ids      []string
	elements []Element
}

// key is what a ballot was compiled for.
type key struct {
	operation   string
	elementType string
	tightening  bool
}

// freezeMarker is the operation whose denial freezes the session: nothing
// can be confirmed any more.
const freezeMarker = "confirm_operation"

var unrestricted = Compile(nil)

// Compile builds the set of active elements. The order of the elements does
// not matter: they are compiled in the order of their ids.
func Compile(elements []Element) *Set {
	elements = slices.Clone(elements)
	slices.SortFunc(elements, func(a, b Element) int { return strings.Compare(a.ID(), b.ID()) })
	s := &Set{ballots: make(map[key]call.Ballot), elements: elements, terms: termsOf(elements)}
	s.compileExternal(elements)
	for i := range elements {
		e := &elements[i]
		if bad := e.Lists.malformed(); bad != "" && e.Quarantine == "" {
			// It matches nothing: a deny that does not would be left out.
			e.Quarantine = fmt.Sprintf("the entry %q is not a pattern", bad)
		}
		s.ids = append(s.ids, e.ID())
		s.types = s.types || len(e.Scope.AllowedTypes)+len(e.Scope.BlockedTypes) > 0
		if _, ok := matchList(e.Lists.Deny, freezeMarker, nil); ok {
			s.frozen = append(s.frozen, e.ID())
		}
	}
	types := []string{""}
	if s.types {
		types = append(types, call.ElementTypes()...)
	}
	ops := call.Operations()
	for i := range ops {
		for _, t := range types {
			s.ballots[key{ops[i].Name, t, false}] = resolve(&ops[i], t, false, elements).Share()
			if ops[i].FreeIfTightening {
				s.ballots[key{ops[i].Name, t, true}] = resolve(&ops[i], t, true, elements).Share()
			}
		}
	}
	return s
}

// Elements lists the ids of the active elements.
func (s *Set) Elements() []string {
	if s == nil {
		return nil
	}
	return s.ids
}

// Active returns the elements the set was compiled from. Do not change them.
func (s *Set) Active() []Element {
	if s == nil {
		return nil
	}
	return s.elements
}

// Frozen lists the elements that deny confirm_operation. While there is one,
// nothing beyond a read may happen.
func (s *Set) Frozen() []string {
	if s == nil {
		return nil
	}
	return s.frozen
}

// Resolve answers what the operation table and the active elements say about
// a native operation. The tightening flag says that the call was proven to
// loosen nothing. An unknown name asks for a confirmation of this use, or what
// elements say beyond that: the route voter denies it, and whoever asks here
// directly is not let through.
func (s *Set) Resolve(operation, elementType string, tightening bool) call.Ballot {
	if s == nil {
		s = unrestricted
	}
	op, ok := call.LookupOperation(operation)
	if !ok {
		return resolve(&call.Operation{Name: operation, Level: call.ConfirmSingleUse, Rationale: "the operation is not in the table"}, elementType, false, s.elements)
	}
	k := key{operation: op.Name, tightening: tightening && op.FreeIfTightening}
	if s.types {
		k.elementType = elementType
	}
	if b, ok := s.ballots[k]; ok {
		return b
	}
	// Only an element type that no element can have comes here: scope
	// restrictions say nothing about it, so it is nowhere allowed.
	return call.Ballot{Stage: call.StageElement, Level: call.Deny, Votes: unknownTypeVotes}
}

var unknownTypeVotes = []call.Vote{{
	Stage: call.StageElement, Source: "element types", Rule: "unknown type",
	Level: call.Deny, Reason: "the element type does not exist, and an active element restricts types",
}}

// resolve collects what every element says about one operation.
func resolve(op *call.Operation, elementType string, tightening bool, elements []Element) call.Ballot {
	base := baseVote(op, tightening)
	b := call.Ballot{Stage: call.StageElement}
	if op.Ungatable {
		b.Level, b.Votes = base.Level, []call.Vote{base}
		return b
	}
	var allows []call.Vote
	objection := false // someone confirms or denies: no allow gets through
	for i := range elements {
		e := &elements[i]
		for _, v := range e.objections(op, elementType) {
			objection = true
			b.Votes = append(b.Votes, v)
		}
		if entry, ok := matchList(e.Lists.Allow, op.Name, op.Aliases); ok && e.Quarantine == "" {
			allows = append(allows, vote(e, "allow: "+entry, call.AutoApprove, "allows it"))
		}
	}
	lowered := false
	for _, v := range allows {
		if why := refuseAllow(op, objection); why != "" {
			b.Conflicts = append(b.Conflicts, call.Conflict{Source: v.Source, Wanted: v.Level, Reason: why})
			continue
		}
		lowered = true
		b.Votes = append(b.Votes, v)
	}
	if lowered && base.Level.StricterThan(call.AutoApprove) {
		b.Conflicts = append(b.Conflicts, call.Conflict{Source: base.Source, Wanted: base.Level, Reason: "lowered by an element's allow list"})
	} else {
		b.Votes = append([]call.Vote{base}, b.Votes...)
	}
	b.Level = call.AutoApprove
	for _, v := range b.Votes {
		b.Level = call.Join(b.Level, v.Level)
	}
	return b
}

// baseVote is what the operation table says.
func baseVote(op *call.Operation, tightening bool) call.Vote {
	v := call.Vote{
		Stage: call.StageElement, Source: "operation table", Rule: op.Endpoint.String() + " " + op.Name,
		Level: op.Level, Reason: op.Rationale,
	}
	if op.FreeIfTightening && tightening {
		v.Level, v.Reason = call.AutoApprove, "it was proven to loosen nothing, and tightening is free"
	}
	return v
}

// objections are the element's votes against going ahead unasked.
func (e *Element) objections(op *call.Operation, elementType string) []call.Vote {
	var votes []call.Vote
	if e.Quarantine != "" && op.Endpoint != call.Read {
		votes = append(votes, e.quarantined())
	}
	if entry, ok := matchList(e.Lists.Deny, op.Name, op.Aliases); ok {
		votes = append(votes, vote(e, "deny: "+entry, call.Deny, "denies it"))
	}
	if rule, ok := e.Scope.excludes(elementType); ok {
		votes = append(votes, vote(e, rule, call.Deny, "does not reach elements of type "+elementType))
	}
	if entry, ok := matchList(e.Lists.Confirm, op.Name, op.Aliases); ok {
		votes = append(votes, vote(e, "confirm: "+entry, call.ConfirmSession, "wants it confirmed"))
	}
	return votes
}

// quarantined is the vote of an element whose policy did not load.
func (e *Element) quarantined() call.Vote {
	return vote(e, "quarantine", call.Deny, "is quarantined, its policy did not load ("+e.Quarantine+"); nothing beyond a read runs under it")
}

func vote(e *Element, rule string, level call.Level, says string) call.Vote {
	return call.Vote{
		Stage: call.StageElement, Source: e.ID(), Rule: rule, Level: level,
		Reason: fmt.Sprintf("the active %s %q %s", e.Type, e.Name, says),
	}
}

// refuseAllow says why an allow has no effect, "" if it has one.
func refuseAllow(op *call.Operation, objection bool) string {
	switch {
	case op.Pinned || op.FreeIfTightening:
		return "the operation is pinned: no element can approve it"
	case !op.CanBeElevated:
		return "the operation cannot be elevated"
	case objection:
		return "another element confirms or denies it"
	}
	return ""
}

// excludes reports which restriction keeps the scope away from a type.
func (s Scope) excludes(elementType string) (rule string, excluded bool) {
	if elementType == "" {
		return "", false
	}
	if len(s.AllowedTypes) > 0 && !hasType(s.AllowedTypes, elementType) {
		return "scopeRestrictions.allowedTypes", true
	}
	if hasType(s.BlockedTypes, elementType) {
		return "scopeRestrictions.blockedTypes", true
	}
	return "", false
}

// hasType compares in the singular, so that a plural spelling matches too.
func hasType(types []string, elementType string) bool {
	return slices.ContainsFunc(types, func(t string) bool { return call.SingularType(t) == elementType })
}
