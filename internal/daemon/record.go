package daemon

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// recorder writes events down.
type recorder struct {
	redact atomic.Pointer[redactor]
	// manifest is the hash of the permission manifest in force.
	manifest atomic.Pointer[string]
	log      *slog.Logger
	counts   *prometheus.CounterVec
	times    *prometheus.HistogramVec
	parts    sync.Map // of times, by the name of the part
	written  memo[usual, jsontext.Value]
}

func newRecorder(log *slog.Logger) *recorder {
	r := &recorder{
		log: log,
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_events_total", Help: "Events recorded, by kind, level and outcome.",
		}, []string{"kind", "level", "outcome"}),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_call_seconds", Help: "How long the parts of a call's way took.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 11),
		}, []string{"part"}),
	}
	r.hideFields(nil)
	r.manifest.Store(new(string))
	return r
}

// took counts how long a part of a call's way took.
func (r *recorder) took(part string, took time.Duration) {
	of, ok := r.parts.Load(part)
	if !ok {
		of, _ = r.parts.LoadOrStore(part, r.times.WithLabelValues(part))
	}
	of.(prometheus.Observer).Observe(took.Seconds())
}

// hideFields names further fields whose values are never stored.
func (r *recorder) hideFields(names []string) {
	r.redact.Store(&redactor{Redactor: content.NewRedactor(content.RedactorConfig{Names: names, Rand: rand.Reader}), clean: make(map[string]bool)})
}

// redactor is a redactor that knows again what has nothing to take out: the
// reasons of a policy are the same for every call.
type redactor struct {
	*content.Redactor
	mu    sync.Mutex
	clean map[string]bool
}

// What is longer is the call's own, and so many are more than policies say.
const maxClean, manyClean = 200, 2000

func (r *redactor) text(s string) string {
	r.mu.Lock()
	known := r.clean[s]
	r.mu.Unlock()
	if known {
		return s
	}
	out, _ := r.Text(s)
	if out == s && len(s) <= maxClean {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.clean) >= manyClean {
			clear(r.clean)
		}
		r.clean[s] = true
	}
	return out
}

// redactor is the one in force.
func (r *recorder) redactor() *content.Redactor { return r.redact.Load().Redactor }

// stored is what goes into the log besides the decision.
type stored struct {
	Call    *storedCall   `json:"call,omitzero"`
	Facts   *admin.Facts  `json:"facts,omitzero"`
	Verdict *gate.Ruling  `json:"verdict,omitzero"`
	Start   *gate.Start   `json:"start,omitzero"`
	Outcome *gate.End     `json:"outcome,omitzero"`
	Restore *gate.Kept    `json:"restore,omitzero"`
	Budget  *grant.Budget `json:"budget,omitzero"`
	Act     *admin.Act    `json:"act,omitzero"`
	// Posture says whether the gate held the agent or only advised it.
	Posture string `json:"posture,omitzero"`
	// Manifest is the hash of the permission manifest in force.
	Manifest string `json:"manifest,omitzero"`
}

// storedCall is a call without its secrets. Each secret left a commitment
// behind, with which whoever knows the value can prove it.
type storedCall struct {
	call.Call
	Redacted []content.Commitment `json:"redacted,omitzero"`
}

// describe writes a call and its decision as they are stored. It runs before
// the transaction: the writer has no time for it.
func (r *recorder) describe(c *call.Call, d *call.Decision, f *facts.Facts) []byte {
	args, commitments := r.redact.Load().JSON(c.Args)
	clean := *c
	clean.Args, clean.Note = args, r.text(c.Note)
	body, err := appendCall(make([]byte, 0, len(args)+roomForDecision), &clean, commitments)
	if err == nil {
		body, err = r.facts(c, d, f).AppendJSON(append(body, `,"facts":`...))
	}
	if err == nil {
		body = append(append(append(body, `,"posture":"`...), c.Posture()...), `","decision":`...)
		body, err = r.decision(d).AppendJSON(body)
	}
	if err != nil {
		r.log.Error("a call could not be described for the log", "call", c.ID, "error", err)
		return nil // an event without its description is refused by append
	}
	return append(body, '}')
}

// appendCall begins an object with a call.
func appendCall(dst []byte, c *call.Call, redacted []content.Commitment) ([]byte, error) {
	dst = append(dst, `{"call":`...)
	if len(redacted) == 0 {
		return c.AppendJSON(dst)
	}
	text, err := json.Marshal(storedCall{Call: *c, Redacted: redacted})
	return append(dst, text...), err
}

// roomForDecision is as much as a decision and the rest of its record take as
// a rule.
const roomForDecision = 3 << 10

// text takes secrets out of a text.
func (r *recorder) text(s string) string {
	if s == "" {
		return s
	}
	return r.redact.Load().text(s)
}

func (r *recorder) texts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = r.text(s)
	}
	return out
}

// decision takes secrets out of the evidence of votes.
func (r *recorder) decision(d *call.Decision) *call.Decision {
	clean := *d
	clean.Ballots = make([]call.Ballot, len(d.Ballots))
	for i, b := range d.Ballots {
		clean.Ballots[i] = b
		if b.Shared() {
			continue
		}
		clean.Ballots[i].Votes = make([]call.Vote, len(b.Votes))
		for j, v := range b.Votes {
			v.Evidence, v.Reason = r.evidence(v.Evidence), r.text(v.Reason)
			if v.Need != nil {
				n := r.need(*v.Need)
				v.Need = &n
			}
			clean.Ballots[i].Votes[j] = v
		}
	}
	return &clean
}

func (r *recorder) evidence(list []call.Evidence) []call.Evidence {
	if len(list) == 0 {
		return nil
	}
	out := make([]call.Evidence, len(list))
	for i, e := range list {
		out[i] = call.Evidence{Where: e.Where, Text: r.text(e.Text)}
	}
	return out
}

func (r *recorder) need(n call.Need) call.Need {
	n.Scope, n.Evidence = r.text(n.Scope), r.evidence(n.Evidence)
	return n
}

func (r *recorder) facts(c *call.Call, d *call.Decision, f *facts.Facts) *admin.Facts {
	v := admin.NewView(c, d, f).Facts
	v.Words = r.text(v.Words)
	v.Findings, v.Observed = r.evidence(v.Findings), r.evidence(v.Observed)
	v.Uncommitted, v.Destroys = r.texts(v.Uncommitted), r.texts(v.Destroys)
	needs := make([]call.Need, len(v.Needs))
	for i, n := range v.Needs {
		needs[i] = r.need(n)
	}
	v.Needs = needs
	return v
}

// budget takes secrets out of the scopes of a budget.
func (r *recorder) budget(b *grant.Budget) *grant.Budget {
	if b == nil {
		return nil
	}
	clean := *b
	clean.Lines = slices.Clone(b.Lines)
	for i := range clean.Lines {
		clean.Lines[i].Need = r.need(clean.Lines[i].Need)
	}
	return &clean
}

// kept takes secrets out of what says which paths were not kept.
func (r *recorder) kept(k *gate.Kept) *gate.Kept {
	if k == nil {
		return nil
	}
	return &gate.Kept{Point: k.Point, NotKept: r.texts(k.NotKept)}
}

// append adds an event to the log.
func (r *recorder) append(tx *store.Tx, e *gate.Event) error {
	end := e.Outcome
	if end != nil && (end.Detail != "" || len(end.Refusals) > 0) {
		// An error message repeats what a program was given.
		clean := gate.End{Outcome: end.Outcome, Detail: r.text(end.Detail)}
		for _, f := range end.Refusals {
			f.Subject, f.Program, f.Reason = r.text(f.Subject), r.text(f.Program), r.text(f.Reason)
			clean.Refusals = append(clean.Refusals, f)
		}
		end = &clean
	}
	verdict := e.Verdict
	if verdict != nil && e.Level != call.AutoApprove {
		// A reason may quote what it objects to.
		clean := *verdict
		clean.Reason = r.text(clean.Reason)
		verdict = &clean
	}
	rest, err := r.rest(stored{Verdict: verdict, Start: e.Start, Outcome: end, Restore: r.kept(e.Restore), Budget: r.budget(e.Budget), Manifest: *r.manifest.Load()})
	if err != nil {
		return err
	}
	rec := &audit.Record{
		Kind: e.Kind, CallID: e.Call.ID, Principal: e.Call.Principal.Agent, Session: e.Call.Principal.Session,
		Surface: e.Call.Surface, Operation: e.Call.Operation, Correlation: e.Call.Correlation, Body: joinObjects(e.Described, rest),
	}
	switch {
	case e.Outcome != nil:
		rec.Outcome = string(e.Outcome.Outcome)
	case e.Verdict != nil:
		rec.Level, rec.Outcome = e.Level.String(), e.Verdict.Verdict.String()
	}
	r.counts.WithLabelValues(rec.Kind, rec.Level, rec.Outcome).Inc()
	return audit.Append(tx, rec)
}

// usual is what there is to say about most events besides the call.
type usual struct {
	reason, runs string // of a call that the policy let through
	outcome      gate.Outcome
	manifest     string
}

// isUsual says whether there is no more to say.
func isUsual(s *stored) (u usual, ok bool) {
	u.manifest = s.Manifest
	switch v, start := s.Verdict, s.Start; {
	case s.Call != nil || s.Facts != nil || s.Restore != nil || s.Budget != nil || s.Act != nil || s.Posture != "":
		return u, false
	case s.Outcome != nil:
		u.outcome = s.Outcome.Outcome
		return u, v == nil && start == nil && s.Outcome.Detail == "" && s.Outcome.Refusals == nil
	case v == nil || start == nil:
		return u, false
	default:
		u.reason, u.runs = v.Reason, start.Runs
		return u, v.Verdict == gate.Allowed && slices.Equal(v.By, byPolicy) && slices.Equal(v.Channel, byPolicy) && v.Grants == nil &&
			v.Budget == "" && v.Request == "" && v.Violation == "" && !v.Observed &&
			start.Guarantees == nil && start.Backend == "" && start.Shown == nil && start.Seen == nil
	}
}

var byPolicy = []string{"policy"}

// rest writes what there is besides the call. What was written before is
// known again.
func (r *recorder) rest(s stored) (jsontext.Value, error) {
	u, ok := isUsual(&s)
	if ok {
		if text, ok := r.written.get(u); ok {
			return text, nil
		}
	}
	text, err := json.Marshal(s)
	if ok && err == nil {
		r.written.put(u, text)
	}
	return text, err
}

// joinObjects makes one object of the members of two. It leaves both as they
// are: a transaction may run twice.
func joinObjects(a, b jsontext.Value) jsontext.Value {
	if len(a) <= 2 {
		return b
	}
	if len(b) <= 2 {
		return a
	}
	return slices.Concat(a[:len(a)-1], jsontext.Value(","), b[1:])
}

// act adds something a person did.
func (r *recorder) act(tx *store.Tx, a admin.Act) error {
	body, err := json.Marshal(stored{Act: &a, Manifest: *r.manifest.Load()})
	if err != nil {
		return err
	}
	clean, _ := r.redact.Load().JSON(body)
	rec := &audit.Record{Kind: "admin", Principal: a.By, Surface: a.Channel, Operation: a.Name, Body: clean}
	if a.Call != nil {
		rec.Kind, rec.CallID, rec.Session = "verdict", a.Call.ID, a.Call.Principal.Session
	}
	return audit.Append(tx, rec)
}
