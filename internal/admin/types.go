package admin

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// Actor is the person who acts, and how they came in.
type Actor struct {
	// Approver is the name of the approver.
	Approver string
	// Channel is console, terminal or api.
	Channel string
	// Cookie is what a console came in with, Credential what the person gave
	// besides it for an act that a cookie alone is not enough for.
	Cookie, Credential string
}

// consoleChannel is the channel of people who came in with a cookie.
const consoleChannel = "console"

// Request is one question as a person sees it. Nothing in it is masked or
// shortened while it waits.
type Request struct {
	ID     string `json:"id"`
	CallID string `json:"call_id"`
	// State is pending, approved, denied, edited, responded, expired or
	// cancelled.
	State   string    `json:"state"`
	Filed   time.Time `json:"filed"`
	Expires time.Time `json:"expires"`
	// Digest is what an answer must carry, to prove what was on screen.
	Digest call.Digest `json:"digest"`
	// Call is the whole call while it waits; afterwards its arguments are
	// gone and only the redacted record is left.
	Call     *call.Call     `json:"call,omitzero"`
	Decision *call.Decision `json:"decision,omitzero"`
	Facts    *Facts         `json:"facts,omitzero"`
	Offers   []grant.Offer  `json:"offers,omitzero"`
	// History lists for each offer the agent's earlier calls that asked and
	// that it would have covered, newest first.
	History [][]PastCall `json:"history,omitzero"`
	// Pinned requests need a fresh second factor to be approved.
	Pinned bool `json:"pinned,omitzero"`
	// AnsweredBy, Channel, Answered and Text are the answer, once there is one.
	AnsweredBy string    `json:"answered_by,omitzero"`
	Channel    string    `json:"channel,omitzero"`
	Answered   time.Time `json:"answered,omitzero"`
	Text       string    `json:"text,omitzero"`
	// EditOf and EditedTo link a request with the one an edit made of it.
	EditOf   string `json:"edit_of,omitzero"`
	EditedTo string `json:"edited_to,omitzero"`
}

// Facts is what the gate found out about a call, for the person to see.
type Facts struct {
	Words        string      `json:"words,omitzero"`
	Class        string      `json:"class,omitzero"`
	Needs        []call.Need `json:"needs,omitzero"`
	Risk         int         `json:"risk"`
	Irreversible bool        `json:"irreversible,omitzero"`
	TakesCode    bool        `json:"takes_code,omitzero"`
	Outside      bool        `json:"outside,omitzero"`
	Uncommitted  []string    `json:"uncommitted,omitzero"`
	Destroys     []string    `json:"destroys,omitzero"`
	// Kept says that what the call changes is kept in a restore point first;
	// NotKept is what of it is not, and why.
	Kept    bool     `json:"kept,omitzero"`
	NotKept []string `json:"not_kept,omitzero"`
	// Tools are the declarations that hold for the call, with their risk and
	// whether it uses what they grant.
	Tools []facts.DeclaredTool `json:"tools,omitzero"`
	// Loosens says what a change of policy would loosen.
	Loosens  []string        `json:"loosens,omitzero"`
	Observed []call.Evidence `json:"observed,omitzero"`
	Findings []call.Evidence `json:"findings,omitzero"`
}

// AppendJSON appends the facts as JSON: by itself where there is no more than most calls have.
func (f *Facts) AppendJSON(dst []byte) ([]byte, error) {
	if len(f.Needs) > 0 || f.Needs == nil || f.more() {
		text, err := json.Marshal(f)
		return append(dst, text...), err
	}
	w := call.Writer{Text: append(dst, '{')}
	if f.Words != "" {
		w.String(`"words":`, f.Words)
		w.Raw(`,`)
	}
	if f.Class != "" {
		w.String(`"class":`, f.Class)
		w.Raw(`,`)
	}
	w.Raw(`"needs":[],"risk":`)
	w.Text = strconv.AppendInt(w.Text, int64(f.Risk), 10)
	w.True(`,"irreversible":true`, f.Irreversible)
	w.True(`,"takes_code":true`, f.TakesCode)
	w.True(`,"outside":true`, f.Outside)
	w.Raw(`}`)
	return w.Text, w.Err
}

// more says whether there is something about the call that most have not.
func (f *Facts) more() bool {
	return f.Uncommitted != nil || f.Destroys != nil || f.Kept || f.NotKept != nil || f.Tools != nil || f.Loosens != nil || f.Observed != nil || f.Findings != nil
}

// Approval is a person's yes.
type Approval struct {
	// Shown is the digest that was on screen.
	Shown call.Digest
	// ShownAt is when the page was made; what was on screen for under a
	// second cannot be approved. Zero where there is no page: then the approval
	// waits until the second is over.
	ShownAt time.Time
	// Offer is the index of the offer that was taken; 0 is once.
	Offer int
	// Code is a fresh TOTP code, for pinned calls.
	Code string
}

// Session is an agent's session as a person sees it.
type Session struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	Surface   string    `json:"surface"`
	Workspace string    `json:"workspace,omitzero"`
	Process   string    `json:"process,omitzero"`
	Opened    time.Time `json:"opened"`
	LastSeen  time.Time `json:"last_seen"`
	Ended     string    `json:"ended,omitzero"`
}

// Record is one record of the log as a person sees it: columns and body.
type Record struct {
	Index     int64     `json:"index"` // -1 until it is sequenced
	ID        string    `json:"id"`
	CallID    string    `json:"call_id,omitzero"`
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Principal string    `json:"principal,omitzero"`
	Session   string    `json:"session,omitzero"`
	Surface   string    `json:"surface,omitzero"`
	Operation string    `json:"operation,omitzero"`
	Level     string    `json:"level,omitzero"`
	// Outcome is the verdict of a call (allowed, denied, pending) or the
	// outcome of its effect (succeeded, failed, refused, unknown).
	Outcome string         `json:"outcome,omitzero"`
	Body    jsontext.Value `json:"body,omitzero"`
}

// RecordFilter selects records; what is empty selects everything.
type RecordFilter struct {
	Kind, Principal, Session, Surface, Operation, Level, Outcome, CallID string
	Since, Until                                                         time.Time
}

// Kill is the state of the kill switch.
type Kill struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitzero"`
	By     string    `json:"by,omitzero"`
	At     time.Time `json:"at,omitzero"`
}

// Policy is the state of the policy: what is in force, what did not load and
// what waits for an approver.
type Policy struct {
	Hash    call.Digest `json:"hash"`
	Profile string      `json:"profile"`
	Mode    string      `json:"mode"`
	Files   []string    `json:"files,omitzero"`
	// Broken says which file did not load and why; the last good snapshot is
	// in force.
	Broken []string `json:"broken,omitzero"`
	// Staged is a change that loosens and waits for an approver.
	Staged *StagedPolicy `json:"staged,omitzero"`
}

// StagedPolicy is a loosening change that waits for an approver.
type StagedPolicy struct {
	Hash    call.Digest `json:"hash"`
	Changes []string    `json:"changes"`
	Since   time.Time   `json:"since"`
}

// Approver is a person who may answer.
type Approver struct {
	Name  string    `json:"name"`
	Added time.Time `json:"added"`
	By    string    `json:"by,omitzero"`
	TOTP  bool      `json:"totp"`
}

// Agent is an enrolled agent.
type Agent struct {
	Name  string    `json:"name"`
	Added time.Time `json:"added"`
	By    string    `json:"by,omitzero"`
}
