// Package approval is where a call waits for a person, and where people are
// known from agents.
//
// A [Request] is filed for a call that must be confirmed; identical asks join,
// and an agent that asks too much is refused. An approver's [Answer] moves it
// to its one outcome: approval makes a grant row, anything else is words for
// the agent. Grants are consumed in the gate's own transaction: every function
// that touches the database takes a [store.Tx], so that reading switches,
// consuming a grant and recording the allow are one commit. Time is the
// database's; what has expired is judged when it is used, and timers only
// notify.
//
// Approvers have a credential, sign in to the console by single-use links and
// prove presence with a one-time code (TOTP) where a call is pinned. The store
// keeps hashes only. Rows of requests, grants, approvers, links and console
// sessions are signed; one that was edited in the database yields [ErrForged]
// and nothing else.
//
// What it never does: decide a call, accept an agent's token where a person's
// credential is due, take a notice's delivery for an answer, or keep a waiting
// call's arguments in clear. Who may reach [Desk.Answer] is the API's business;
// the type of the proof it asks for, [Proof], can only be made here.
//
// Start reading at [Desk.File] and [Desk.Answer], then grants.go. Approvers are
// in approver.go, sign-in in signin.go, notices in notice.go.
package approval
