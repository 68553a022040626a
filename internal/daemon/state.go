package daemon

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// state puts the state packages behind the gate's interface.
type state struct {
	store    *store.Store
	desk     *approval.Desk
	sessions *session.Registry
	keeper   *autonomy.Keeper
	record   *recorder
	// strikes is how many violations block an agent, 0 for none.
	strikes func() int

	mu      sync.Mutex
	last    map[lastKey]gate.Standing // what an agent's session met last
	failing string                    // why the last call could not be recorded, "" if it was
}

// Standing returns what was last read. The transaction reads it again, and
// decides again if it was out of date.
func (s *state) Standing(_ context.Context, c *call.Call) (gate.Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[lastKey{c.Principal.Agent, c.Principal.Session}], nil
}

// lastKey is a session of an agent.
type lastKey struct{ agent, session string }

// Current reads where the principal stands from the database.
func (s *state) Current(ctx context.Context, c *call.Call) (out gate.Standing, err error) {
	err = s.store.Read(ctx, func(t *store.Tx) error {
		now := &tx{Tx: t, s: s}
		if out, err = now.Standing(c); err == nil {
			out.Taint, err = now.Taints(c)
		}
		return err
	})
	return out, admin.PublicError(err)
}

func (s *state) remember(p call.Principal, st gate.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) > 10_000 {
		clear(s.last)
	}
	s.last[lastKey{p.Agent, p.Session}] = st
}

// Commit runs one transaction and returns when it is durable.
func (s *state) Commit(ctx context.Context, fn func(gate.Tx) error) error {
	err := admin.PublicError(s.store.WriteLight(ctx, func(t *store.Tx) error { return fn(&tx{Tx: t, s: s}) }))
	s.recorded(err)
	return err
}

// recorded notes whether the store took a call, for whoever asks how the gate
// is. What is wrong with a call itself says nothing about the store.
func (s *state) recorded(err error) {
	failing := ""
	var public *admin.Error
	switch {
	case err == nil:
	case errors.As(err, &public) && public.HTTPStatus() >= http.StatusInternalServerError:
		failing = public.Public()
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = failing
}

// problem says why the last call could not be recorded, "" if it was.
func (s *state) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// Request reads a request that was filed.
func (s *state) Request(ctx context.Context, id string) (out gate.RequestState, err error) {
	err = s.store.Read(ctx, func(t *store.Tx) error {
		r, err := s.desk.Get(t, id)
		if err != nil {
			return err
		}
		out = requestState(r)
		if r.EditOf == "" || r.State == approval.Expired {
			return nil
		}
		// An edited call is handed to whoever waits for the original.
		out.Call, err = s.editedCall(t, r)
		return err
	})
	return out, admin.PublicError(err)
}

// editedCall rebuilds the call that a person's edit made.
func (s *state) editedCall(t *store.Tx, r *approval.Request) (*call.Call, error) {
	if plain, err := s.desk.View(r); err == nil {
		var v admin.View
		return v.Call, json.Unmarshal(plain, &v)
	}
	original, err := s.desk.Get(t, r.EditOf)
	if err != nil {
		return nil, err
	}
	args, err := s.desk.EditedArgs(original)
	if err != nil {
		return nil, err
	}
	return &call.Call{ID: r.CallID, Kind: r.Kind, Surface: r.Surface, Principal: r.Principal, Operation: r.Operation, ElementType: r.ElementType, Args: args}, nil
}

func requestState(r *approval.Request) gate.RequestState {
	return gate.RequestState{
		ID: r.ID, Agent: r.Principal.Agent, State: string(r.State), Expires: r.Expires, By: r.AnsweredBy, Text: r.Words, EditedTo: r.EditedTo,
	}
}

// limits are the policy's limits as the desk takes them.
func limits(s *policy.Settings) approval.Limits {
	return approval.Limits{
		PendingPerSession: s.PendingPerSession, PendingPerAgent: s.PendingPerPrincipal, AsksPerHour: s.AsksPerHour,
		RequestLife: s.RequestLife, GrantLife: s.GrantLife, SessionGrantLife: s.SessionGrantLife,
	}
}

// tx is one transaction of the gate.
type tx struct {
	*store.Tx
	s *state
}

// Standing reads where the principal stands.
func (t *tx) Standing(c *call.Call) (gate.Standing, error) {
	st, err := t.s.sessions.CheckStanding(t.Tx, c.Principal, rulebook.Scope)
	if err != nil {
		return gate.Standing{}, err
	}
	out := gate.Standing{Policy: st.Policy, Elements: st.Elements}
	switch {
	case st.Kill:
		out.Switches.Kill = st.Why
	case st.Danger:
		out.Switches.Danger = st.Why
	}
	out.Switches.Paused = st.Paused
	if st.Session != nil && st.Session.Mode == session.Plan {
		out.Switches.Plan = true
	}
	if st.SessionEnded {
		out.Ended = "open a new one"
	}
	t.s.remember(c.Principal, out)
	return out, nil
}

// Taints reads what the principal, or anyone in the workspace, took in.
func (t *tx) Taints(c *call.Call) (call.Taint, error) {
	return t.s.sessions.Taints(t.Tx, c.Principal.Agent, c.Dir)
}

// Taint notes what a call that starts takes in.
func (t *tx) Taint(c *call.Call, workspace string, taint call.Taint, life time.Duration) error {
	return t.s.sessions.Taint(t.Tx, c.Principal.Agent, workspace, taint, c.ID, life)
}

// Grants returns the principal's grants that are still good.
func (t *tx) Grants(p call.Principal) ([]grant.Grant, error) { return t.s.desk.Grants(t.Tx, p) }

// Consume spends a grant.
func (t *tx) Consume(id string) error {
	_, err := t.s.desk.Consume(t.Tx, id)
	return err
}

// Edited returns the request of the call that a person put in place of this
// one, while it waits or its approval has not been used.
func (t *tx) Edited(p call.Principal, d *call.Decision) (*gate.RequestState, error) {
	original, err := t.s.desk.Latest(t.Tx, p, d.Digest, d.World, d.Policy)
	if errors.Is(err, approval.ErrNotFound) {
		return nil, nil
	}
	if err != nil || original.State != approval.Edited {
		return nil, err
	}
	next, err := t.s.desk.Get(t.Tx, original.EditedTo)
	if err != nil {
		return nil, err
	}
	switch next.State {
	case approval.Pending:
	case approval.Approved:
		grants, err := t.s.desk.Grants(t.Tx, p)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(grants, func(g grant.Grant) bool { return g.Request == next.ID }) {
			return nil, nil
		}
	default:
		return nil, nil
	}
	out := requestState(next)
	out.Call, err = t.s.editedCall(t.Tx, next)
	return &out, err
}

// File puts a request before people.
func (t *tx) File(r *gate.Request) (gate.RequestState, error) {
	got, joined, err := t.s.file(t.Tx, r)
	if errors.Is(err, approval.ErrTooMany) {
		return gate.RequestState{}, &gate.RefusedError{Reason: err.Error()}
	}
	if err != nil {
		return gate.RequestState{}, err
	}
	out := requestState(got)
	out.Joined = joined
	return out, nil
}

func (s *state) file(t *store.Tx, r *gate.Request) (got *approval.Request, joined bool, err error) {
	shown := admin.NewView(r.Call, r.Decision, r.Facts)
	shown.Facts.Kept, shown.Facts.NotKept = len(r.Facts.Touches) > 0, r.NotKept
	view, err := json.Marshal(shown)
	if err != nil {
		return nil, false, err
	}
	c, d := r.Call, r.Decision
	return s.desk.File(t, approval.Request{
		CallID: c.ID, Digest: d.Digest, World: d.World, Policy: d.Policy, Principal: c.Principal, Surface: c.Surface,
		Kind: c.Kind, Operation: c.Operation, ElementType: c.ElementType, Level: d.Level, Pinned: d.Pinned, TakesCode: d.TakesCode,
		Votes: grant.Keys(d), Offers: r.Offers, View: view, EditOf: r.EditOf,
	}, limits(&r.Limits))
}

// Withdraw takes a request back.
func (t *tx) Withdraw(id string) error {
	_, err := t.s.desk.Cancel(t.Tx, id, "withdrawn by the agent")
	return err
}

// Open notes that a call has started, and what its effect must show.
func (t *tx) Open(c *call.Call, requires []call.Guarantee) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	must := []byte("[]")
	if len(requires) > 0 {
		if must, err = json.Marshal(requires); err != nil {
			return err
		}
	}
	if t.Alone() {
		t.Remember(slotOf(c.ID), openCall{c.ID, c.Principal, c.Operation})
	}
	return t.Put(openCalls, c.ID, t.Node(), c.Principal.Agent, c.Principal.Session, c.Principal.Path, c.Operation, keyring.Micros(now),
		t.effect(c, len(requires) > 1), string(must), 0)
}

// openCalls is where calls are that have started and not ended.
var openCalls = store.NewTable("open_call", "id", "node", "agent", "session", "path", "operation", "started", "effect", "requires", "shown")

// openCall is what is remembered of one, so that its end does not have to look for its row. There are so many slots;
// one that another call has taken since is looked for.
type (
	openSlot uint32
	openCall struct {
		id        string
		principal call.Principal
		operation string
	}
)

func slotOf(id string) openSlot { return openSlot(crc32.ChecksumIEEE([]byte(id)) % (1 << 16)) }

// effect is kept of calls whose start is shown; hashing all of them would be
// for nothing.
func (t *tx) effect(c *call.Call, wrapped bool) string {
	if c.Operation != call.OpRun && c.Kind != call.Dispatch && !wrapped {
		return ""
	}
	return c.Effect().String()
}

// Show notes that an open call has shown what holds its effect.
func (t *tx) Show(id string, p call.Principal) (effect call.Digest, requires []call.Guarantee, err error) {
	n, err := t.Exec(`UPDATE open_call SET shown = 1 WHERE id = $1 AND agent = $2 AND session = $3 AND path = $4 AND shown = 0 AND effect <> ''`,
		id, p.Agent, p.Session, p.Path)
	if err == nil && n == 0 {
		err = notOpen{id}
	}
	if err != nil {
		return effect, nil, err
	}
	var hash, must string
	if err := t.QueryRow(`SELECT effect, requires FROM open_call WHERE id = $1`, id).Scan(&hash, &must); err != nil {
		return effect, nil, err
	}
	err = errors.Join(effect.UnmarshalText([]byte(hash)), json.Unmarshal([]byte(must), &requires))
	return effect, requires, err
}

// Opener returns whose an open call is, and whether it has shown what holds it.
func (s *state) Opener(ctx context.Context, id string) (p call.Principal, shown bool, err error) {
	err = s.store.Read(ctx, func(t *store.Tx) error {
		var flag int
		err := t.QueryRow(`SELECT agent, session, path, shown FROM open_call WHERE id = $1`, id).Scan(&p.Agent, &p.Session, &p.Path, &flag)
		shown = flag != 0
		if errors.Is(err, sql.ErrNoRows) {
			return notOpen{id}
		}
		return err
	})
	return p, shown, admin.PublicError(err)
}

// notOpen refuses an outcome for a call that is not the caller's to close.
type notOpen struct{ id string }

func (e notOpen) Error() string {
	return fmt.Sprintf("no call %s of yours is open: it was never let through, or its outcome is known already", e.id)
}
func (e notOpen) Public() string  { return e.Error() }
func (e notOpen) HTTPStatus() int { return http.StatusConflict }

// Close notes the outcome of an open call.
func (t *tx) Close(id string, p call.Principal, outcome gate.Outcome) error {
	if open, ok := t.Recall(slotOf(id)).(openCall); ok && open.id == id && open.principal == p && open.operation != call.OpPlan {
		t.Remember(slotOf(id), nil)
		return t.Drop(openCalls, id)
	}
	var operation string
	var counted int
	err := t.QueryRow(`DELETE FROM open_call WHERE id = $1 AND agent = $2 AND session = $3 AND path = $4 RETURNING operation, counted`,
		id, p.Agent, p.Session, p.Path).Scan(&operation, &counted)
	if errors.Is(err, sql.ErrNoRows) {
		return notOpen{id}
	}
	if err == nil && operation == call.OpPlan {
		err = t.s.desk.EndBudgets(t.Tx, id)
	}
	if err == nil && counted != 0 {
		err = t.s.sessions.UseEnded(t.Tx, id, outcome == gate.Succeeded)
	}
	return err
}

// Append adds events to the log.
func (t *tx) Append(events ...*gate.Event) error {
	for _, e := range events {
		if err := t.s.record.append(t.Tx, e); err != nil {
			return err
		}
		if e.Verdict != nil && e.Verdict.Violation != "" {
			if err := t.strike(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// recover closes what an earlier run of this node left open: nobody knows how
// it ended, and nothing of it is run again.
func (s *state) recover(ctx context.Context) (closed int, err error) {
	err = s.store.Write(ctx, func(t *store.Tx) error {
		closed = 0
		rows, err := t.Query(`SELECT id, agent, session, path FROM open_call WHERE node = $1 ORDER BY started, id`, t.Node())
		if err != nil {
			return err
		}
		var open []*call.Call
		for rows.Next() {
			c := &call.Call{}
			if err := rows.Scan(&c.ID, &c.Principal.Agent, &c.Principal.Session, &c.Principal.Path); err != nil {
				return errors.Join(err, rows.Close())
			}
			open = append(open, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, c := range open {
			e := &gate.Event{Kind: "outcome", Call: c, Outcome: &gate.End{Outcome: gate.Unknown, Detail: "the gate stopped before anyone reported how it ended"}}
			if err := s.record.append(t, e); err != nil {
				return err
			}
			if err := s.sessions.UseEnded(t, c.ID, false); err != nil {
				return err
			}
		}
		closed = len(open)
		_, err = t.Exec(`DELETE FROM open_call WHERE node = $1`, t.Node())
		return err
	})
	return closed, err
}
