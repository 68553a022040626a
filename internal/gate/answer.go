package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// What an agent is told says what was attempted, how it was judged and why,
// whether that is final, and what it may do next. It never says how to get
// around the gate, and it never carries a code.

func allow(c *call.Call, d call.Decision, used []grant.Grant) *Answer {
	by, lasting := "policy", true
	for i := range used {
		by, lasting = used[0].By, lasting && used[i].Use == grant.Session
	}
	return &Answer{Lasting: lasting, CallID: c.ID, Verdict: Allowed, By: by, Decision: d, Message: fmt.Sprintf("Allowed: %s (by %s).", describe(c), by)}
}

func deny(c *call.Call, d call.Decision, reason string, final bool) *Answer {
	return &Answer{
		CallID: c.ID, Verdict: Denied, Decision: d, Final: final,
		Message: fmt.Sprintf("Denied: %s. Level %s, because %s%s. %s", describe(c), call.Deny, reason, rules(&d), next(Denied, final)),
	}
}

func pending(c *call.Call, d call.Decision, s RequestState) *Answer {
	return &Answer{
		CallID: c.ID, Verdict: Pending, Decision: d, Request: s.ID, Expires: s.Expires,
		Message: fmt.Sprintf("Pending: %s needs a person's approval. Level %s, because %s%s. Request %s waits until %s. %s",
			describe(c), d.Level, d.Why(), rules(&d), s.ID, s.Expires.UTC().Format(time.RFC3339), next(Pending, false)),
	}
}

// next says what an agent may do after an answer.
func next(v Verdict, final bool) string {
	switch {
	case v == Allowed:
		return ""
	case v == Pending:
		return "Tell the person you work for that it waits; repeating the identical call picks up the answer."
	case final:
		return "Do not try it in another way; tell the person you work for what you wanted and why."
	}
	return "You may try again later."
}

// rules names the elements' rules that made the level. Where a policy file is
// stays out of what agents read.
func rules(d *call.Decision) string {
	var out []string
	for v := range d.Votes() {
		if v.Stage == call.StageElement && v.Level == d.Level && strings.Contains(v.Source, "/") && len(out) < 5 {
			out = append(out, v.Source+", "+v.Rule)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}

// hostAsks is shown to the person at the host, as the reason of its question.
func hostAsks(c *call.Call, d call.Decision) *Answer {
	return &Answer{
		CallID: c.ID, Verdict: Pending, Decision: d, HostAsks: true,
		Message: fmt.Sprintf("Gatehouse asks: %s. Level %s, because %s.", describe(c), d.Level, d.Why()),
	}
}

// answered turns the state of a request that will not be approved any more
// into the answer to its call.
func answered(ans *Answer, s RequestState) *Answer {
	out := *ans
	out.Verdict, out.Final, out.Request, out.By = Denied, true, s.ID, s.By
	switch s.State {
	case "denied":
		out.Message = fmt.Sprintf("Denied by %s.", s.By)
		if s.Text != "" {
			out.Message = fmt.Sprintf("Denied by %s: %s", s.By, s.Text)
		}
	case "responded":
		out.Message = fmt.Sprintf("Not run. %s answers: %s", s.By, s.Text)
	case "expired":
		out.Message = "Denied: nobody answered in time. You may ask again if it still matters."
	case "cancelled":
		out.Message = "Denied: the request was withdrawn."
	default:
		out.Message = fmt.Sprintf("Denied: the request is %s.", s.State)
	}
	return &out
}

// describe says in a few words what was attempted.
func describe(c *call.Call) string {
	if c.ElementType != "" {
		return c.Operation + " on " + c.ElementType
	}
	return c.Operation
}

func ruling(ans *Answer, used []grant.Grant) *Ruling {
	r := &Ruling{Verdict: ans.Verdict, Request: ans.Request, Reason: ans.Decision.Why(), Observed: ans.Observed}
	switch {
	case ans.HostAsks:
		r.By, r.Channel = []string{"host"}, []string{"host, unverified"}
	case len(used) == 0:
		r.By, r.Channel = []string{"policy"}, []string{"policy"}
	}
	for _, g := range used {
		r.By = append(r.By, g.By)
		r.Channel = append(r.Channel, g.Channel)
		r.Grants = append(r.Grants, g.ID)
	}
	return r
}
