package autonomy

import (
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Process is something the gate started, or lets run, for a principal: the
// launcher of a confined command, a dispatched agent. Ending it ends what it
// started; that is the launcher's matter.
type Process struct {
	ID        string          `json:"id"`
	Principal call.Principal  `json:"principal"`
	What      string          `json:"what"`
	Process   session.Process `json:"process"`
	Started   time.Time       `json:"started"`
}

const processColumns = `id, agent, session, path, what, pid, start, uid, boot, machine, started, mac`

func (k *Keeper) processRow(p *Process) *keyring.Row {
	return k.keys.Row("process").Text(p.ID, p.Principal.Agent, p.Principal.Session, p.Principal.Path, p.What).
		Int(int64(p.Process.PID), int64(p.Process.Start), int64(p.Process.UID)).Text(p.Process.Boot, p.Process.Machine).Time(p.Started)
}

// StartProcess notes a process that is about to run for a principal. One whose
// principal is stopped is refused; the standing was read in this transaction.
func (k *Keeper) StartProcess(tx *store.Tx, st session.Standing, p Process) (*Process, error) {
	if st.Kill || st.Danger {
		return nil, fmt.Errorf("%w: %s", ErrStopped, st.Why)
	}
	if st.SessionEnded {
		return nil, fmt.Errorf("%w: its session has ended", ErrStopped)
	}
	if err := checkTexts(p.What); err != nil {
		return nil, err
	}
	var err error
	if p.ID, err = keyring.NewID("pr_", k.keys.Random()); err != nil {
		return nil, err
	}
	if p.Started, err = tx.Now(); err != nil {
		return nil, err
	}
	p.Process.Exe = ""
	_, err = tx.Exec(`INSERT INTO gate_process (`+processColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		p.ID, p.Principal.Agent, p.Principal.Session, p.Principal.Path, p.What, p.Process.PID, int64(p.Process.Start),
		int64(p.Process.UID), p.Process.Boot, p.Process.Machine, keyring.Micros(p.Started), k.processRow(&p).Sum())
	return &p, err
}

// Processes lists what runs on a machine, as far as the gate knows.
func (k *Keeper) Processes(tx *store.Tx, machine string) ([]Process, error) {
	return store.All(tx, func(rows *store.Rows) (Process, error) {
		var p Process
		var start, started int64
		var mac []byte
		err := rows.Scan(&p.ID, &p.Principal.Agent, &p.Principal.Session, &p.Principal.Path, &p.What, &p.Process.PID, &start,
			&p.Process.UID, &p.Process.Boot, &p.Process.Machine, &started, &mac)
		p.Process.Start, p.Started = uint64(start), keyring.Time(started)
		if err == nil && !k.processRow(&p).Is(mac) {
			// A row made by hand could have the gate end somebody's process.
			err = fmt.Errorf("process %s: %w", p.ID, ErrForged)
		}
		return p, err
	}, `SELECT `+processColumns+` FROM gate_process WHERE machine = $1 ORDER BY started, id`, machine)
}

// Stopped lists the processes of a machine that must not run: those whose
// principal is stopped. Those that have ended by themselves are listed as
// gone.
func (k *Keeper) Stopped(tx *store.Tx, sessions *session.Registry, scope, machine string) (stop, gone []Process, err error) {
	running, err := k.Processes(tx, machine)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range running {
		if !session.Alive(p.Process) {
			gone = append(gone, p)
			continue
		}
		st, err := sessions.CheckStanding(tx, p.Principal, scope)
		if err != nil || st.Kill || st.Danger {
			stop = append(stop, p) // what cannot be judged does not run on
		}
	}
	return stop, gone, nil
}

// EndProcess ends a process, if it is still the one that was noted.
func (k *Keeper) EndProcess(p Process) error { return endProcess(p) }

// ForgetProcesses drops processes that have ended.
func (k *Keeper) ForgetProcesses(tx *store.Tx, list []Process) error {
	for _, p := range list {
		if _, err := tx.Exec(`DELETE FROM gate_process WHERE id = $1`, p.ID); err != nil {
			return err
		}
	}
	return nil
}
