package tool

import (
	"context"
	"encoding/json"
)

// Call is a call of a tool on its way.
type Call struct {
	Agent string          `json:"agent"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	// Capabilities are what the tool says this call needs.
	Capabilities []string `json:"capabilities,omitempty"`
	// Approval has a person asked whatever the policy says.
	Approval bool `json:"approval,omitempty"`
	// Budget is the plan's that the call may draw from.
	Budget string `json:"budget,omitempty"`
	// Risk is the tool's, and UsedDeclared says that an argument of this call
	// fell under something that the policy grants.
	Risk         Risk `json:"risk"`
	UsedDeclared bool `json:"usedDeclaredCapability"`
	// Inert says that the argument gate is switched off.
	Inert bool `json:"inert,omitempty"`
}

// Interceptor looks at a call before it runs. The first that does not proceed
// decides; one that panics denies.
type Interceptor func(ctx context.Context, c Call) Intercept

// Intercept is what an interceptor says. The zero value denies.
type Intercept struct {
	act    act
	args   json.RawMessage
	reason string
	result any
}

type act uint8

const (
	actDeny act = iota
	actProceed
	actRewrite
	actSubstitute
)

// Proceed lets a call go on.
func Proceed() Intercept { return Intercept{act: actProceed} }

// Rewrite lets a call go on with other arguments, which are held against the
// policy again.
func Rewrite(args json.RawMessage) Intercept { return Intercept{act: actRewrite, args: args} }

// Deny stops a call; the model is told the reason.
func Deny(reason string) Intercept { return Intercept{reason: reason} }

// Substitute answers in the tool's place, which then does not run.
func Substitute(result any) Intercept { return Intercept{act: actSubstitute, result: result} }

// EventKind is what happened to a call.
type EventKind string

// The kinds of events. Called and Failed are of calls that ran; Refused is an
// access of a running tool beyond its declaration; Unenforced tells that an
// agent was made with its argument gate switched off.
const (
	Denied      EventKind = "denied"
	Called      EventKind = "called"
	Failed      EventKind = "failed"
	Substituted EventKind = "substituted"
	Refused     EventKind = "refused"
	Unenforced  EventKind = "unenforced"
)

// Event is what happened to a call, for whoever watches.
type Event struct {
	Kind   EventKind       `json:"kind"`
	Agent  string          `json:"agent"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Reason string          `json:"reason,omitempty"`
	// Risk and UsedDeclared are those of the call.
	Risk         Risk `json:"risk"`
	UsedDeclared bool `json:"usedDeclaredCapability"`
}

// Outcome is a call's result.
type Outcome struct {
	// Output is the tool's answer as JSON, nil unless it ran.
	Output json.RawMessage `json:"output,omitempty"`
	// Denied says that it did not run; Reason says why, for the model.
	Denied bool   `json:"denied,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Pending is the request that waits for a person: the identical call,
	// made again, finds the answer.
	Pending string `json:"pending,omitempty"`
	// Err is the error of a tool that ran and failed.
	Err error `json:"-"`

	refusals []string // of what the tool tried beyond its declaration
}
