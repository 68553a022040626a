package autonomy_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// desk is a keeper with a store.
type desk struct {
	*autonomy.Keeper
	s    *store.Store
	keys *keyring.Keyring
}

func newDesk(t testing.TB, s *store.Store) *desk {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{autonomy.New(keys), s, keys}
}

func (d *desk) write(t testing.TB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := d.s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) start(t testing.TB, agent string, steps int) *autonomy.Execution {
	t.Helper()
	var x *autonomy.Execution
	d.write(t, func(tx *store.Tx) (err error) {
		x, err = d.Start(tx, autonomy.Execution{
			Principal: call.Principal{Agent: agent, Session: "s1"}, Element: "agent/builder",
			Record: autonomy.Record{Goal: "build it with hunter2", Bounds: autonomy.Bounds{Tolerance: autonomy.Moderate, MaxSteps: steps}},
		})
		return err
	})
	return x
}

func (d *desk) step(t testing.TB, agent, id string, s autonomy.Step) (x *autonomy.Execution, dir autonomy.Directive, err error) {
	t.Helper()
	if s.Outcome == "" {
		s.Outcome = autonomy.Success
	}
	werr := d.s.Write(t.Context(), func(tx *store.Tx) error {
		x, dir, err = d.Step(tx, agent, id, s)
		return err
	})
	if err == nil {
		err = werr
	}
	return x, dir, err
}

// TestPauseIsStored: after a pause no step is taken, by any session and after a
// restart, until that pause is released.
func TestPauseIsStored(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		d := newDesk(t, s)
		x := d.start(t, "claude", 3)
		if _, dir, err := d.step(t, "claude", x.ID, autonomy.Step{}); err != nil || !dir.Continue || dir.Steps != 2 {
			t.Fatalf("the first step: %+v, %v", dir, err)
		}
		got, dir, err := d.step(t, "claude", x.ID, autonomy.Step{Outcome: autonomy.Failure})
		if err != nil || dir.Continue || got.State != autonomy.Paused || got.Pause == "" {
			t.Fatalf("a failure: %+v, %s, %v", dir, got.State, err)
		}
		d.Keeper = autonomy.New(d.keys) // a restart
		for range 2 {
			if _, _, err := d.step(t, "claude", x.ID, autonomy.Step{}); !errors.Is(err, autonomy.ErrPaused) {
				t.Errorf("a step of a paused execution: %v", err)
			}
		}
		end := d.s.Write(t.Context(), func(tx *store.Tx) error {
			_, err := d.End(tx, "claude", x.ID, autonomy.Completed, "", "claude")
			return err
		})
		if !errors.Is(end, autonomy.ErrPaused) {
			t.Errorf("a paused execution is completed: %v", end)
		}
		wrong := d.s.Write(t.Context(), func(tx *store.Tx) error { _, err := d.Release(tx, "p_other"); return err })
		if !errors.Is(wrong, autonomy.ErrNotFound) {
			t.Errorf("released by another pause's name: %v", wrong)
		}
		pause := got.Pause
		d.write(t, func(tx *store.Tx) error { _, err := d.Release(tx, pause); return err })
		for range 2 {
			if _, dir, err := d.step(t, "claude", x.ID, autonomy.Step{}); err != nil || !dir.Continue {
				t.Fatalf("after the release: %+v, %v", dir, err)
			}
		}
		if got, dir, err = d.step(t, "claude", x.ID, autonomy.Step{}); err != nil || dir.Continue || got.Pause == pause {
			t.Errorf("the limit counts from the release: %+v, %v", dir, err)
		}
		again := d.s.Write(t.Context(), func(tx *store.Tx) error { _, err := d.Release(tx, pause); return err })
		if !errors.Is(again, autonomy.ErrNotFound) {
			t.Errorf("an old release works on a new pause: %v", again)
		}
		if _, _, err := d.step(t, "mallory", x.ID, autonomy.Step{}); !errors.Is(err, autonomy.ErrNotFound) {
			t.Errorf("another agent's: %v", err)
		}
	})
}

// TestDangerEnds: the danger tier ends the execution, and nesting brings it
// nearer.
func TestDangerEnds(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		d := newDesk(t, s)
		outer := d.start(t, "claude", 9)
		inner := d.start(t, "claude", 9)
		deep := d.start(t, "claude", 9)
		if outer.Depth != 0 || inner.Depth != 1 || deep.Depth != 2 {
			t.Errorf("depths %d, %d, %d", outer.Depth, inner.Depth, deep.Depth)
		}
		risky := autonomy.Step{Seen: autonomy.Seen{Calls: 1, Risk: 70}}
		if x, dir, err := d.step(t, "claude", inner.ID, risky); err != nil || dir.Tier != autonomy.Verify || x.State != autonomy.Paused {
			t.Errorf("at depth one: %+v, %v", dir, err)
		}
		if x, dir, err := d.step(t, "claude", deep.ID, risky); err != nil || dir.Tier != autonomy.DangerZone || x.State != autonomy.Blocked {
			t.Errorf("at depth two: %+v, %v", dir, err)
		}
		if _, _, err := d.step(t, "claude", deep.ID, autonomy.Step{}); !errors.Is(err, autonomy.ErrOver) {
			t.Errorf("a step after the danger zone: %v", err)
		}
	})
}

// TestHandoff: a token passes an execution on once, to the agent it is for,
// with its counts and its pause; one that was changed passes nothing on.
func TestHandoff(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		d := newDesk(t, s)
		x := d.start(t, "claude", 3)
		if _, _, err := d.step(t, "claude", x.ID, autonomy.Step{Outcome: autonomy.Failure}); err != nil {
			t.Fatal(err)
		}
		var token string
		d.write(t, func(tx *store.Tx) (err error) { token, _, err = d.Handoff(tx, "claude", x.ID, "codex"); return err })
		if strings.Contains(token, "hunter2") {
			t.Error("the token shows the goal")
		}
		resume := func(k *autonomy.Keeper, agent, token string) (got *autonomy.Execution, err error) {
			werr := d.s.Write(t.Context(), func(tx *store.Tx) error {
				got, err = k.Resume(tx, call.Principal{Agent: agent, Session: "s9"}, token)
				return err
			})
			return got, errors.Join(err, werr)
		}
		if _, _, err := d.step(t, "claude", x.ID, autonomy.Step{}); !errors.Is(err, autonomy.ErrOver) {
			t.Errorf("a step of what was passed on: %v", err)
		}
		other := newDesk(t, d.s) // another gate's keys
		for name, err := range map[string]error{
			"another agent":  second(resume(d.Keeper, "mallory", token)),
			"the giver":      second(resume(d.Keeper, "claude", token)),
			"a changed one":  second(resume(d.Keeper, "codex", token[:len(token)-2]+"AA")),
			"no token":       second(resume(d.Keeper, "codex", "ghh_e30")),
			"another gate's": second(resume(other.Keeper, "codex", token)),
		} {
			if !errors.Is(err, autonomy.ErrHandoff) {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := resume(d.Keeper, "codex", token)
		if err != nil || got.State != autonomy.Paused || got.Steps != 1 || got.Principal.Agent != "codex" || got.Goal != x.Goal {
			t.Fatalf("taken up: %+v, %v", got, err)
		}
		if _, err := resume(d.Keeper, "codex", token); !errors.Is(err, autonomy.ErrHandoff) {
			t.Errorf("taken up twice: %v", err)
		}
	})
}

func second(_ *autonomy.Execution, err error) error { return err }

// TestForgedRows: an edit of the database stops what it touches.
func TestForgedRows(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		d := newDesk(t, s)
		x := d.start(t, "claude", 3)
		if _, _, err := d.step(t, "claude", x.ID, autonomy.Step{Outcome: autonomy.Failure}); err != nil {
			t.Fatal(err)
		}
		d.write(t, func(tx *store.Tx) error { _, err := d.Strike(tx, "claude", "self"); return err })
		back := errors.New("taken back")
		for edit, use := range map[string]func(tx *store.Tx) error{
			`UPDATE execution SET state = 'running'`:        func(tx *store.Tx) error { _, err := d.Get(tx, "claude", x.ID); return err },
			`UPDATE execution SET steps = 0, free = 9`:      func(tx *store.Tx) error { _, err := d.Get(tx, "claude", x.ID); return err },
			`UPDATE execution SET pause = 'p_known'`:        func(tx *store.Tx) error { _, err := d.Release(tx, "p_known"); return err },
			`UPDATE execution SET agent = 'mallory'`:        func(tx *store.Tx) error { _, err := d.Get(tx, "mallory", x.ID); return err },
			`UPDATE danger_strikes SET strikes = 0`:         func(tx *store.Tx) error { _, err := d.Strike(tx, "claude", "self"); return err },
			`UPDATE danger_strikes SET since = 1`:           func(tx *store.Tx) error { _, err := d.Strike(tx, "claude", "self"); return err },
			`UPDATE execution SET sealed = mac WHERE 1 = 1`: func(tx *store.Tx) error { _, err := d.Get(tx, "claude", x.ID); return err },
		} {
			var used error
			if err := d.s.Write(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.Exec(edit); err != nil {
					t.Error(err)
				}
				used = use(tx)
				return back
			}); !errors.Is(err, back) || !errors.Is(used, autonomy.ErrForged) {
				t.Errorf("%s: %v, %v", edit, used, err)
			}
		}
	})
}

// TestProcessesEnd: what runs for a blocked agent is ended, what runs for
// another is not, and nothing new is started for it.
func TestProcessesEnd(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		d := newDesk(t, s)
		sessions := session.New(d.keys, nil)
		d.write(t, sessions.Prepare)
		run := func(agent string) (*exec.Cmd, session.Process) {
			t.Helper()
			cmd := exec.Command("sleep", "600")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			chain, err := session.Ancestry(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			d.write(t, func(tx *store.Tx) error {
				_, err := d.StartProcess(tx, session.Standing{}, autonomy.Process{Principal: call.Principal{Agent: agent}, What: "sleep", Process: chain[0]})
				return err
			})
			return cmd, chain[0]
		}
		bad, proc := run("claude")
		_, other := run("codex")
		d.write(t, func(tx *store.Tx) error {
			_, err := sessions.SetBlock(tx, session.Block{Agent: "claude", By: "gatehouse", Reason: "x"})
			return err
		})
		var stop []autonomy.Process
		d.write(t, func(tx *store.Tx) (err error) {
			stop, _, err = d.Stopped(tx, sessions, "machine", proc.Machine)
			return err
		})
		if len(stop) != 1 || stop[0].Process.PID != proc.PID {
			t.Fatalf("to be ended: %+v", stop)
		}
		wrong := stop[0]
		wrong.Process.Start++ // another process with a used id
		if err := d.EndProcess(wrong); err != nil || !session.Alive(proc) {
			t.Fatalf("a process that only shares the id was ended: %v", err)
		}
		if err := d.EndProcess(stop[0]); err != nil {
			t.Fatal(err)
		}
		if err := bad.Wait(); err == nil {
			t.Error("it ended by itself")
		}
		if !session.Alive(other) {
			t.Error("another agent's process was ended")
		}
		refused := d.s.Write(t.Context(), func(tx *store.Tx) error {
			st, err := sessions.CheckStanding(tx, call.Principal{Agent: "claude"}, "machine")
			if err != nil {
				return err
			}
			_, err = d.StartProcess(tx, st, autonomy.Process{Principal: call.Principal{Agent: "claude"}, Process: other})
			return err
		})
		if !errors.Is(refused, autonomy.ErrStopped) {
			t.Errorf("a new process of a blocked agent: %v", refused)
		}
	})
}
