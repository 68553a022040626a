// Package autonomy decides whether an agent that works on its own may take its
// next step, and ends what a blocked agent has running.
//
// [Evaluate] is pure: from what the gate itself saw since the last step (calls,
// denials, risk, what cannot be undone, what lies outside the declared tools)
// and from what the agent says about itself it makes a score, a tier and a
// [Directive]. The agent's own words can only make the answer stricter.
//
// An [Execution] is one run of an agent towards a goal. It is stored, signed,
// and its texts sealed. A pause is stored with it: the next step is refused
// until a person releases that pause, whatever session asks. A handoff passes
// an execution on, with its counts and its pause, by a token that only this
// gate can make and that works once.
//
// The danger zone itself is a block of package session, read by every
// decision. Here is what leads to one and what follows from it: [Keeper.Strike]
// counts violations, and the processes that the gate started for an agent
// ([Keeper.StartProcess]) are ended once their principal is stopped
// ([Keeper.Stopped]).
//
// The package never decides a call and never releases anything by itself.
// Start reading at [Evaluate], then execution.go.
package autonomy
