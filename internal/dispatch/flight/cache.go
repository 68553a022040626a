package flight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Sums are totals over finished requests. There is no text among them.
type Sums struct {
	Requests            int64   `json:"requestCount"`
	Hits                int64   `json:"hitCount"` // requests that got something from a cache
	HitRate             float64 `json:"hitRate"`
	InputTokens         int64   `json:"totalInputTokens"`
	OutputTokens        int64   `json:"totalOutputTokens"`
	CacheReadTokens     int64   `json:"totalCacheReadTokens"`
	CacheCreationTokens int64   `json:"totalCacheCreationTokens"`
	CostUSD             float64 `json:"totalCostUsd"`
	SavingsUSD          float64 `json:"estimatedSavingsUsd"`
	ExplicitRequests    int64   `json:"explicitCacheControlRows"`
	ExplicitHits        int64   `json:"explicitCacheControlHits"`

	cost, saved int64
}

func (s *Sums) add(o *Sums) {
	s.Requests += o.Requests
	s.Hits += o.Hits
	s.InputTokens += o.InputTokens
	s.OutputTokens += o.OutputTokens
	s.CacheReadTokens += o.CacheReadTokens
	s.CacheCreationTokens += o.CacheCreationTokens
	s.ExplicitRequests += o.ExplicitRequests
	s.ExplicitHits += o.ExplicitHits
	s.cost += o.cost
	s.saved += o.saved
}

func (s *Sums) settle() {
	s.CostUSD, s.SavingsUSD = dollars(s.cost), dollars(s.saved)
	if s.Requests > 0 {
		s.HitRate = float64(s.Hits) / float64(s.Requests)
	}
}

// Share is the part of one CLI, and of one model where that is told apart.
type Share struct {
	CLI   string `json:"cli"`
	Model string `json:"model,omitzero"`
	Sums
}

// Global is the cache state of the last 24 hours.
type Global struct {
	WindowHours int `json:"windowHours"`
	Sums
	PerCLI   []Share `json:"perCli"`
	PricesOf string  `json:"pricesAsOf"`
}

// Session is the cache state of one conversation.
type Session struct {
	SessionID string `json:"sessionId"`
	CLI       string `json:"cli"`
	Sums
	Prefixes      int64     `json:"prefixDistinct"`
	LastRequestAt time.Time `json:"lastRequestAt"`
	// TTLRemaining is how long the provider's cache still holds what it was
	// last given; only Claude's is known.
	TTLRemaining *int64 `json:"ttlRemainingMs,omitzero"`
	PricesOf     string `json:"pricesAsOf"`
}

// Prefix is the cache state of one stable prefix.
type Prefix struct {
	Hash string `json:"stablePrefixHash"`
	Sums
	Breakdown   []Share   `json:"cliBreakdown"`
	FirstSeenAt time.Time `json:"firstSeenAt"`
	LastSeenAt  time.Time `json:"lastSeenAt"`
	PricesOf    string    `json:"pricesAsOf"`
}

// The kinds of sums. A conversation's prefixes are rows of their own, with the
// prefix in place of the model, so that they can be counted.
const (
	byMinute  = "minute"
	bySession = "session"
	byPrefix  = "prefix"
	inSession = "session-prefix"
)

// window is what the global state looks back on, in whole minutes.
const window = 24 * time.Hour

func minuteKey(t time.Time) string { return fmt.Sprintf("%011d", t.Unix()/60) }

// sum adds a finished request to the sums it belongs to.
func (r *Recorder) sum(tx *store.Tx, rec *Record) error {
	if rec.Usage == nil {
		return nil
	}
	u := *rec.Usage
	s := Sums{Requests: 1, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheCreationTokens: u.CacheCreationTokens, cost: micros(rec.CostUSD)}
	_, s.saved, _ = PriceTable().cost(rec.Model, u)
	s.Hits = min(1, u.CacheReadTokens)
	if rec.CacheBlocks > 0 {
		s.ExplicitRequests, s.ExplicitHits = 1, s.Hits
	}
	type place struct{ kind, key, model string }
	places := []place{{byMinute, minuteKey(rec.Ended), rec.Model}}
	if rec.SessionID != "" {
		places = append(places, place{bySession, rec.SessionID, rec.Model})
	}
	if rec.PrefixHash != "" {
		places = append(places, place{byPrefix, rec.PrefixHash, rec.Model})
		if rec.SessionID != "" {
			places = append(places, place{inSession, rec.SessionID, rec.PrefixHash})
		}
	}
	at := keyring.Micros(rec.Ended)
	for _, p := range places {
		_, err := tx.Exec(`INSERT INTO flight_sum (kind, key, agent, cli, model, requests, hits, input_tokens, output_tokens, cache_read, cache_creation,
			cost_micros, saved_micros, explicit, explicit_hits, first, latest) VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)
			ON CONFLICT (kind, key, agent, cli, model) DO UPDATE SET requests = flight_sum.requests + 1, hits = flight_sum.hits + excluded.hits,
			input_tokens = flight_sum.input_tokens + excluded.input_tokens, output_tokens = flight_sum.output_tokens + excluded.output_tokens,
			cache_read = flight_sum.cache_read + excluded.cache_read, cache_creation = flight_sum.cache_creation + excluded.cache_creation,
			cost_micros = flight_sum.cost_micros + excluded.cost_micros, saved_micros = flight_sum.saved_micros + excluded.saved_micros,
			explicit = flight_sum.explicit + excluded.explicit, explicit_hits = flight_sum.explicit_hits + excluded.explicit_hits, latest = excluded.latest`,
			p.kind, p.key, rec.Principal.Agent, rec.CLI, p.model, s.Hits, s.InputTokens, s.OutputTokens, s.CacheReadTokens, s.CacheCreationTokens,
			s.cost, s.saved, s.ExplicitRequests, s.ExplicitHits, at)
		if err != nil {
			return err
		}
	}
	return nil
}

// row is sums as they are stored.
type row struct {
	Share
	first, latest int64
}

// sums reads the totals of keys from one to another, by CLI and model.
func (r *Recorder) sums(tx *store.Tx, owner call.Principal, kind, from, to string) ([]row, error) {
	return store.All(tx, func(rows *store.Rows) (w row, err error) {
		err = rows.Scan(&w.CLI, &w.Model, &w.Requests, &w.Hits, &w.InputTokens, &w.OutputTokens, &w.CacheReadTokens, &w.CacheCreationTokens,
			&w.cost, &w.saved, &w.ExplicitRequests, &w.ExplicitHits, &w.first, &w.latest)
		return w, err
	}, `SELECT cli, model, CAST(sum(requests) AS BIGINT), CAST(sum(hits) AS BIGINT), CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT),
		CAST(sum(cache_read) AS BIGINT), CAST(sum(cache_creation) AS BIGINT), CAST(sum(cost_micros) AS BIGINT), CAST(sum(saved_micros) AS BIGINT),
		CAST(sum(explicit) AS BIGINT), CAST(sum(explicit_hits) AS BIGINT), min(first), max(latest)
		FROM flight_sum WHERE kind = $1 AND key >= $2 AND key <= $3 AND (agent = $4 OR $4 = '*') GROUP BY cli, model ORDER BY cli, model`, kind, from, to, owner.Agent)
}

// Global returns the last 24 hours of the owner's requests.
func (r *Recorder) Global(tx *store.Tx, owner call.Principal) (*Global, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	rows, err := r.sums(tx, owner, byMinute, minuteKey(now.Add(-window)), minuteKey(now.Add(time.Minute)))
	if err != nil {
		return nil, err
	}
	g := &Global{WindowHours: int(window.Hours()), PerCLI: []Share{}, PricesOf: PriceTable().AsOf}
	for _, w := range rows {
		g.add(&w.Sums)
		i := slices.IndexFunc(g.PerCLI, func(s Share) bool { return s.CLI == w.CLI })
		if i < 0 {
			i = len(g.PerCLI)
			g.PerCLI = append(g.PerCLI, Share{CLI: w.CLI})
		}
		g.PerCLI[i].add(&w.Sums)
	}
	g.settle()
	for i := range g.PerCLI {
		g.PerCLI[i].settle()
	}
	return g, nil
}

// Session returns the state of a conversation, nil if it had no request yet.
func (r *Recorder) Session(tx *store.Tx, owner call.Principal, id string, cfg Awareness) (*Session, error) {
	rows, err := r.sums(tx, owner, bySession, id, id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	s := &Session{SessionID: id, PricesOf: PriceTable().AsOf}
	var latest int64
	for _, w := range rows {
		s.add(&w.Sums)
		if w.latest >= latest {
			latest, s.CLI = w.latest, w.CLI
		}
	}
	s.settle()
	s.LastRequestAt = keyring.Time(latest)
	err = tx.QueryRow(`SELECT count(DISTINCT model) FROM flight_sum WHERE kind = $1 AND key = $2 AND (agent = $3 OR $3 = '*')`,
		inSession, id, owner.Agent).Scan(&s.Prefixes)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if left, known := cfg.remaining(s.CLI, s.LastRequestAt, now); known {
		ms := left.Milliseconds()
		s.TTLRemaining = &ms
	}
	return s, err
}

// Prefix returns the state of a stable prefix, nil if it was never used.
func (r *Recorder) Prefix(tx *store.Tx, owner call.Principal, hash string) (*Prefix, error) {
	rows, err := r.sums(tx, owner, byPrefix, hash, hash)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	p := &Prefix{Hash: hash, PricesOf: PriceTable().AsOf}
	first, latest := rows[0].first, rows[0].latest
	for _, w := range rows {
		p.add(&w.Sums)
		w.Share.settle()
		p.Breakdown = append(p.Breakdown, w.Share)
		first, latest = min(first, w.first), max(latest, w.latest)
	}
	p.settle()
	p.FirstSeenAt, p.LastSeenAt = keyring.Time(first), keyring.Time(latest)
	return p, nil
}

// Awareness is the [cache_awareness] section of the policy.
type Awareness struct {
	// TTL is how long Anthropic's cache holds a prefix: 5 minutes or an hour.
	TTL time.Duration
	// Warn adds cache_ttl_expiring_soon to answers.
	Warn bool
}

// soon is how near the end of the cache's life a warning is given.
const soon = 30 * time.Second

// remaining is how long a provider's cache holds after a request; only
// Anthropic's life is known.
func (a Awareness) remaining(cli string, last, now time.Time) (time.Duration, bool) {
	if cli != "claude" || last.IsZero() {
		return 0, false
	}
	ttl := a.TTL
	if ttl == 0 {
		ttl = 5 * time.Minute
	}
	return max(0, ttl-now.Sub(last)), true
}

// Warning is something an answer says beside its text.
type Warning struct {
	Code           string `json:"code"`
	TTLRemainingMS int64  `json:"ttlRemainingMs"`
	Message        string `json:"message"`
}

// Expiring warns that a conversation's cached prefix is about to be dropped by
// the provider, or just was, going by the request before this one. Nil if there
// is nothing to warn of or the operator does not want it.
func (r *Recorder) Expiring(tx *store.Tx, owner call.Principal, sessionID string, cfg Awareness) (*Warning, error) {
	if !cfg.Warn || sessionID == "" {
		return nil, nil
	}
	s, err := r.Session(tx, owner, sessionID, cfg)
	if err != nil || s == nil || s.TTLRemaining == nil || *s.TTLRemaining >= soon.Milliseconds() {
		return nil, err
	}
	w := &Warning{Code: "cache_ttl_expiring_soon", TTLRemainingMS: *s.TTLRemaining,
		Message: "the provider's cache of this conversation is about to expire: the next request may pay for it anew"}
	if *s.TTLRemaining == 0 {
		w.Message = "the provider's cache of this conversation has expired: this request paid for it anew"
	}
	return w, nil
}

// CacheURI takes a cache state's address apart: what is asked for (global,
// session or prefix) and which. Both spellings of the scheme are good.
func CacheURI(uri string) (what, key string, ok bool) {
	rest, found := strings.CutPrefix(uri, "cache_state://")
	if !found {
		rest, found = strings.CutPrefix(uri, "cache-state://")
	}
	what, key, _ = strings.Cut(rest, "/")
	switch what {
	case "global":
		return what, "", found && key == ""
	case "session", "prefix":
		return what, key, found && key != ""
	}
	return "", "", false
}

// maxDrop is how many records are dropped at once, so that others can write in
// between.
const maxDrop = 1000

// Drop removes what is older than a time, and sums that nobody can ask for any
// more. It says whether there is more to drop.
func (r *Recorder) Drop(tx *store.Tx, before time.Time) (more bool, err error) {
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	n, err := tx.Exec(`DELETE FROM flight WHERE id IN (SELECT id FROM flight WHERE time < $1 ORDER BY time LIMIT CAST($2 AS BIGINT))`, keyring.Micros(before), maxDrop)
	if err != nil {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM flight_waiting WHERE id NOT IN (SELECT id FROM flight)`); err != nil {
		return false, err
	}
	_, err = tx.Exec(`DELETE FROM flight_sum WHERE latest < $1 OR kind = 'minute' AND latest < $2`, keyring.Micros(before), keyring.Micros(now.Add(-2*window)))
	return n == maxDrop, err
}
