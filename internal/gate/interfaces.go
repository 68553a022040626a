package gate

import (
	"context"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Observer finds out what a call needs, by looking at the machine.
type Observer interface {
	// Facts describes the call in the world as it is now, and what it would
	// change of the caller's active elements, nil if it is no such call. It
	// never fails: what it could not find out counts against the call.
	Facts(ctx context.Context, c *call.Call, s *policy.Snapshot) (*facts.Facts, *element.Change)
}

// State is what the gate keeps.
type State interface {
	// Standing reads what a decision rests on besides the call. It may come
	// from a cache, because Commit reads it again.
	Standing(ctx context.Context, c *call.Call) (Standing, error)
	// Current reads the same from the database, for a decision that no Commit
	// follows.
	Current(ctx context.Context, c *call.Call) (Standing, error)
	// Commit runs one transaction and returns when it is durable.
	Commit(ctx context.Context, fn func(Tx) error) error
	// Request reads a request that was filed.
	Request(ctx context.Context, id string) (RequestState, error)
	// Budget reads a principal's own budget.
	Budget(ctx context.Context, id string, p call.Principal) (*grant.Budget, error)
	// Uses reads how an agent used declared tools in a workspace.
	Uses(ctx context.Context, c *call.Call, workspace string) (*policy.Uses, error)
	// Opener returns whose an open call is, and whether it has shown what holds
	// its effect.
	Opener(ctx context.Context, callID string) (p call.Principal, shown bool, err error)
}

// Standing is where a principal stands.
type Standing struct {
	Elements *element.Set
	Switches policy.Switches
	// Taint is what the principal, or anyone in the workspace, took in. A
	// transaction reads it by itself, and only for calls that it matters to.
	Taint call.Taint
	// Policy is the hash of the snapshot that is in force for everyone. A
	// node that holds another one denies until it has loaded it.
	Policy call.Digest
	// Ended says why the session takes no more calls, "" while it does.
	Ended string
}

// Tx is one transaction on the state.
type Tx interface {
	// Standing reads where the principal stands, from the database.
	Standing(c *call.Call) (Standing, error)
	// Now is the database's clock.
	Now() (time.Time, error)
	// Grants returns the principal's grants that are still good.
	Grants(p call.Principal) ([]grant.Grant, error)
	// Consume spends a single-use grant, or counts a use of a session grant.
	Consume(grantID string) error
	// Edited returns the request of the call that a person put in place of
	// this very one, while it waits or its approval has not been used; nil if
	// nobody did.
	Edited(p call.Principal, d *call.Decision) (*RequestState, error)
	// AddBudget keeps the budget of a plan for so long and gives it its id.
	AddBudget(b *grant.Budget, life time.Duration) error
	// Draw takes what the votes need from a budget of the caller's, if that
	// discharges all of them; else it takes nothing and returns them.
	Draw(budget string, c *call.Call, d *call.Decision, votes []call.Vote, scope grant.Scope) (open []call.Vote, err error)
	// Delegate cuts a budget for a sub-agent; ReturnBudget ends one.
	Delegate(budget string, p call.Principal, path string, lines []grant.Line, scope grant.Scope) (*grant.Budget, error)
	ReturnBudget(budget string, p call.Principal) error
	// File puts a request before a person, or joins the identical one that
	// already waits.
	File(r *Request) (RequestState, error)
	// Withdraw takes back a request that still waits.
	Withdraw(requestID string) error
	// Open notes that a call has started, and what its effect must show.
	Open(c *call.Call, requires []call.Guarantee) error
	// Uses reads how an agent used declared tools in a workspace, and keeps
	// others from using them there until the transaction ends.
	Uses(c *call.Call, workspace string) (*policy.Uses, error)
	// Use notes that a call that was opened uses declared tools, Refuse that
	// one which was denied would have.
	Use(c *call.Call, workspace string, tools []string) error
	Refuse(c *call.Call, workspace string, tools []string) error
	// SetAside keeps a part of an agent's declared calls for a sub-agent, until
	// TakeBack ends that or its time is over.
	SetAside(p call.Principal, path string, calls int) (id string, until time.Time, err error)
	TakeBack(id string, p call.Principal) error
	// Show notes that the effect of an open call has shown what it must. It
	// can be told once, and returns what was noted when the call was opened.
	Show(callID string, p call.Principal) (effect call.Digest, requires []call.Guarantee, err error)
	// Taints reads what the principal, or anyone in the workspace, took in.
	Taints(c *call.Call) (call.Taint, error)
	// Taint notes what a call that starts takes in.
	Taint(c *call.Call, workspace string, t call.Taint, life time.Duration) error
	// Close notes the outcome of a call that this principal had open.
	Close(callID string, p call.Principal, outcome Outcome) error
	// Append adds events to the log.
	Append(events ...*Event) error
}

// Keeper keeps copies of what calls are about to change, so that a person can
// take it back.
type Keeper interface {
	// Preview says what of a call's changes could not be kept, and why.
	Preview(c *call.Call, f *facts.Facts) (notKept []string)
	// Keep copies what the call is about to change. An error means that the
	// copy could not be written, and then the call must not run.
	Keep(c *call.Call, f *facts.Facts) (Kept, error)
	// Asked says that a person is asked in a session: what is allowed from
	// then on is another batch.
	Asked(session string)
}

// Kept is what was kept for a call.
type Kept struct {
	// Point is the restore point, "" if nothing had to be kept.
	Point string `json:"point,omitzero"`
	// NotKept says what is not in it, and why.
	NotKept []string `json:"not_kept,omitzero"`
}

// Request is what a person is asked.
type Request struct {
	Call     *call.Call
	Facts    *facts.Facts
	Decision *call.Decision
	Offers   []grant.Offer
	Limits   policy.Settings
	// NotKept says what of its changes no restore point will hold, and why.
	NotKept []string
	// EditOf is the request that a person answered with this edited call.
	EditOf string
}

// RequestState is how far a request has got.
type RequestState struct {
	ID      string
	Agent   string
	State   string // pending, approved, denied, edited, responded, expired, cancelled
	Expires time.Time
	// Joined says that the identical call waited already.
	Joined bool
	// By and Text are who answered, and the words for the agent.
	By   string
	Text string
	// EditedTo is the request of the call that an edit became.
	EditedTo string
	// Call is the edited call of a request that an edit created.
	Call *call.Call
}

// Asker knows about people.
type Asker interface {
	// Live reports whether a person can be reached now.
	Live() bool
	// Filed is told about a new request, to give notice of it.
	Filed(r *Request, state RequestState)
	// Changed returns a channel that is closed when a request may have
	// changed, to be asked for before the request is read.
	Changed() <-chan struct{}
}
