package gate

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// Verdict is the answer to a call. The zero value denies.
type Verdict uint8

const (
	// Denied calls do not run.
	Denied Verdict = iota
	// Pending calls wait for a person.
	Pending
	// Allowed calls run, now, once.
	Allowed
)

var verdictNames = [...]string{Denied: "denied", Pending: "pending", Allowed: "allowed"}

// String returns denied, pending or allowed.
func (v Verdict) String() string {
	if v > Allowed {
		return verdictNames[Denied]
	}
	return verdictNames[v]
}

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name; anything unknown is a denial.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = Denied
	for i, name := range verdictNames {
		if string(text) == name {
			*v = Verdict(i)
		}
	}
	return nil
}

// Outcome is how a started call ended.
type Outcome string

// The outcomes. A call whose end nobody reported is Unknown, and is never run
// again without a new verdict.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Refused   Outcome = "refused"
	Unknown   Outcome = "unknown"
)

// Valid reports whether o is one of the four outcomes.
func (o Outcome) Valid() bool {
	switch o {
	case Succeeded, Failed, Refused, Unknown:
		return true
	}
	return false
}

// Event is one entry for the log. The sections that an event does not have
// are nil.
type Event struct {
	// Kind is call, receipt, restore, budget or outcome.
	Kind string
	// Call is whose event it is; an outcome has only its id and principal.
	Call *call.Call
	// Level is what the call was decided to.
	Level call.Level
	// Described is the call and its decision as they are stored: redacted, as
	// JSON members. It is made before the transaction, because it is work.
	Described []byte
	Verdict   *Ruling
	Start     *Start
	Outcome   *End
	Restore   *Kept
	Budget    *grant.Budget
}

// Ruling is the section of an event that says how the call was answered.
type Ruling struct {
	Verdict Verdict `json:"verdict"`
	// By is who decided: "policy", or the approvers whose grants were used.
	By []string `json:"by"`
	// Channel is where: "policy", "console", "terminal" …
	Channel []string `json:"channel"`
	Grants  []string `json:"grants,omitzero"`
	// Budget is the budget that was drawn from.
	Budget  string `json:"budget,omitzero"`
	Request string `json:"request,omitzero"`
	Reason  string `json:"reason"`
	// Violation names what of a denied call was an attempt on the gate or
	// carried an attack, "" for none.
	Violation string `json:"violation,omitzero"`
	Observed  bool   `json:"observed,omitzero"`
}

// Start is the section that says that the effect may begin.
type Start struct {
	// Runs says who runs the effect: host or gate.
	Runs string `json:"runs"`
	// Guarantees are what the effect must hold to.
	Guarantees []call.Guarantee `json:"guarantees,omitzero"`
	// Backend and Shown are what a launcher says holds it, and what it proved.
	Backend string   `json:"backend,omitzero"`
	Shown   []string `json:"shown,omitzero"`
	// Seen is what the gate saw of launcher and child for itself.
	Seen []string `json:"seen,omitzero"`
}

// End is the section that says how the effect ended.
type End struct {
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitzero"`
	// Refusals are what the sandbox of a run did not let through.
	Refusals []Refusal `json:"refusals,omitzero"`
}

// Refusal is one thing a confined command was not allowed, as whoever refused
// it tells.
type Refusal struct {
	// Kind is host, syscall, path or limit.
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Program string `json:"program,omitzero"`
	Reason  string `json:"reason,omitzero"`
	Count   int    `json:"count"`
}

// Answer is what the surface hears about a call.
type Answer struct {
	CallID   string        `json:"call_id"`
	Verdict  Verdict       `json:"verdict"`
	Decision call.Decision `json:"decision"`
	// By is who decided: "policy", or the approver whose grant or word it was.
	By string `json:"-"`
	// Message is written for the agent.
	Message string `json:"message"`
	// Request and Expires name the question that waits for a person.
	Request string    `json:"request,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Final says that repeating the call cannot change the answer.
	Final bool `json:"final,omitzero"`
	// Edited is the call to run in place of the one submitted.
	Edited *call.Call `json:"edited,omitzero"`
	// Observed says that only observe mode let the call through.
	Observed bool `json:"observed,omitzero"`
	// Requires are the guarantees that the effect must hold to.
	Requires []call.Guarantee `json:"requires,omitzero"`
	// Run is the command line of gatehouse to run in place of the agent's
	// command, so that the guarantees hold; nil to run the call as it stands.
	Run []string `json:"run,omitzero"`
	// Restore is the restore point that holds what the call changes.
	Restore string `json:"restore,omitzero"`
	// Budget is what a plan that goes ahead may spend.
	Budget *grant.Budget `json:"budget,omitzero"`
	// Lasting says that the same call would be let through again without a
	// person: by policy, or for the rest of the session.
	Lasting bool `json:"lasting,omitzero"`
	// Counted says that how the call ends decides about later ones, so that
	// its end must be told before anyone hears of it.
	Counted bool `json:"-"`
	// HostAsks says that the host is to ask; the call is open, so that its end
	// can be told.
	HostAsks bool `json:"host_asks,omitzero"`
}
