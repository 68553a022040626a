package gate

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Told is an answer as an agent reads it: what was attempted, how it was
// judged and by whom, whether that is final, and what may be done next. Like
// the message, it never says how to get around the gate, and holds no code.
type Told struct {
	Verdict     Verdict    `json:"verdict"`
	Operation   string     `json:"operation"`
	ElementType string     `json:"element_type,omitzero"`
	CallID      string     `json:"call_id,omitzero"`
	Level       call.Level `json:"level"`
	// Rationale says why the operation has the level it has by itself.
	Rationale string `json:"rationale,omitzero"`
	// Rules are the votes that made the level.
	Rules []ToldRule `json:"rules,omitzero"`
	// Overruled are those that wanted another one.
	Overruled []call.Conflict `json:"overruled,omitzero"`
	// Final says that repeating the call cannot change the answer.
	Final   bool      `json:"final"`
	Request string    `json:"request,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	Message string    `json:"message"`
	// Next is what the agent may do now.
	Next string `json:"next,omitzero"`
}

// ToldRule is a vote as an agent reads it.
type ToldRule struct {
	Source string     `json:"source"`
	Rule   string     `json:"rule"`
	Level  call.Level `json:"level"`
	Reason string     `json:"reason"`
}

// Tell makes of an answer what its agent is told.
func Tell(c *call.Call, ans *Answer) Told {
	t := Told{
		Verdict: ans.Verdict, Operation: c.Operation, ElementType: c.ElementType, CallID: ans.CallID, Level: ans.Decision.Level,
		Overruled: ans.Decision.Conflicts(), Final: ans.Final, Request: ans.Request, Expires: ans.Expires, Message: ans.Message, Next: next(ans.Verdict, ans.Final),
	}
	if op, ok := call.LookupOperation(c.Operation); ok && c.Kind == call.Native {
		t.Rationale = op.Rationale
	}
	for v := range ans.Decision.Votes() {
		if v.Level == ans.Decision.Level && v.Level != call.AutoApprove {
			t.Rules = append(t.Rules, ToldRule{Source: v.Source, Rule: v.Rule, Level: v.Level, Reason: v.Reason})
		}
	}
	return t
}
