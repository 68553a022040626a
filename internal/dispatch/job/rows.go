package job

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// topic is where changes of one job are announced.
func topic(id string) string { return "job " + id }

// cancelTopic is where wishes to cancel are announced, with the job as payload.
const cancelTopic = "job-cancel"

// freeTopic is where it is announced that a job is over, and its place free.
const freeTopic = "job-free"

const columns = `id, cli, correlation, request_key, approval, agent, session, path, state, exit_code, error, category, retries, node, run,
	pid, pid_start, uid, boot, machine, asked, started, ended, expires, stdout, stderr, confined, cancel, sealed, result, mac`

func (j *Jobs) row(b *Job) *keyring.Row {
	p := b.process
	return j.keys.Row("job").Text(b.ID, b.CLI, b.CorrelationID, b.RequestKey, b.Approval, b.Owner.Agent, b.Owner.Session, b.Owner.Path,
		string(b.State), b.Error, b.Category, b.Node, b.run, p.Boot, p.Machine).
		Int(int64(b.ExitCode), int64(b.Retries), int64(p.PID), int64(p.Start), int64(p.UID), b.Stdout, b.Stderr).
		Time(b.Asked, b.Started, b.Ended, b.Expires).Bool(b.Confined, b.cancel).Bytes(b.sealed, b.result)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob is bytes that are not NULL, even if there are none.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// The tables whose new rows can wait in the store's journal: the start of a job
// is one write and one sync.
var (
	jobTable   = store.NewTable("job", strings.FieldsFunc(columns, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })...)
	eventTable = store.NewTable("job_event", "job", "seq", "time", "phase", "kind", "words")
)

func (j *Jobs) insert(tx *store.Tx, b *Job) error {
	p := b.process
	return tx.Put(jobTable,
		b.ID, b.CLI, b.CorrelationID, b.RequestKey, b.Approval, b.Owner.Agent, b.Owner.Session, b.Owner.Path, string(b.State), b.ExitCode,
		b.Error, b.Category, b.Retries, b.Node, b.run, p.PID, int64(p.Start), int64(p.UID), p.Boot, p.Machine,
		keyring.Micros(b.Asked), keyring.Micros(b.Started), keyring.Micros(b.Ended), keyring.Micros(b.Expires), b.Stdout, b.Stderr,
		number(b.Confined), number(b.cancel), blob(b.sealed), blob(b.result), j.row(b).Sum())
}

// update writes what may change about a job.
func (j *Jobs) update(tx *store.Tx, b *Job) error {
	p := b.process
	n, err := tx.Exec(`UPDATE job SET state = $2, exit_code = $3, error = $4, category = $5, retries = $6, pid = $7, pid_start = $8, uid = $9,
		boot = $10, machine = $11, started = $12, ended = $13, expires = $14, stdout = $15, stderr = $16, cancel = $17, result = $18, mac = $19 WHERE id = $1`,
		b.ID, string(b.State), b.ExitCode, b.Error, b.Category, b.Retries, p.PID, int64(p.Start), int64(p.UID), p.Boot, p.Machine,
		keyring.Micros(b.Started), keyring.Micros(b.Ended), keyring.Micros(b.Expires), b.Stdout, b.Stderr, number(b.cancel), blob(b.result), j.row(b).Sum())
	if err == nil && n != 1 {
		return fmt.Errorf("job %s: %w", b.ID, ErrNotFound)
	}
	return err
}

func (j *Jobs) scan(row interface{ Scan(...any) error }) (Job, error) {
	var b Job
	var state string
	var start, uid, asked, started, ended, expires, confined, cancel int64
	var mac []byte
	p := &b.process
	err := row.Scan(&b.ID, &b.CLI, &b.CorrelationID, &b.RequestKey, &b.Approval, &b.Owner.Agent, &b.Owner.Session, &b.Owner.Path, &state,
		&b.ExitCode, &b.Error, &b.Category, &b.Retries, &b.Node, &b.run, &p.PID, &start, &uid, &p.Boot, &p.Machine,
		&asked, &started, &ended, &expires, &b.Stdout, &b.Stderr, &confined, &cancel, &b.sealed, &b.result, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return b, ErrNotFound
	}
	if err != nil {
		return b, err
	}
	b.State, p.Start, p.UID = State(state), uint64(start), uint32(uid)
	b.Asked, b.Started, b.Ended, b.Expires = keyring.Time(asked), keyring.Time(started), keyring.Time(ended), keyring.Time(expires)
	b.Confined, b.cancel = confined != 0, cancel != 0
	if !j.row(&b).Is(mac) {
		return b, fmt.Errorf("job %s: %w", b.ID, ErrForged)
	}
	return b, nil
}

// read reads a job with its last event's number and its result.
func (j *Jobs) read(tx *store.Tx, id, clause string) (Job, error) {
	b, err := j.scan(tx.QueryRow(`SELECT `+columns+` FROM job WHERE id = $1`+clause, id))
	if err != nil {
		return b, err
	}
	if err := tx.QueryRow(`SELECT coalesce(max(seq), 0) FROM job_event WHERE job = $1`, id).Scan(&b.Seq); err != nil {
		return b, err
	}
	return b, j.unseal(&b)
}

func (j *Jobs) unseal(b *Job) error {
	if len(b.result) == 0 {
		return nil
	}
	plain, err := j.keys.Open("job result "+b.ID, b.result)
	if err != nil {
		return fmt.Errorf("job %s: %w", b.ID, err)
	}
	b.Result = plain
	return nil
}

// maxEvents bounds the progress of a job that is kept.
const maxEvents = 64

// begin notes the first event of a job.
func begin(tx *store.Tx, id string, now time.Time, e Event) error {
	store.Notify(tx, topic(id), "")
	return tx.Put(eventTable, id, 1, keyring.Micros(now), e.Phase, e.Kind, e.Text)
}

// note adds an event and wakes up who waits for the job.
func note(tx *store.Tx, id string, now time.Time, e Event) error {
	var seq int64
	if err := tx.QueryRow(`SELECT coalesce(max(seq), 0) + 1 FROM job_event WHERE job = $1`, id).Scan(&seq); err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO job_event (job, seq, time, phase, kind, words) VALUES ($1, $2, $3, $4, $5, $6)`,
		id, seq, keyring.Micros(now), e.Phase, e.Kind, e.Text); err != nil {
		return err
	}
	store.Notify(tx, topic(id), "")
	if seq <= maxEvents {
		return nil
	}
	_, err := tx.Exec(`DELETE FROM job_event WHERE job = $1 AND seq <= $2`, id, seq-maxEvents)
	return err
}

// Events returns a job's progress after an event.
func (j *Jobs) events(tx *store.Tx, id string, after int64) ([]Event, error) {
	return store.All(tx, func(rows *store.Rows) (Event, error) {
		var e Event
		var at int64
		err := rows.Scan(&e.Seq, &at, &e.Phase, &e.Kind, &e.Text)
		e.Time = keyring.Time(at)
		return e, err
	}, `SELECT seq, time, phase, kind, words FROM job_event WHERE job = $1 AND seq > $2 ORDER BY seq`, id, after)
}

// launch is what is kept, sealed, about how a job was started.
type launch struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"` // names only
}

func (j *Jobs) seal(id string, s *Spec) ([]byte, error) {
	l := launch{Path: s.Path, Args: s.Args, Dir: s.Dir}
	for _, e := range s.Env {
		l.Env = append(l.Env, variable(e))
	}
	raw, err := json.Marshal(&l)
	if err != nil {
		return nil, err
	}
	return j.keys.Seal("job "+id, raw)
}

func variable(e string) string {
	for i := range len(e) {
		if e[i] == '=' {
			return e[:i]
		}
	}
	return e
}

// sees says whether a principal may see a job.
func sees(who call.Principal, b *Job) bool {
	return who.Agent == Operator.Agent || who.Agent != "" && who.Agent == b.Owner.Agent
}
