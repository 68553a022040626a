package daemon

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// noticeWait is how long an agent waits to hear whether a notice arrived.
const noticeWait = 2 * time.Second

// showChallenge brings a code before people and says where they see it.
func (d *daemon) showChallenge(ctx context.Context, c *approval.Challenge) string {
	d.changes.Tell()
	var where []string
	if d.channels.Open(approval.ConsoleOpen) > 0 {
		where = append(where, "console or terminal")
	}
	byNotice := slices.ContainsFunc(c.Shown, func(s approval.Shown) bool { return s.Channel == "notice" })
	if !byNotice && c.State == approval.Open {
		byNotice = d.sendCode(ctx, c)
	}
	if byNotice {
		where = append(where, "notice")
	}
	return strings.Join(where, ", ")
}

// sendCode sends a notice with the code and notes that it was read, if it was
// delivered.
func (d *daemon) sendCode(ctx context.Context, c *approval.Challenge) bool {
	delivery := d.notifier.Notify(approval.Notice{
		Request: c.Subject, Operation: "challenge: " + string(c.Kind), Agent: c.Principal.Agent, Summary: d.record.text(c.Words),
		Link: d.baseURL + "/#" + url.PathEscape(c.ID), Expires: c.Expires, Challenge: c.ID, Code: d.desk.Code(c),
	})
	// A notice that arrives late was read all the same.
	shown := make(chan bool, 1)
	go func() {
		arriving, cancel := context.WithDeadline(context.WithoutCancel(ctx), c.Expires)
		defer cancel()
		shown <- delivery.Wait(arriving) && d.noteShown(arriving, c)
	}()
	select {
	case ok := <-shown:
		return ok
	case <-time.After(noticeWait):
		return false
	case <-ctx.Done():
		return false
	}
}

// noteShown notes that a code was read on a notice.
func (d *daemon) noteShown(ctx context.Context, c *approval.Challenge) bool {
	err := d.store.Write(ctx, func(tx *store.Tx) error {
		_, err := d.desk.ShownTo(tx, c.ID, "whoever read the notice", "notice")
		return err
	})
	if err != nil {
		d.log.Error("it could not be noted that a code was shown", "challenge", c.ID, "error", err)
	}
	return err == nil
}

// settled tells the challenges whose code is of no use any more: somebody handed it in, or answered what
// it is about in another way.
func (d *daemon) settled(ctx context.Context) func(id string) bool {
	return func(id string) (over bool) {
		err := d.store.Read(ctx, func(tx *store.Tx) error {
			c, err := d.desk.Challenge(tx, id)
			if err != nil {
				return err
			}
			over = c.State != approval.Open
			if c.Kind == approval.ForRequest {
				r, err := d.desk.Get(tx, c.Subject)
				if err != nil {
					return err
				}
				over = over || r.State != approval.Pending
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			d.log.Warn("a dialog is closed because its challenge cannot be read", "challenge", id, "error", err)
		}
		return over || err != nil
	}
}

// recordAct writes down what an agent's operation did to the state.
func (d *daemon) recordAct(tx *store.Tx, a aql.Act) error {
	return d.record.act(tx, admin.Act{Name: a.Name, By: a.By, Channel: a.Channel, Subject: a.Subject,
		Detail: map[string]any{"principal": a.Principal, "detail": a.Detail}})
}

// strike counts a violation and blocks the agent that has too many, in the
// transaction that denies its call.
func (t *tx) strike(e *gate.Event) error {
	limit := t.s.strikes()
	if limit == 0 {
		return nil
	}
	agent := session.AgentID(e.Call.Principal.Agent)
	n, err := t.s.keeper.Strike(t.Tx, agent, e.Verdict.Violation)
	if err != nil || n < limit {
		return err
	}
	st, err := t.s.sessions.CheckStanding(t.Tx, e.Call.Principal, rulebook.Scope)
	if err != nil || st.Danger {
		return err
	}
	b := session.Block{Agent: agent, By: "gatehouse", Reason: "it keeps reaching for the gate itself, or its calls keep carrying attacks"}
	if st.Session != nil {
		b.Workspace = st.Session.Workspace
	}
	if b, err = t.s.sessions.SetBlock(t.Tx, b); err != nil {
		return err
	}
	return t.s.record.act(t.Tx, admin.Act{Name: "danger.block", By: "gatehouse", Channel: "violations", Subject: b.Agent, Detail: b})
}

// startProcess notes the process of a caller as one that the gate answers for:
// it is ended when its agent is stopped, and not started if it is.
func (d *daemon) startProcess(ctx context.Context, peer *session.Peer, agent, what string) error {
	if peer == nil || len(peer.Chain) == 0 {
		return errors.New("only a process at the unix socket can be noted")
	}
	return admin.PublicError(d.store.Write(ctx, func(tx *store.Tx) error {
		p := call.Principal{Agent: agent}
		s, err := d.sessions.Under(tx, peer.Chain[1:])
		switch {
		case err == nil:
			p = call.Principal{Agent: s.Agent, Session: s.ID}
		case !errors.Is(err, session.ErrNotFound):
			return err
		}
		st, err := d.sessions.CheckStanding(tx, p, rulebook.Scope)
		if err != nil {
			return err
		}
		st.SessionEnded = st.SessionEnded && p.Session != ""
		_, err = d.autonomy.StartProcess(tx, st, autonomy.Process{Principal: p, What: what, Process: peer.Chain[0]})
		return err
	}))
}

// watchStopped ends what runs for agents that are stopped, as soon as they
// are, and what an earlier run of the gate left behind.
func (d *daemon) watchStopped(ctx context.Context) error {
	chain, err := session.Ancestry(os.Getpid())
	if err != nil {
		d.log.Warn("processes cannot be told apart here: what runs for a blocked agent is not ended", "error", err)
		<-ctx.Done()
		return nil
	}
	changes := d.store.Subscribe(ctx, session.Topic)
	for {
		if err := d.endStopped(ctx, chain[0].Machine); err != nil && ctx.Err() == nil {
			d.log.Error("what runs for a stopped agent could not be ended", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				return nil
			}
		}
	}
}

func (d *daemon) endStopped(ctx context.Context, machine string) error {
	var stop, over []autonomy.Process
	err := d.store.Read(ctx, func(tx *store.Tx) (err error) {
		stop, over, err = d.autonomy.Stopped(tx, d.sessions, rulebook.Scope, machine)
		return err
	})
	if err != nil || len(stop)+len(over) == 0 {
		return err
	}
	var failed error
	var ended []autonomy.Process
	for _, p := range stop {
		if err := d.autonomy.EndProcess(p); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ended = append(ended, p)
	}
	return errors.Join(failed, d.store.Write(ctx, func(tx *store.Tx) error {
		for _, p := range ended {
			act := admin.Act{Name: "process.end", By: "gatehouse", Channel: "danger zone", Subject: p.Principal.Agent, Detail: p}
			if err := d.record.act(tx, act); err != nil {
				return err
			}
		}
		return d.autonomy.ForgetProcesses(tx, append(over, ended...))
	}))
}
