package element

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// External is what an element says about calls to tools outside the gate. A
// pattern is "Tool:glob", or a glob over tools. It is held against the
// analysed call: Bash against every simple command, Read, Write and Edit
// against every path that is read or changed, by whichever tool, WebFetch
// against every host.
type External struct {
	Deny    []string `json:"deny,omitzero"`
	Confirm []string `json:"confirm,omitzero"`
	Allow   []string `json:"allow,omitzero"`
	// Only are the tools an agent's own list names; it uses no others.
	Only []string `json:"only,omitzero"`
	// Require are the classes that need an approval: moderate, dangerous.
	Require []string `json:"require,omitzero"`
	// Scope is what an approval is good for, single or tool_session; "" leaves
	// it to the policy. Life is how many seconds it counts, 0 as the policy has
	// it.
	Scope string `json:"scope,omitzero"`
	Life  int    `json:"life,omitzero"`
}

// The scopes of an approval.
const (
	scopeSingle  = "single"
	scopeSession = "tool_session"
)

// empty says that the element has nothing to say about external calls.
func (e *External) empty() bool {
	return len(e.Deny)+len(e.Confirm)+len(e.Allow)+len(e.Only)+len(e.Require) == 0
}

// extern is the compiled policy of one element.
type extern struct {
	element              *Element
	deny, confirm, allow []pattern
	only                 []pattern
	// quiet elements object by patterns alone.
	quiet bool
}

// compileExternal compiles what elements say about external calls. A pattern
// that does not compile quarantines its element.
func (s *Set) compileExternal(elements []Element) {
	var objects []pattern
	for i := range elements {
		e := &elements[i]
		if e.External.empty() && e.Quarantine == "" {
			continue
		}
		x := extern{element: e}
		for _, l := range []struct {
			from []string
			to   *[]pattern
		}{{e.External.Deny, &x.deny}, {e.External.Confirm, &x.confirm}, {e.External.Allow, &x.allow}, {e.External.Only, &x.only}} {
			for _, src := range l.from {
				p, err := compilePattern(src)
				if err != nil && e.Quarantine == "" {
					e.Quarantine = err.Error()
				}
				*l.to = append(*l.to, p)
			}
		}
		x.quiet = e.Quarantine == "" && len(x.only)+len(e.External.Require) == 0
		s.externs = append(s.externs, x)
		objects = append(append(objects, x.deny...), x.confirm...)
		if len(x.allow) > 0 {
			s.lists = append(s.lists, e.ID())
		}
		if e.Quarantine == "" {
			s.allowed = append(s.allowed, x.allow...)
		}
	}
	s.index = newIndex(objects)
}

// External answers what the active elements say about an external call. It
// allocates nothing where none of them says anything.
func (s *Set) External(c *call.Call, f *facts.Facts, reads bool) (votes []call.Vote) {
	if s == nil || len(s.externs) == 0 {
		return nil
	}
	hit := s.index.hit(c, f)
	for i := range s.externs {
		if x := &s.externs[i]; hit || !x.quiet {
			votes = x.objections(votes, c, f, reads)
		}
	}
	if rule, ok := s.outsideLists(c, f); ok && !reads {
		votes = append(votes, rule)
	}
	return votes
}

// AllowsExternal says whether elements' allow patterns hold everything that an
// external call does, and none of them objects to it.
func (s *Set) AllowsExternal(c *call.Call, f *facts.Facts) bool {
	if s == nil || len(s.externs) == 0 {
		return false
	}
	return admits(s.allowed, c, f) && len(s.External(c, f, false)) == 0
}

// outsideLists votes against a call that no element's allow patterns hold,
// where an element has such: what is not on the list was not meant.
func (s *Set) outsideLists(c *call.Call, f *facts.Facts) (call.Vote, bool) {
	if len(s.lists) == 0 || admits(s.allowed, c, f) {
		return call.Vote{}, false
	}
	return call.Vote{
		Stage: call.StageElement, Source: s.lists[0], Rule: "allowPatterns", Level: call.Deny,
		Reason: "it is on no active element's list of what may be used (" + strings.Join(s.lists, ", ") + ")",
	}, true
}

// objections are the votes of one element against an external call.
func (x *extern) objections(votes []call.Vote, c *call.Call, f *facts.Facts, reads bool) []call.Vote {
	e := x.element
	if e.Quarantine != "" && !reads {
		votes = append(votes, e.quarantined())
	}
	object := func(list []pattern, key string, level call.Level, says string) {
		for i := range list {
			switch list[i].objects(c, f) {
			case fits:
				votes = append(votes, vote(e, key+": "+list[i].src, level, says))
			case mayFit:
				votes = append(votes, vote(e, key+": "+list[i].src, call.ConfirmSingleUse, "may mean it, which cannot be told from the call"))
			}
		}
	}
	object(x.deny, "denyPatterns", call.Deny, "denies it")
	object(x.confirm, "confirmPatterns", call.ConfirmSingleUse, "wants it confirmed")
	if len(x.only) > 0 && !reads && !admits(x.only, c, f) {
		votes = append(votes, vote(e, "tools", call.Deny, "lists its tools, and this is none of them"))
	}
	for _, class := range e.External.Require {
		if risky(class, f) && !reads {
			votes = e.wantsApproval(votes, class, f)
		}
	}
	return votes
}

// wantsApproval is the question of an approval policy. One whose scope is the
// session asks about each thing that the call changes or reaches, which an
// answer for the session can name; there is none for a whole tool, and none
// for what is dangerous or cannot be named.
func (e *Element) wantsApproval(votes []call.Vote, class string, f *facts.Facts) []call.Vote {
	rule, says := "approvalPolicy: "+class, fmt.Sprintf("wants %s calls approved", class)
	asked := len(votes)
	if e.External.Scope == scopeSession && !risky("dangerous", f) {
		for i := range f.Needs {
			n := &f.Needs[i]
			if n.Capability == call.FSRead || n.Capability == call.ProcExec {
				continue // as plain as the program that a command runs
			}
			v := vote(e, rule, call.ConfirmSession, says)
			v.Need = n
			votes = append(votes, v)
		}
	}
	if len(votes) == asked {
		votes = append(votes, vote(e, rule, call.ConfirmSingleUse, says))
	}
	return votes
}

// Terms are what the active elements' approval policies say about answers to
// external calls: the strictest of each.
func (s *Set) Terms() call.Terms {
	if s == nil {
		return call.Terms{}
	}
	return s.terms
}

func termsOf(elements []Element) (t call.Terms) {
	for i := range elements {
		x := &elements[i].External
		t.Once = t.Once || x.Scope == scopeSingle
		t.Session = t.Session || x.Scope == scopeSession
		if life := time.Duration(x.Life) * time.Second; life > 0 {
			t.Life = t.Bound(life)
		}
	}
	t.Session = t.Session && !t.Once
	return t
}

// risky says whether a call is of a class that an approval policy names.
// Whatever goes beyond a read is at least moderate.
func risky(class string, f *facts.Facts) bool {
	if class == "moderate" {
		return true
	}
	return f.Irreversible || f.Risk >= dangerousFrom || f.Class == "destructive" || f.Class == "unknown"
}

// dangerousFrom is the risk from which on a call is dangerous.
const dangerousFrom = 61
