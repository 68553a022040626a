package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// The types below are what goes over the wire; the OpenAPI document is made
// from them.

// CallRequest submits a call.
type CallRequest struct {
	// Kind is native, external or dispatch; native where left out and the
	// operation is one of the gate's own, else external.
	Kind string `json:"kind,omitzero"`
	// Operation is what is to be done.
	Operation string `json:"operation"`
	// Endpoint is the endpoint used for a native operation, if any.
	Endpoint call.Endpoint `json:"endpoint,omitzero"`
	// ElementType is the type of element a native operation works on.
	ElementType string `json:"element_type,omitzero"`
	// Args are the arguments, a JSON object.
	Args jsontext.Value `json:"args,omitzero"`
	// Needs are capabilities with their scopes, such as fs.write:./out/**, that
	// the tool says the call needs. They add to what the gate finds out.
	Needs []string `json:"needs,omitzero"`
	// Dir is the working directory of the effect.
	Dir string `json:"dir,omitzero"`
	// Session is the session the call belongs to; left out, it is the one of
	// the token or the calling process.
	Session string `json:"session,omitzero"`
	// Path names the sub-agent that calls.
	Path string `json:"path,omitzero"`
	// Note is free text for the person.
	Note string `json:"note,omitzero"`
	// Parent is the call this one is nested in.
	Parent string `json:"parent,omitzero"`
	// Ask has a person asked whatever the policy says.
	Ask bool `json:"ask,omitzero"`
	// Declared is what the tool says about itself and this call.
	Declared *ToolClaim `json:"declared,omitzero"`
	// Budget is the plan's budget that the call may draw from.
	Budget string `json:"budget,omitzero"`
	// WaitMS is how long to wait for a person, in milliseconds.
	WaitMS int `json:"wait_ms,omitzero"`
	// Rewrites says that the caller runs the command that the answer gives
	// under run, in place of its own.
	Rewrites bool `json:"rewrites,omitzero"`
}

// ToolClaim is what a tool that declares itself says about a call of it. It is
// on record, and adds to what stands against the call.
type ToolClaim struct {
	// Risk is low, medium, high, critical or unknown.
	Risk declare.Risk `json:"risk"`
	// Used says that the call uses something that the declaration grants.
	Used bool `json:"used,omitzero"`
	// Inert says that the program does not hold its tools to their policies.
	Inert bool `json:"inert,omitzero"`
	// Denied says why the tool's own declaration denies the call, which is
	// then denied.
	Denied string `json:"denied,omitzero"`
}

// DecideResponse is a decision without consequences.
type DecideResponse struct {
	Level     call.Level       `json:"level"`
	Why       string           `json:"why"`
	Votes     []call.Vote      `json:"votes"`
	Conflicts []call.Conflict  `json:"conflicts,omitzero"`
	Requires  []call.Guarantee `json:"requires,omitzero"`
	Digest    call.Digest      `json:"digest"`
	World     call.Digest      `json:"world"`
	Policy    call.Digest      `json:"policy"`
	Pinned    bool             `json:"pinned,omitzero"`
	Class     string           `json:"class,omitzero"`
	Risk      int              `json:"risk"`
	Words     string           `json:"words,omitzero"`
	// Uncommitted is work that the call touches and that is saved nowhere
	// else; Destroys is what of it would be gone.
	Uncommitted []string `json:"uncommitted,omitzero"`
	Destroys    []string `json:"destroys,omitzero"`
}

// CallResponse is the answer to a submitted call.
type CallResponse struct {
	CallID  string       `json:"call_id"`
	Verdict gate.Verdict `json:"verdict"`
	Message string       `json:"message"`
	// Level, Digest and Votes are the decision.
	Level    call.Level  `json:"level"`
	Digest   call.Digest `json:"digest"`
	Votes    []call.Vote `json:"votes"`
	Request  string      `json:"request,omitzero"`
	Expires  time.Time   `json:"expires,omitzero"`
	Final    bool        `json:"final,omitzero"`
	Observed bool        `json:"observed,omitzero"`
	Session  string      `json:"session,omitzero"`
	// Budget is what the calls of a plan may draw from, if anything in it asks.
	Budget *grant.Budget `json:"budget,omitzero"`
	// Restore is the restore point that holds what the call changes.
	Restore string         `json:"restore,omitzero"`
	Edited  jsontext.Value `json:"edited_args,omitzero"`
	// Requires are the guarantees that the effect must hold to.
	Requires []call.Guarantee `json:"requires,omitzero"`
	// Run is the command line of gatehouse to run in place of the call's own
	// command, for a caller that said rewrites.
	Run []string `json:"run,omitzero"`
	// Outcome is how a call of one of the gate's own operations ended: the gate
	// performed it, and there is no outcome to report. Result is what it
	// answered, Error why it failed.
	Outcome gate.Outcome   `json:"outcome,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
	Error   string         `json:"error,omitzero"`
	// Lasting says that the same call would be let through again without a
	// person: by policy, or for the rest of the session.
	Lasting bool `json:"lasting,omitzero"`
}

// callAnswer is a CallResponse on its way out. Its votes are copied from what
// was written in advance, where the same was said of other calls.
type callAnswer struct {
	CallResponse
	Votes votes `json:"votes"`
}

type votes struct{ of *call.Decision }

// MarshalJSONTo writes the votes as a list.
func (v votes) MarshalJSONTo(enc *jsontext.Encoder) error {
	text, err := v.of.AppendVotes(make([]byte, 0, 2<<10))
	if err != nil {
		return err
	}
	return enc.WriteValue(text)
}

// OutcomeRequest reports how a started call ended.
type OutcomeRequest struct {
	Outcome gate.Outcome `json:"outcome"`
	Detail  string       `json:"detail,omitzero"`
	// Refusals are what the sandbox of a run did not let through.
	Refusals []gate.Refusal `json:"refusals,omitzero"`
	Session  string         `json:"session,omitzero"`
	Path     string         `json:"path,omitzero"`
}

// RequestStatus is what an agent may know about its own request: how far it
// has got, never what others asked.
type RequestStatus struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`
	Expires time.Time `json:"expires"`
	Text    string    `json:"text,omitzero"`
	// EditedTo is the request of the call that a person put in place of this
	// one, EditedArgs its arguments once it is approved. They run when the
	// original call is repeated: the answer to that is the verdict, once.
	EditedTo   string         `json:"edited_to,omitzero"`
	EditedArgs jsontext.Value `json:"edited_args,omitzero"`
}

// SessionRequest opens a session.
type SessionRequest struct {
	Workspace string `json:"workspace,omitzero"`
	// Token asks for a token that is good for this session alone.
	Token bool `json:"token,omitzero"`
	// Policy is a policy in TOML for this session alone. It tightens what is in
	// force and loosens nothing.
	Policy string `json:"policy,omitzero"`
}

// SessionResponse names a session.
type SessionResponse struct {
	Session string `json:"session"`
	Token   string `json:"token,omitzero"`
}

// ApprovalList is a page of requests, newest first.
type ApprovalList struct {
	Requests []admin.Request `json:"requests"`
	Next     string          `json:"next,omitzero"`
}

// ApproveRequest is a person's yes.
type ApproveRequest struct {
	// Digest is the digest of the request that was looked at.
	Digest call.Digest `json:"digest"`
	// Offer is the index of the offer taken; 0 is once.
	Offer int `json:"offer,omitzero"`
	// Code is a fresh TOTP code, for pinned calls.
	Code string `json:"code,omitzero"`
}

// ReplyRequest denies a request or answers it in words.
type ReplyRequest struct {
	Digest call.Digest `json:"digest"`
	Text   string      `json:"text,omitzero"`
}

// EditRequest puts other arguments in place of those asked for.
type EditRequest struct {
	Digest call.Digest    `json:"digest"`
	Args   jsontext.Value `json:"args"`
}

// EditResponse names the request that the edit became.
type EditResponse struct {
	Request string `json:"request"`
}

// SessionList lists sessions.
type SessionList struct {
	Sessions []admin.Session `json:"sessions"`
}

// GrantList lists grants.
type GrantList struct {
	Grants []grant.Grant `json:"grants"`
}

// LogPage is a page of the log, newest first.
type LogPage struct {
	Records []admin.Record `json:"records"`
	Next    string         `json:"next,omitzero"`
}

// KillRequest throws the kill switch.
type KillRequest struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitzero"`
}

// AcceptRequest accepts a staged policy.
type AcceptRequest struct {
	Hash call.Digest `json:"hash"`
	Code string      `json:"code,omitzero"`
}

// TrustRequest takes a project's policy file as it is on disk.
type TrustRequest struct {
	Path string `json:"path"`
	Code string `json:"code,omitzero"`
}

// NameRequest names who is to be enrolled.
type NameRequest struct {
	Name string `json:"name"`
}

// SecretResponse holds a secret that is shown once.
type SecretResponse struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// ApproverList lists approvers.
type ApproverList struct {
	Approvers []admin.Approver `json:"approvers"`
}

// AgentList lists agents.
type AgentList struct {
	Agents []admin.Agent `json:"agents"`
}

// LinkResponse is a sign-in link, good once.
type LinkResponse struct {
	URL string `json:"url"`
}

// TOTPResponse is what an authenticator needs.
type TOTPResponse struct {
	URI    string `json:"uri"`
	Secret string `json:"secret"`
}

// CodeRequest carries a TOTP code.
type CodeRequest struct {
	Code string `json:"code"`
}

// Health says how the gate is.
type Health struct {
	// Status is ok, or degraded when the policy on disk does not load or the
	// store cannot be written.
	Status  string `json:"status"`
	Version string `json:"version"`
	// Posture is held if the asking process cannot reach the gate's own files,
	// else advisory.
	Posture  string `json:"posture"`
	Enrolled bool   `json:"enrolled"`
	// Policy is the hash of the policy in force outside projects and sessions.
	Policy call.Digest `json:"policy,omitzero"`
	// Addresses are where the gate listens, for launchers that keep what they
	// confine from them.
	Addresses []string `json:"addresses,omitzero"`
	Problems  []string `json:"problems,omitzero"`
}
