package flight

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// The statuses of a decision.
const (
	Approved = "approved"
	Denied   = "denied"
	Asked    = "asked" // a person is asked
	// How a question ends that nobody says yes or no to.
	Expired   = "expired"
	Withdrawn = "withdrawn"
)

// The states of a request. Those of its job follow once that is over.
const (
	Refused = "refused" // nothing was started
	Waiting = "waiting" // for a person
	Granted = "granted" // a person said yes; sent again, or still waited for, it starts
	Started = "started"
	Reused  = "reused" // another request's job answered it
)

// Usage is what a run consumed. Input tokens are those that no cache gave.
type Usage struct {
	InputTokens         int64 `json:"inputTokens"`
	OutputTokens        int64 `json:"outputTokens"`
	CacheReadTokens     int64 `json:"cacheReadTokens"`
	CacheCreationTokens int64 `json:"cacheCreationTokens"`
}

// Record is one request to an agent CLI.
type Record struct {
	ID                  string         `json:"id"`
	Time                time.Time      `json:"ts"`
	Status              string         `json:"status"`
	Policy              string         `json:"policy"`
	Profile             string         `json:"profile,omitzero"`
	CLI                 string         `json:"cli"`
	Operation           string         `json:"operation"`
	Score               int            `json:"score"`
	Reasons             []string       `json:"reasons"`
	PromptPreview       string         `json:"promptPreview"`
	PromptSHA256        string         `json:"promptSha256"`
	RequestedMCPServers []string       `json:"requestedMcpServers"`
	BypassRequested     bool           `json:"bypassRequested"`
	FullAuto            bool           `json:"fullAuto"`
	CorrelationID       string         `json:"correlationId"`
	Principal           call.Principal `json:"principal"`
	// Request is the question that a person was asked, and DecidedBy and
	// DecidedAt say who answered it when. Policy alone decides without either.
	Request   string    `json:"request,omitzero"`
	DecidedBy string    `json:"decidedBy,omitzero"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	CallID    string    `json:"callId,omitzero"`
	JobID     string    `json:"jobId,omitzero"`
	SessionID string    `json:"sessionId,omitzero"`
	Model     string    `json:"model,omitzero"`
	Strategy  string    `json:"approvalStrategy,omitzero"`
	// PrefixHash is the hash of the part of a prompt that stays the same from
	// one request to the next, PrefixTokens an estimate of its size.
	PrefixHash   string `json:"stablePrefixHash,omitzero"`
	PrefixTokens int64  `json:"stablePrefixTokens,omitzero"`
	// CacheBlocks counts explicit cache markers, CacheTTL is their life in
	// seconds.
	CacheBlocks int `json:"cacheControlBlocks,omitzero"`
	CacheTTL    int `json:"cacheControlTtlSeconds,omitzero"`

	State      string    `json:"state"`
	Ended      time.Time `json:"endedAt,omitzero"`
	DurationMS int64     `json:"durationMs,omitzero"`
	Usage      *Usage    `json:"usage,omitzero"`
	CostUSD    float64   `json:"costUsd,omitzero"`
	// CostBasis says where the cost is from: the provider, or the price table.
	CostBasis  string `json:"costBasis,omitzero"`
	StopReason string `json:"stopReason,omitzero"`
	// Denials counts tool calls that were refused inside the run.
	Denials         int    `json:"denials,omitzero"`
	ExitCode        int    `json:"exitCode,omitzero"`
	ProviderSession string `json:"providerSessionId,omitzero"`
	Error           string `json:"error,omitzero"`
}

// End is what became of a request.
type End struct {
	State           string
	Model           string
	Usage           *Usage
	CostUSD         float64 // as the CLI reported it; 0 if it did not
	StopReason      string
	Denials         int
	ExitCode        int
	ProviderSession string
	Error           string
}

// What can be wrong with a record.
var (
	// ErrNotFound says that the asker has no such record.
	ErrNotFound = errors.New("there is no such request of yours")
	// ErrForged says that a row was changed by something else than the gate.
	ErrForged = errors.New("a request's record was edited in the database")
)

// Operator sees every record. No agent can have the name.
var Operator = call.Principal{Agent: "*"}

// Recorder keeps records. It is safe for concurrent use.
type Recorder struct {
	keys   *keyring.Keyring
	redact func() *content.Redactor
	opened opened
}

// New makes a recorder that seals with the keys.
func New(keys *keyring.Keyring, redact func() *content.Redactor) *Recorder {
	return &Recorder{keys: keys, redact: redact}
}

// previewLength is how many characters of a prompt are kept.
const previewLength = 280

// Preview is the beginning of a prompt without its secrets, on one line.
func Preview(r *content.Redactor, prompt string) string {
	// As a rule the beginning is enough. Where so much is redacted, or empty, that
	// its end would be shown, a secret may have been cut there.
	const enough, margin = 64 << 10, 4 << 10
	clean := oneLine(r, prompt[:min(len(prompt), enough)])
	if len(prompt) > enough && len(clean) < utf8.UTFMax*previewLength+margin {
		clean = oneLine(r, prompt)
	}
	if utf8.RuneCountInString(clean) <= previewLength {
		return clean
	}
	return string([]rune(clean)[:previewLength])
}

func oneLine(r *content.Redactor, text string) string {
	clean, _ := r.Text(strings.ToValidUTF8(text, "�"))
	return strings.Join(strings.Fields(clean), " ")
}

// Hash is the hash of a prompt as records have it.
func Hash(prompt string) string {
	sum := sha256.Sum256([]byte(prompt))
	return hex.EncodeToString(sum[:])
}

// NewID makes the id of a decision, for those who must know it before.
func (r *Recorder) NewID() (string, error) { return keyring.NewID("appr-", r.keys.Random()) }

// Decided records the decision about a request, in the transaction that
// decides or right after it. It fills in the id, if there is none, the time,
// the preview and the hash.
func (r *Recorder) Decided(tx *store.Tx, rec *Record, prompt string) (err error) {
	if rec.ID == "" {
		if rec.ID, err = r.NewID(); err != nil {
			return err
		}
	}
	if rec.Time, err = tx.Now(); err != nil {
		return err
	}
	rec.PromptPreview, rec.PromptSHA256 = Preview(r.redact(), prompt), Hash(prompt)
	for i, s := range rec.Reasons {
		rec.Reasons[i], _ = r.redact().Text(s)
	}
	if rec.State == "" {
		rec.State = map[string]string{Approved: Started, Asked: Waiting}[rec.Status]
		if rec.State == "" {
			rec.State = Refused
		}
	}
	if err := r.wait(tx, rec); err != nil {
		return err
	}
	return r.insert(tx, rec)
}

func (r *Recorder) insert(tx *store.Tx, rec *Record) error {
	class, err := r.class(tx, rec)
	if err != nil {
		return err
	}
	body, err := r.seal(rec)
	if err != nil {
		return err
	}
	return tx.Put(flightTable, rec.ID, keyring.Micros(rec.Time), class, rec.Principal.Agent, rec.CorrelationID, rec.PromptSHA256, rec.SessionID, rec.State, body)
}

// flightTable takes new records, which can wait in the store's journal.
var flightTable = store.NewTable("flight", "id", "time", "class", "agent", "correlation", "prompt_hash", "session", "state", "body")

// classKey is what a record's class stands for.
type classKey struct {
	agent, cli, status, policy string
	score                      int
}

// classStep is by how much a class's latest time goes ahead of its records, so
// that it is written once in a while and not with each of them.
const classStep = time.Minute

// class finds or makes the class of a record and notes that it has a new one.
func (r *Recorder) class(tx *store.Tx, rec *Record) (id int64, err error) {
	key := classKey{rec.Principal.Agent, rec.CLI, rec.Status, rec.Policy, rec.Score}
	at := keyring.Micros(rec.Time)
	if c, ok := tx.Recall(key).(class); ok && at <= c.latest {
		return c.id, nil
	}
	c := class{latest: keyring.Micros(rec.Time.Truncate(classStep).Add(classStep))}
	err = tx.QueryRow(`INSERT INTO flight_class (agent, cli, status, policy, score, latest) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (agent, cli, status, policy, score) DO UPDATE SET latest = CASE WHEN flight_class.latest > excluded.latest THEN flight_class.latest ELSE excluded.latest END
		RETURNING id`, rec.Principal.Agent, rec.CLI, rec.Status, rec.Policy, rec.Score, c.latest).Scan(&c.id)
	if err == nil {
		tx.Remember(key, c)
	}
	return c.id, err
}

func (r *Recorder) seal(rec *Record) ([]byte, error) {
	raw, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return r.keys.Seal("flight "+rec.ID, raw)
}

// change reads a record, lets fn change it and writes it back.
func (r *Recorder) change(tx *store.Tx, id string, fn func(*Record) error) error {
	rec, err := r.scan(tx.QueryRow(`SELECT `+columns+` FROM flight WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return err
	}
	if err := fn(rec); err != nil {
		return err
	}
	class, err := r.class(tx, rec)
	if err != nil {
		return err
	}
	body, err := r.seal(rec)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE flight SET class = $2, session = $3, state = $4, body = $5 WHERE id = $1`, id, class, rec.SessionID, rec.State, body)
	return err
}

// Ended records what became of a request. Ending it again changes nothing.
func (r *Recorder) Ended(tx *store.Tx, id string, e End) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	var ended *Record
	err = r.change(tx, id, func(rec *Record) error {
		if !rec.Ended.IsZero() {
			return nil
		}
		rec.State, rec.Ended, rec.DurationMS = e.State, now, now.Sub(rec.Time).Milliseconds()
		rec.Usage, rec.StopReason, rec.Denials, rec.ExitCode, rec.ProviderSession = e.Usage, e.StopReason, e.Denials, e.ExitCode, e.ProviderSession
		if e.Model != "" {
			rec.Model = e.Model
		}
		rec.Error, _ = r.redact().Text(e.Error)
		r.price(rec, e)
		ended = rec
		return nil
	})
	if err != nil || ended == nil {
		return err
	}
	return r.sum(tx, ended)
}

// price says what a run cost: as the CLI reported, else by the table.
func (r *Recorder) price(rec *Record, e End) {
	if e.CostUSD > 0 {
		rec.CostUSD, rec.CostBasis = e.CostUSD, "provider-reported"
		return
	}
	if e.Usage == nil {
		return
	}
	if cost, _, known := PriceTable().cost(rec.Model, *e.Usage); known {
		rec.CostUSD, rec.CostBasis = dollars(cost), "derived-from-tokens, prices of "+PriceTable().AsOf
	}
}

const columns = `id, time, agent, correlation, prompt_hash, session, state, body`

// scan opens a record and holds it against its columns. The record is the
// caller's own.
func (r *Recorder) scan(row interface{ Scan(...any) error }) (*Record, error) {
	shared, _, err := r.look(row)
	if err != nil {
		return nil, err
	}
	rec := *shared
	rec.Reasons = slices.Clone(rec.Reasons)
	return &rec, nil
}

// look is scan for those who only read: the record is shared, and comes with
// its JSON.
func (r *Recorder) look(row interface{ Scan(...any) error }) (*Record, jsontext.Value, error) {
	var c Record
	var at int64
	var body []byte
	err := row.Scan(&c.ID, &at, &c.Principal.Agent, &c.CorrelationID, &c.PromptSHA256, &c.SessionID, &c.State, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	rec, raw, err := r.open(c.ID, body)
	if err != nil {
		return nil, nil, err
	}
	if rec.ID != c.ID || keyring.Micros(rec.Time) != at || rec.Principal.Agent != c.Principal.Agent || rec.CorrelationID != c.CorrelationID ||
		rec.PromptSHA256 != c.PromptSHA256 || rec.SessionID != c.SessionID || rec.State != c.State {
		return nil, nil, fmt.Errorf("%s: %w", c.ID, ErrForged)
	}
	return rec, raw, nil
}

// opened keeps records that were opened before, by their sealed bytes: no two
// seals are the same, so equal bytes are the same record. Lists are mostly of
// the newest, again and again.
type opened struct {
	mu   sync.Mutex
	byID map[string]openedRecord
}

type openedRecord struct {
	sealed []byte
	rec    *Record
	raw    jsontext.Value
}

// maxOpened bounds how many are kept.
const maxOpened = 2000

func (r *Recorder) open(id string, sealed []byte) (*Record, jsontext.Value, error) {
	r.opened.mu.Lock()
	o, ok := r.opened.byID[id]
	r.opened.mu.Unlock()
	if ok && bytes.Equal(o.sealed, sealed) {
		return o.rec, o.raw, nil
	}
	raw, err := r.keys.Open("flight "+id, sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", id, ErrForged)
	}
	rec := &Record{}
	if err := json.Unmarshal(raw, rec); err != nil {
		return nil, nil, err
	}
	r.opened.mu.Lock()
	defer r.opened.mu.Unlock()
	if r.opened.byID == nil || len(r.opened.byID) >= maxOpened {
		r.opened.byID = make(map[string]openedRecord, maxOpened)
	}
	r.opened.byID[id] = openedRecord{bytes.Clone(sealed), rec, raw}
	return rec, raw, nil
}

func sees(who call.Principal, rec *Record) bool {
	return who.Agent == Operator.Agent || who.Agent != "" && who.Agent == rec.Principal.Agent
}

// Get returns a request of the owner's by its id.
func (r *Recorder) Get(tx *store.Tx, owner call.Principal, id string) (*Record, error) {
	rec, err := r.scan(tx.QueryRow(`SELECT `+columns+` FROM flight WHERE id = $1`, id))
	if err == nil && !sees(owner, rec) {
		return nil, ErrNotFound
	}
	return rec, err
}

// maxCorrelated bounds the requests of one correlation id that are shown.
const maxCorrelated = 200

// Correlated returns the owner's requests with a correlation id, oldest first.
func (r *Recorder) Correlated(tx *store.Tx, owner call.Principal, correlation string) ([]*Record, error) {
	list, err := store.All(tx, func(rows *store.Rows) (*Record, error) { return r.scan(rows) },
		`SELECT `+columns+` FROM flight WHERE correlation = $1 AND (agent = $2 OR $2 = '*') ORDER BY time, id LIMIT CAST($3 AS BIGINT)`,
		correlation, owner.Agent, maxCorrelated)
	return list, err
}
