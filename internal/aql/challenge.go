package aql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Act is something an agent's operation did to the state, for the log.
type Act struct {
	Name, Subject string
	// By is who it counts as: the agent, or the person whose code was told.
	By, Channel string
	Principal   call.Principal
	Detail      any
}

// Challenges is the operations that ask people, and the recovery path. None of
// them approves or releases anything by itself: a code is a person's word that
// the agent passes on, and what stops agents is released where people act.
type Challenges struct {
	Store    *store.Store
	Desk     *approval.Desk
	Sessions *session.Registry
	Keeper   *autonomy.Keeper
	Gate     *gate.Gate
	// Scope is where the policy in force is kept.
	Scope string
	// Limits are the limits in force.
	Limits func() approval.Limits
	// Show brings a challenge's code before people and says who can see it: ""
	// if nobody can be reached.
	Show func(ctx context.Context, c *approval.Challenge) (reached string)
	// Record appends to the log.
	Record func(tx *store.Tx, act Act) error
	// Check refuses a call that could not be performed, so that nobody is asked
	// about it; nil lets all be asked about.
	Check func(*call.Call) error
}

// Operations lists the group.
func (g *Challenges) Operations() []Operation {
	return []Operation{
		Op("confirm_operation", g.confirm),
		Op("verify_challenge", g.verify),
		Op("release_deadlock", g.release),
	}
}

// Asked is the challenge that an agent's call led to. It never holds the code.
type Asked struct {
	Challenge string    `json:"challenge_id"`
	Expires   time.Time `json:"expires"`
	// Shown says where people see the code, "" where nobody can be reached.
	Shown   string `json:"shown,omitzero"`
	Message string `json:"message"`
}

// ask issues a challenge and shows it to people.
func (g *Challenges) ask(ctx context.Context, j *Job, c approval.Challenge) (*Asked, error) {
	c.Principal = j.Principal
	var got *approval.Challenge
	var joined bool
	err := g.Store.Write(ctx, func(tx *store.Tx) (err error) {
		got, joined, err = g.issue(tx, c)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	return g.shown(ctx, got, joined), nil
}

// issue makes the challenge and its record.
func (g *Challenges) issue(tx *store.Tx, c approval.Challenge) (*approval.Challenge, bool, error) {
	got, joined, err := g.Desk.Issue(tx, c)
	if err != nil || joined {
		return got, joined, err
	}
	return got, false, g.Record(tx, Act{Name: "challenge.issued", Subject: got.ID, By: c.Principal.Agent, Channel: "agent", Principal: c.Principal,
		Detail: map[string]any{"kind": got.Kind, "about": got.Subject, "expires": got.Expires}})
}

// shown tells the agent where its challenge is seen.
func (g *Challenges) shown(ctx context.Context, c *approval.Challenge, joined bool) *Asked {
	out := &Asked{Challenge: c.ID, Expires: c.Expires, Shown: g.Show(ctx, c)}
	out.Message = "A code is shown to the approvers (" + out.Shown + "). Whoever lets this go on tells you the code, or answers there. Do not guess it."
	if out.Shown == "" {
		out.Message = "Nobody can be reached at the moment: no console is open, no terminal watches and no notice was delivered. " +
			"Tell the person you work for that the gate waits for an approver."
	}
	if joined {
		out.Message = "This waits already. " + out.Message
	}
	return out
}

type confirmParams struct {
	Operation string         `json:"operation,omitzero" about:"the operation to ask for"`
	Params    jsontext.Value `json:"params,omitzero" about:"its parameters, exactly as the call will have them"`
	Request   string         `json:"request,omitzero" about:"a request that was filed before, to see how far it has got"`
}

// Confirmation is the answer to confirm_operation.
type Confirmation struct {
	// State is pending, approved, denied …, or not_needed.
	State     string     `json:"state"`
	Request   string     `json:"request,omitzero"`
	Expires   time.Time  `json:"expires,omitzero"`
	Level     call.Level `json:"level,omitzero"`
	Message   string     `json:"message"`
	Challenge *Asked     `json:"challenge,omitzero"`
}

// confirm files a request for a call, or follows one. It grants nothing.
func (g *Challenges) confirm(ctx context.Context, j *Job, p confirmParams) (any, error) {
	switch {
	case p.Request != "" && p.Operation != "":
		return nil, refused("give the operation to ask for, or the request to follow, not both")
	case p.Request != "":
		return g.followed(ctx, j, p.Request)
	case p.Operation == "":
		return nil, refused("name the operation to ask for, or the request to follow")
	}
	c := &call.Call{
		Kind: call.Native, Surface: j.Surface, Principal: j.Principal, Held: j.Held, Operation: p.Operation, ElementType: j.ElementType,
		Args: p.Params, Dir: j.Dir,
	}
	if g.Check != nil {
		if err := g.Check(c); err != nil {
			return nil, err
		}
	}
	filed := g.Gate.File(ctx, c)
	out := &Confirmation{State: "denied", Level: filed.Answer.Decision.Level, Message: filed.Answer.Message}
	switch {
	case filed.Ready:
		out.State = "not_needed"
	case filed.Answer.Verdict == gate.Pending:
		out.State, out.Request, out.Expires = "pending", filed.Answer.Request, filed.Answer.Expires
		if !filed.Pinned { // a code is no second factor
			var err error
			if out.Challenge, err = g.ask(ctx, j, forRequest(out.Request, c)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func forRequest(id string, c *call.Call) approval.Challenge {
	return approval.Challenge{Kind: approval.ForRequest, Subject: id,
		Words: fmt.Sprintf("lets %s do this, once: %s %s %s", c.Principal.Agent, c.Operation, c.ElementType, clip(string(c.Args)))}
}

// clip keeps a line a line; the whole call is on the request's own page.
func clip(s string) string {
	if len(s) > 500 {
		return s[:500] + "… (cut; see the request)"
	}
	return s
}

// followed tells how far an agent's own request has got.
func (g *Challenges) followed(ctx context.Context, j *Job, id string) (*Confirmation, error) {
	st, err := g.Gate.Request(ctx, j.Principal.Agent, id)
	if err != nil {
		return nil, err
	}
	out := &Confirmation{State: st.State, Request: st.ID, Expires: st.Expires, Message: "The request is " + st.State + "."}
	switch {
	case st.State == "approved":
		out.Message = "Approved by " + st.By + ". Make the call now, exactly as it was asked for."
	case st.Text != "":
		out.Message = st.By + " says: " + st.Text
	}
	return out, nil
}

type verifyParams struct {
	Challenge string `json:"challenge_id" about:"the challenge that the code is for"`
	Code      string `json:"code" about:"the six characters that a person told you"`
}

// Verified is the answer to a code that was handed in.
type Verified struct {
	// Verified says that the code was right.
	Verified bool   `json:"verified"`
	State    string `json:"state"`
	Message  string `json:"message"`
}

func (g *Challenges) verify(ctx context.Context, j *Job, p verifyParams) (any, error) {
	return g.handIn(ctx, j, p, approval.ForRequest, approval.ForPause, approval.ForBlock)
}

// handIn checks a code. A right one moves the request or the pause that it was
// issued for; what stops agents it does not release, and while something stops
// this one it moves nothing at all.
func (g *Challenges) handIn(ctx context.Context, j *Job, p verifyParams, kinds ...approval.ChallengeKind) (any, error) {
	message := ""
	c, err := g.Desk.Try(ctx, g.Store, j.Principal.Agent, p.Challenge, p.Code, func(tx *store.Tx, c *approval.Challenge) (approval.ChallengeState, error) {
		if !slices.Contains(kinds, c.Kind) {
			return c.State, refused("this challenge is answered by another operation: verify_challenge takes the codes of requests, pauses and blocks, release_deadlock those of locks")
		}
		st, err := g.Sessions.CheckStanding(tx, j.Principal, g.Scope)
		if err != nil {
			return c.State, err
		}
		state := approval.Given
		if why := stopping(&st); why != "" {
			message = "The code is right and was noted; nothing was released. " + why + " An approver decides on their own channel."
		} else if state, message, err = g.move(tx, c); err != nil {
			return c.State, err
		}
		by, channel := c.Reader()
		return state, g.Record(tx, Act{Name: "challenge." + string(state), Subject: c.ID, By: by, Channel: "code, " + channel, Principal: j.Principal,
			Detail: map[string]any{"kind": c.Kind, "about": c.Subject, "shown": c.Shown}})
	})
	if err != nil {
		return nil, readable(err)
	}
	return Verified{Verified: true, State: string(c.State), Message: message}, nil
}

// stopping says in words what stops an agent, "" if nothing does.
func stopping(st *session.Standing) string {
	switch by := st.Elements.Frozen(); {
	case st.Kill:
		return "The kill switch is on."
	case st.Danger:
		return "The agent is blocked."
	case len(by) > 0:
		return "The session is frozen by " + by[0] + "."
	}
	return ""
}

// move does what a right code leads to.
func (g *Challenges) move(tx *store.Tx, c *approval.Challenge) (approval.ChallengeState, string, error) {
	switch c.Kind {
	case approval.ForRequest:
		_, err := g.Desk.ApproveByCode(tx, c, g.Limits())
		switch {
		case errors.Is(err, approval.ErrFactor):
			return approval.Given, "The code is right and was noted. The call is pinned: an approver confirms it with their second factor.", nil
		case err != nil:
			return c.State, "", err
		}
		return approval.Moved, "The code is right. Request " + c.Subject + " is approved, once; make the call now, exactly as it was asked for.", nil
	case approval.ForPause:
		x, err := g.Keeper.Release(tx, c.Subject)
		if err != nil {
			return c.State, "", err
		}
		return approval.Moved, "The code is right. Execution " + x.ID + " goes on.", nil
	}
	return approval.Given, "The code is right and was noted; nothing was released. An approver decides on their own channel.", nil
}

type releaseParams struct {
	Challenge string `json:"challenge_id,omitzero" about:"second step: the challenge of the first step"`
	Code      string `json:"code,omitzero" about:"second step: the six characters that a person told you"`
}

// Lock is what stops an agent, as a challenge to release it keeps it.
type Lock struct {
	Kind approval.ChallengeKind `json:"kind"`
	// By is what locks: elements, a block's reason, the kill switch's.
	By []string `json:"by"`
	// Agent and Workspace are where Active was in force when it was asked.
	Agent     string   `json:"agent"`
	Workspace string   `json:"workspace,omitzero"`
	Active    []string `json:"active,omitzero"`
}

// Released is the answer to the first step of release_deadlock.
type Released struct {
	Pending   bool     `json:"pending"`
	LockedBy  []string `json:"locked_by"`
	Challenge *Asked   `json:"challenge"`
	Message   string   `json:"message"`
}

// release files the wish to be released, or hands in the code of one. What is
// locked is released by an approver, on their channel.
func (g *Challenges) release(ctx context.Context, j *Job, p releaseParams) (any, error) {
	if (p.Challenge == "") != (p.Code == "") {
		return nil, refused("the second step takes challenge_id and code together; the first takes neither")
	}
	if p.Challenge != "" {
		return g.handIn(ctx, j, verifyParams(p), approval.ForLock, approval.ForBlock, approval.ForKill)
	}
	var c *approval.Challenge
	err := g.Store.Read(ctx, func(tx *store.Tx) (err error) {
		c, err = g.locked(tx, j.Principal)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	asked, err := g.ask(ctx, j, *c)
	if err != nil {
		return nil, err
	}
	var l Lock
	if err := json.Unmarshal(c.Detail, &l); err != nil {
		return nil, err
	}
	return Released{Pending: true, LockedBy: l.By, Challenge: asked,
		Message: "The wish to be released is filed. An approver looks at what locks and releases it, or not, on their own channel."}, nil
}

// locked finds what stops a principal, the strongest first: kill switch,
// danger zone, frozen.
func (g *Challenges) locked(tx *store.Tx, p call.Principal) (*approval.Challenge, error) {
	st, err := g.Sessions.CheckStanding(tx, p, g.Scope)
	if err != nil {
		return nil, err
	}
	l := Lock{Agent: session.AgentID(p.Agent)}
	if st.Session != nil {
		l.Workspace = st.Session.Workspace
	}
	l.Active = st.Elements.Elements()
	c := &approval.Challenge{}
	frozen := st.Elements.Frozen()
	switch {
	case st.Kill:
		sw, err := g.Sessions.Switches(tx)
		if err != nil {
			return nil, refused("the switches cannot be read; an approver has to look at the database")
		}
		l.Kind, l.By = approval.ForKill, []string{st.Why}
		c.Subject, c.Words = "kill/"+sw.At.Format(time.RFC3339Nano), p.Agent+" asks for the kill switch to be released"
	case st.Danger && st.Block == "":
		return nil, refused("%s; an approver has to look at the database", st.Why)
	case st.Danger:
		l.Kind, l.By = approval.ForBlock, []string{st.Why}
		c.Subject, c.Words = st.Block, p.Agent+" asks to be released from the danger zone: "+st.Why
	case len(frozen) > 0:
		l.Kind, l.By = approval.ForLock, frozen
		c.Subject = l.Agent + " " + l.Workspace
		c.Words = fmt.Sprintf("%s asks for the release of what freezes it: %v", p.Agent, frozen)
	default:
		return nil, refused("nothing is locked: no kill switch, no block, and no active element denies confirm_operation")
	}
	c.Kind = l.Kind
	c.Detail, err = json.Marshal(l)
	return c, err
}

// readable makes of an error of the desk what an agent may read.
func readable(err error) error {
	var decided *approval.DecidedError
	switch {
	case errors.As(err, &decided):
		return refused("the request is %s", decided.State)
	case errors.Is(err, approval.ErrNotFound):
		return refused("you have no such challenge")
	case errors.Is(err, approval.ErrStale):
		return refused("the challenge is over: it was answered, guessed at too often, or its five minutes have passed")
	}
	for _, known := range []error{approval.ErrCode, approval.ErrTries, approval.ErrTooMany, autonomy.ErrPaused, autonomy.ErrOver, autonomy.ErrNotFound, autonomy.ErrHandoff, autonomy.ErrTooMany} {
		if errors.Is(err, known) {
			return refused("%v", known)
		}
	}
	if errors.Is(err, autonomy.ErrInvalid) {
		return refused("%v", err)
	}
	return err
}
