package console

import (
	"context"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
)

// Desk is what the console reads from and acts through. An error whose chain
// holds a Public() string is shown with that text; any other is logged and
// shown as "something went wrong".
type Desk interface {
	Watch

	// Requests lists requests in the given state ("pending", "" for all),
	// newest first, a page at a time.
	Requests(ctx context.Context, state, cursor string, limit int) (list []admin.Request, next string, err error)
	Request(ctx context.Context, id string) (*admin.Request, error)

	// Approve lets the call of a request go ahead. Deny refuses it, Respond
	// refuses it with an answer in words, Edit makes a new request of it.
	Approve(ctx context.Context, a admin.Actor, id string, yes admin.Approval) error
	// ApproveForGood approves and proposes a rule, so that the same is never
	// asked again.
	ApproveForGood(ctx context.Context, a admin.Actor, id string, yes admin.Approval) (*admin.Proposal, error)
	Deny(ctx context.Context, a admin.Actor, id string, shown call.Digest, text string) error
	Respond(ctx context.Context, a admin.Actor, id string, shown call.Digest, text string) error
	Edit(ctx context.Context, a admin.Actor, id string, shown call.Digest, args []byte) (newID string, err error)

	// Records lists the log, newest first; CallRecords lists what one call
	// left there, oldest first.
	Records(ctx context.Context, f admin.RecordFilter, cursor string, limit int) (list []admin.Record, next string, err error)
	Record(ctx context.Context, id string) (*admin.Record, error)
	CallRecords(ctx context.Context, callID string) ([]admin.Record, error)

	// Runs lists the runs of agent CLIs, newest first, from the one after
	// before on; CancelRun ends one and returns when its processes are dead.
	Runs(ctx context.Context, before string, limit int) ([]job.Job, error)
	Run(ctx context.Context, id string) (*admin.Run, error)
	CancelRun(ctx context.Context, a admin.Actor, id string) error

	Sessions(ctx context.Context) ([]admin.Session, error)
	EndSession(ctx context.Context, a admin.Actor, id string) error
	Grants(ctx context.Context) ([]grant.Grant, error)
	RevokeGrant(ctx context.Context, a admin.Actor, id string) error
	// Budgets lists what approved plans may still do; RevokeBudget takes one
	// back, with all that were cut from it.
	Budgets(ctx context.Context) ([]grant.Budget, error)
	RevokeBudget(ctx context.Context, a admin.Actor, id string) error
	Kill(ctx context.Context) (admin.Kill, error)
	SetKill(ctx context.Context, a admin.Actor, on bool, reason string) error
	Policy(ctx context.Context) (admin.Policy, error)
	// AcceptPolicy puts a staged change into force; code is a fresh TOTP code.
	AcceptPolicy(ctx context.Context, a admin.Actor, hash call.Digest, code string) error
	// Upstreams lists the MCP servers behind the gate, Differences what one of
	// them, or any if name is "", says about itself that waits, and
	// AcceptUpstream accepts it as it was shown.
	Upstreams(ctx context.Context) ([]admin.Upstream, error)
	Differences(ctx context.Context, name string) (admin.Differences, error)
	AcceptUpstream(ctx context.Context, a admin.Actor, name, tool, digest string) error
	// Elements tells which elements are in force; AcceptElement takes a change
	// of one's file that loosens, ReleaseElement takes one out of force.
	Elements(ctx context.Context) (admin.Elements, error)
	AcceptElement(ctx context.Context, a admin.Actor, s activation.Staged, code string) error
	ReleaseElement(ctx context.Context, a admin.Actor, agent, workspace, id, code string) error
	Approvers(ctx context.Context) ([]admin.Approver, error)
	Agents(ctx context.Context) ([]admin.Agent, error)
	// BeginTOTP makes a secret, which counts once ConfirmTOTP saw a code made
	// with it.
	BeginTOTP(ctx context.Context, a admin.Actor) (uri, secret string, err error)
	ConfirmTOTP(ctx context.Context, a admin.Actor, code string) error

	// NewCredential makes another credential for the terminal; the old one and
	// every open console of the approver are void from then on.
	NewCredential(ctx context.Context, a admin.Actor) (credential string, err error)

	// SignIn redeems a sign-in link, once.
	SignIn(ctx context.Context, token, remote string) (cookie, approver string, expires time.Time, err error)
	CheckCookie(ctx context.Context, cookie string) (approver string, err error)
	SignOut(ctx context.Context, cookie string) error

	// RestorePoints lists what can be put back; RestorePoint compares one point
	// with what is there now.
	RestorePoints(ctx context.Context) (list []admin.RestorePoint, problems []string, err error)
	RestorePoint(ctx context.Context, id string) (*admin.RestorePoint, error)
	ApplyRestore(ctx context.Context, a admin.Actor, id string, how restore.Apply) (*admin.Restored, error)

	// Changed returns a channel that is closed when something may have
	// changed; ask again for the next change.
	Changed() <-chan struct{}
	// Present marks a console as open until release is called.
	Present() (release func())
}
