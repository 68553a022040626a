package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Challenge is a challenge as a person sees it, with its code.
type Challenge struct {
	ID string `json:"id"`
	// Kind is request, pause, lock, block or kill; Subject is what of that.
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Agent   string `json:"agent"`
	Words   string `json:"words"`
	// Code is what the agent hands in, or the approver gives with a release.
	Code string `json:"code,omitzero"`
	// State is open, given (the agent handed in the code), moved, refused,
	// void or expired.
	State   string           `json:"state"`
	Tries   int              `json:"tries,omitzero"`
	Shown   []approval.Shown `json:"shown,omitzero"`
	Issued  time.Time        `json:"issued"`
	Expires time.Time        `json:"expires"`
	// Detail is what belongs to it: what was active, what was judged.
	Detail jsontext.Value `json:"detail,omitzero"`
}

func (d *Desk) challenge(c *approval.Challenge) Challenge {
	out := Challenge{ID: c.ID, Kind: string(c.Kind), Subject: c.Subject, Agent: c.Principal.Agent, Words: c.Words, State: string(c.State),
		Tries: c.Tries, Shown: c.Shown, Issued: c.Issued, Expires: c.Expires}
	if len(c.Detail) > 0 {
		out.Detail = c.Detail
	}
	if c.State.Waits() {
		out.Code = d.opts.Approval.Code(c)
	}
	return out
}

// Challenges lists what waits for a code. Who is shown a code is on record: a
// right one counts as theirs.
func (d *Desk) Challenges(ctx context.Context, a Actor) (out []Challenge, err error) {
	var list []*approval.Challenge
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		list, err = d.opts.Approval.Challenges(tx)
		return err
	})
	if err != nil {
		return nil, publicError(err)
	}
	for _, c := range list {
		if err := d.showsCode(ctx, a, c); err != nil {
			return nil, publicError(err)
		}
		out = append(out, d.challenge(c))
	}
	return out, nil
}

// ChallengeIDs names what waits for a code, without showing one.
func (d *Desk) ChallengeIDs(ctx context.Context) (ids []string, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := d.opts.Approval.Challenges(tx)
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return err
	})
	return ids, publicError(err)
}

// showsCode notes that an approver is shown a code, once.
func (d *Desk) showsCode(ctx context.Context, a Actor, c *approval.Challenge) error {
	if slices.ContainsFunc(c.Shown, func(s approval.Shown) bool { return s.By == a.Approver && s.Channel == a.Channel }) {
		return nil
	}
	return d.opts.Store.Write(ctx, func(tx *store.Tx) error {
		news, err := d.opts.Approval.ShownTo(tx, c.ID, a.Approver, a.Channel)
		if err != nil || !news {
			return err
		}
		return d.opts.Record(tx, a.act("challenge.shown", c.ID, map[string]any{"kind": c.Kind, "about": c.Subject}))
	})
}

// Release is an approver's yes to a challenge.
type Release struct {
	// Challenge is the code that is shown with the challenge: it says that
	// the approver looked at this one, just now.
	Challenge string
	// Code is a fresh TOTP code. What stopped an agent is loosened by a
	// release, and that is pinned.
	Code string
	// All takes every active element away, not only those that lock.
	All bool
}

// ReleaseChallenge does what a challenge is about, on the approver's word.
func (d *Desk) ReleaseChallenge(ctx context.Context, a Actor, id string, yes Release) error {
	var c *approval.Challenge
	err := d.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		c, err = d.opts.Approval.Challenge(tx, id)
		return err
	})
	if err != nil {
		return publicError(err)
	}
	switch c.Kind {
	case approval.ForRequest:
		return &Error{text: "answer the request itself: " + c.Subject, status: http.StatusConflict}
	case approval.ForPause:
		return d.act(ctx, func(tx *store.Tx) (Act, error) {
			if _, err := d.opts.Approval.EndChallenge(tx, id, approval.Moved, a.Approver, a.Channel); err != nil {
				return Act{}, err
			}
			x, err := d.opts.Autonomy.Release(tx, c.Subject)
			if err != nil {
				return Act{}, err
			}
			return a.act("execution.release", x.ID, map[string]any{"pause": c.Subject, "challenge": id}), nil
		})
	}
	if err := d.prove(ctx, a, "release "+id, yes.Code); err != nil {
		return publicError(err)
	}
	_, err = d.opts.Approval.Try(ctx, d.opts.Store, "", id, yes.Challenge, func(tx *store.Tx, c *approval.Challenge) (approval.ChallengeState, error) {
		act, err := d.release(tx, a, c, yes.All)
		if err != nil {
			return c.State, err
		}
		c.EndedBy, c.Channel = a.Approver, a.Channel
		return approval.Moved, d.opts.Record(tx, act)
	})
	d.changes.Tell()
	return publicError(err)
}

// release takes away what stops an agent.
func (d *Desk) release(tx *store.Tx, a Actor, c *approval.Challenge, all bool) (Act, error) {
	switch c.Kind {
	case approval.ForKill:
		s, err := d.opts.Sessions.Switches(tx)
		if err != nil {
			return Act{}, err
		}
		if !s.Kill || "kill/"+s.At.Format(time.RFC3339Nano) != c.Subject {
			return Act{}, fmt.Errorf("%w: the kill switch was thrown since, or is off", approval.ErrStale)
		}
		return a.act("kill.off", "", "asked for by "+c.Principal.Agent), d.opts.Sessions.SetKill(tx, false, a.Approver, "")
	case approval.ForBlock:
		return d.unblock(tx, a, c)
	case approval.ForLock:
		return d.unlock(tx, a, c, all)
	}
	return Act{}, fmt.Errorf("%w: a challenge of kind %q releases nothing", approval.ErrInvalid, c.Kind)
}

func (d *Desk) unblock(tx *store.Tx, a Actor, c *approval.Challenge) (Act, error) {
	blocks, err := d.opts.Sessions.Blocks(tx)
	if err != nil {
		return Act{}, err
	}
	i := slices.IndexFunc(blocks, func(b session.Block) bool { return b.ID == c.Subject })
	if i < 0 {
		return Act{}, fmt.Errorf("block %s: %w", c.Subject, approval.ErrStale)
	}
	if err := d.opts.Sessions.Unblock(tx, blocks[i].Agent, blocks[i].ID); err != nil {
		return Act{}, err
	}
	return a.act("danger.release", blocks[i].Agent, blocks[i]), d.opts.Autonomy.ForgetStrikes(tx, blocks[i].Agent)
}

// Unlocked is the record of a release of elements: what was active, and what
// of it was taken away.
type Unlocked struct {
	Agent     string   `json:"agent"`
	Workspace string   `json:"workspace,omitzero"`
	Active    []string `json:"active_before"`
	Released  []string `json:"released"`
}

// unlock takes the elements that freeze an agent out of force, or all.
func (d *Desk) unlock(tx *store.Tx, a Actor, c *approval.Challenge, all bool) (Act, error) {
	out := Unlocked{}
	out.Agent, out.Workspace, _ = strings.Cut(c.Subject, " ")
	sets, err := d.opts.Sessions.ActiveSets(tx)
	if err != nil {
		return Act{}, err
	}
	for _, s := range sets {
		if s.Agent != out.Agent || s.Workspace != "" && s.Workspace != out.Workspace {
			continue
		}
		for _, e := range s.Active {
			out.Active = append(out.Active, e.ID())
			if !all && !locks(&e) {
				continue
			}
			out.Released = append(out.Released, e.ID())
			if err := d.opts.Elements.Release(tx, s.Agent, s.Workspace, e.ID(), a.Approver); err != nil {
				return Act{}, err
			}
		}
	}
	if len(out.Released) == 0 {
		return Act{}, fmt.Errorf("%w: nothing freezes %s any more", approval.ErrStale, out.Agent)
	}
	return a.act("lock.release", out.Agent, out), nil
}

// locks says whether an active element denies every confirmation.
func locks(e *session.Active) bool {
	return len(element.Compile(session.Elements([]session.Active{*e})).Frozen()) > 0
}

// RefuseChallenge turns a challenge down; its code is good for nothing then.
func (d *Desk) RefuseChallenge(ctx context.Context, a Actor, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		c, err := d.opts.Approval.EndChallenge(tx, id, approval.Refused, a.Approver, a.Channel)
		if err != nil {
			return Act{}, err
		}
		return a.act("challenge.refused", id, map[string]any{"kind": c.Kind, "about": c.Subject}), nil
	})
}

// detail writes what goes with a challenge.
func detail(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // plain values give no error
	}
	return b
}
