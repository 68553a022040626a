package autonomy

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// State is where an execution stands.
type State string

// The states. Running and paused ones go on, a handed one waits to be taken
// up, the others are over.
const (
	Running   State = "running"
	Paused    State = "paused"
	Handed    State = "handed"
	Completed State = "completed"
	Failed    State = "failed"
	Aborted   State = "aborted"
	Blocked   State = "blocked"
)

// Over says whether nothing more happens.
func (s State) Over() bool { return s != Running && s != Paused && s != Handed }

// Taken is one step that was taken.
type Taken struct {
	N       int       `json:"n"`
	At      time.Time `json:"at"`
	Text    string    `json:"description"`
	Outcome Outcome   `json:"outcome"`
	Hint    string    `json:"next_action_hint,omitzero"`
	// Data is what the step gathered.
	Data jsontext.Value `json:"data,omitzero"`
	// Directive is what the gate answered.
	Directive Directive `json:"directive"`
}

// Execution is one run of an agent towards a goal.
type Execution struct {
	ID string `json:"id"`
	// Principal is who runs it. It belongs to the agent, whatever session it
	// comes back from.
	Principal call.Principal `json:"principal"`
	Workspace string         `json:"workspace,omitzero"`
	// Element is the agent element it runs.
	Element string `json:"element"`
	State   State  `json:"state"`
	// Pause names the pause it is in; a later pause has another name.
	Pause string `json:"pause,omitzero"`
	// Depth is how many executions were running above it.
	Depth int `json:"depth"`
	Steps int `json:"steps"`
	// Free is how many steps had been taken when a person last let it go on.
	Free    int       `json:"-"`
	Since   time.Time `json:"since"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	EndedBy string    `json:"ended_by,omitzero"`
	Record

	handoff string
	sealed  []byte
	held    bool // as it was read: it was paused
}

// Record is what is sealed of an execution.
type Record struct {
	Goal   string  `json:"goal"`
	Bounds Bounds  `json:"bounds"`
	Total  Seen    `json:"total"`
	Taken  []Taken `json:"taken,omitzero"`
	// Why says why it is paused or over.
	Why []string `json:"why,omitzero"`
}

const (
	maxRunning = 8       // of one agent
	maxText    = 8 << 10 // of a goal, a description, a hint
	maxData    = 64 << 10
	maxRecord  = 2 << 20
)

const executionColumns = `id, agent, session, path, workspace, element, state, pause, handoff, depth, steps, free, since, started,
	ended, ended_by, sealed, mac`

func (k *Keeper) executionRow(x *Execution) *keyring.Row {
	return k.keys.Row("execution").Text(x.ID, x.Principal.Agent, x.Principal.Session, x.Principal.Path, x.Workspace, x.Element).
		Text(string(x.State), x.Pause, x.handoff).Int(int64(x.Depth), int64(x.Steps), int64(x.Free)).
		Time(x.Since, x.Started, x.Ended).Text(x.EndedBy).Bytes(x.sealed)
}

type scanner interface{ Scan(dest ...any) error }

func (k *Keeper) scan(row scanner) (*Execution, error) {
	var x Execution
	var since, started, ended int64
	var mac []byte
	err := row.Scan(&x.ID, &x.Principal.Agent, &x.Principal.Session, &x.Principal.Path, &x.Workspace, &x.Element, &x.State, &x.Pause,
		&x.handoff, &x.Depth, &x.Steps, &x.Free, &since, &started, &ended, &x.EndedBy, &x.sealed, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	x.Since, x.Started, x.Ended = keyring.Time(since), keyring.Time(started), keyring.Time(ended)
	plain, err := k.keys.Open("execution "+x.ID, x.sealed)
	if err != nil || !k.executionRow(&x).Is(mac) || json.Unmarshal(plain, &x.Record) != nil {
		return nil, fmt.Errorf("execution %s: %w", x.ID, ErrForged)
	}
	x.held = x.Pause != ""
	return &x, nil
}

func (k *Keeper) next(rows *store.Rows) (*Execution, error) { return k.scan(rows) }

// save writes an execution, new or changed.
func (k *Keeper) save(tx *store.Tx, x *Execution) error {
	plain, err := json.Marshal(&x.Record)
	if err != nil {
		return err
	}
	if len(plain) > maxRecord {
		return fmt.Errorf("%w: the execution has gathered more than %d bytes", ErrInvalid, maxRecord)
	}
	if x.sealed, err = k.keys.Seal("execution "+x.ID, plain); err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO execution (`+executionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
		$14, $15, $16, $17, $18) ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, session = excluded.session,
		path = excluded.path, state = excluded.state, pause = excluded.pause, handoff = excluded.handoff, depth = excluded.depth,
		steps = excluded.steps, free = excluded.free, since = excluded.since, ended = excluded.ended, ended_by = excluded.ended_by,
		sealed = excluded.sealed, mac = excluded.mac`,
		x.ID, x.Principal.Agent, x.Principal.Session, x.Principal.Path, x.Workspace, x.Element, string(x.State), x.Pause, x.handoff,
		x.Depth, x.Steps, x.Free, keyring.Micros(x.Since), keyring.Micros(x.Started), keyring.Micros(x.Ended), x.EndedBy, x.sealed,
		k.executionRow(x).Sum())
	if err != nil {
		return err
	}
	store.Notify(tx, Topic, x.ID)
	if k.Changed != nil && (x.held || x.Pause != "") {
		return k.Changed(tx)
	}
	return nil
}

// Paused returns the first execution of one of the agents that waits for a
// person, nil if none does. One that was passed on while it was paused counts
// until whoever it was passed to has taken it up.
func (k *Keeper) Paused(tx *store.Tx, agents []string) (*Execution, error) {
	for _, agent := range agents {
		list, err := store.All(tx, k.next, `SELECT `+executionColumns+` FROM execution WHERE agent = $1
			AND state IN ('running', 'paused', 'handed') AND pause <> '' ORDER BY started, id`, agent)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			return list[0], nil
		}
	}
	return nil, nil
}

// Start begins an execution. The caller fills in principal, workspace,
// element, goal and bounds. How deep it is follows from what the agent has
// running already, not from what it says.
func (k *Keeper) Start(tx *store.Tx, x Execution) (*Execution, error) {
	if err := checkTexts(x.Goal, x.Element); err != nil {
		return nil, err
	}
	if x.Bounds.MaxSteps < 1 {
		return nil, fmt.Errorf("%w: an execution has a limit of steps", ErrInvalid)
	}
	live, err := store.All(tx, k.next, `SELECT `+executionColumns+` FROM execution WHERE agent = $1
		AND state IN ('running', 'paused', 'handed') ORDER BY started`+tx.ForUpdate(), x.Principal.Agent)
	if err != nil {
		return nil, err
	}
	if len(live) >= maxRunning {
		return nil, fmt.Errorf("%w: agent %s has %d", ErrTooMany, x.Principal.Agent, len(live))
	}
	if x.ID, err = keyring.NewID("x_", k.keys.Random()); err != nil {
		return nil, err
	}
	if x.Started, err = tx.Now(); err != nil {
		return nil, err
	}
	x.Depth = depthOf(x.Principal.Path)
	for _, above := range live {
		x.Depth = max(x.Depth, above.Depth+1)
	}
	x.State, x.Since, x.Steps, x.Free, x.Total, x.Taken, x.Why = Running, x.Started, 0, 0, Seen{}, nil, nil
	return &x, k.save(tx, &x)
}

// depthOf counts the sub-agents in a path.
func depthOf(path string) int {
	if path == "" {
		return 0
	}
	return 1 + strings.Count(path, "/")
}

func checkTexts(texts ...string) error {
	for _, t := range texts {
		if len(t) > maxText || strings.ContainsRune(t, 0) {
			return fmt.Errorf("%w: a text is longer than %d bytes or holds a NUL byte", ErrInvalid, maxText)
		}
	}
	return nil
}

// Get returns an agent's own execution.
func (k *Keeper) Get(tx *store.Tx, agent, id string) (*Execution, error) {
	return k.find(tx, agent, id, "")
}

// load reads an agent's own execution to change it.
func (k *Keeper) load(tx *store.Tx, agent, id string) (*Execution, error) {
	return k.find(tx, agent, id, tx.ForUpdate())
}

// find says of another agent's execution that it is not there.
func (k *Keeper) find(tx *store.Tx, agent, id, lock string) (*Execution, error) {
	x, err := k.scan(tx.QueryRow(`SELECT `+executionColumns+` FROM execution WHERE id = $1`+lock, id))
	if err == nil && x.Principal.Agent != agent {
		return nil, ErrNotFound
	}
	return x, err
}

// List returns an agent's executions, all agents' if it is "", newest first.
func (k *Keeper) List(tx *store.Tx, agent string, limit int) ([]*Execution, error) {
	return store.All(tx, k.next, fmt.Sprintf(`SELECT %s FROM execution WHERE $1 = '' OR agent = $1 ORDER BY started DESC, id DESC LIMIT %d`,
		executionColumns, min(max(limit, 1), 500)), agent)
}

// Step is a step as the agent reports it, with what the gate saw meanwhile.
type Step struct {
	Text    string
	Outcome Outcome
	Hint    string
	Data    jsontext.Value
	// Claimed is the risk the agent states.
	Claimed *float64
	// HintRisk and HintAttack are what the gate makes of the hint.
	HintRisk   int
	HintAttack bool
	Seen       Seen
}

// Step records a step and says whether the next may be taken. One that may
// not leaves the execution paused, or blocked in the danger zone; then the
// caller blocks the agent in the same transaction.
func (k *Keeper) Step(tx *store.Tx, agent, id string, s Step) (*Execution, Directive, error) {
	if err := checkTexts(s.Text, s.Hint); err != nil {
		return nil, Directive{}, err
	}
	if len(s.Data) > maxData {
		return nil, Directive{}, fmt.Errorf("%w: a step gathers at most %d bytes", ErrInvalid, maxData)
	}
	x, err := k.load(tx, agent, id)
	if err != nil {
		return nil, Directive{}, err
	}
	switch {
	case x.State == Paused:
		return x, Directive{}, ErrPaused
	case x.State != Running:
		return x, Directive{}, ErrOver
	}
	now, err := tx.Now()
	if err != nil {
		return nil, Directive{}, err
	}
	x.Steps++
	d := Evaluate(Input{
		Bounds: x.Bounds, Steps: x.Steps - x.Free, Depth: x.Depth, Now: s.Seen, Before: x.Total, Outcome: s.Outcome,
		Hint: s.Hint, HintRisk: s.HintRisk, HintAttack: s.HintAttack, Claimed: s.Claimed,
	})
	x.Since, x.Total = now, x.Total.add(s.Seen)
	x.Taken = append(x.Taken, Taken{N: x.Steps, At: now, Text: s.Text, Outcome: s.Outcome, Hint: s.Hint, Data: s.Data, Directive: d})
	if !d.Continue {
		if err := k.pause(x, d, now); err != nil {
			return nil, d, err
		}
	}
	return x, d, k.save(tx, x)
}

func (k *Keeper) pause(x *Execution, d Directive, now time.Time) (err error) {
	x.Why = d.Reasons
	if d.Tier == DangerZone {
		x.State, x.Ended, x.EndedBy = Blocked, now, "gatehouse"
		return nil
	}
	x.State = Paused
	x.Pause, err = keyring.NewID("p_", k.keys.Random())
	return err
}

// Release lets a paused execution go on, for as many steps as it began with.
// It is bound to the pause: a later one has another name.
func (k *Keeper) Release(tx *store.Tx, pause string) (*Execution, error) {
	x, err := k.scan(tx.QueryRow(`SELECT `+executionColumns+` FROM execution WHERE pause = $1 AND state IN ('paused', 'handed')`+tx.ForUpdate(), pause))
	if err != nil || pause == "" {
		return nil, errors.Join(err, ErrNotFound)
	}
	if x.State == Paused {
		x.State = Running // one that was passed on still waits to be taken up
	}
	x.Pause, x.Why, x.Free = "", nil, x.Steps
	// Attempts on the gate are not forgotten; what a person has looked at is
	// not held against the next step again.
	x.Total = Seen{Calls: x.Total.Calls, Violations: x.Total.Violations}
	return x, k.save(tx, x)
}

// End closes an execution.
func (k *Keeper) End(tx *store.Tx, agent, id string, state State, why, by string) (*Execution, error) {
	if err := checkTexts(why); err != nil {
		return nil, err
	}
	x, err := k.load(tx, agent, id)
	if err != nil {
		return nil, err
	}
	if x.State.Over() {
		return x, ErrOver
	}
	if x.State == Paused && state == Completed {
		return x, ErrPaused // whoever completes it goes past the pause
	}
	if x.Ended, err = tx.Now(); err != nil {
		return nil, err
	}
	x.State, x.EndedBy, x.Pause, x.handoff = state, by, "", ""
	if why != "" {
		x.Why = []string{why}
	}
	return x, k.save(tx, x)
}
