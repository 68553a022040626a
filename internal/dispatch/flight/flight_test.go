package flight_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

var coder = call.Principal{Agent: "coder", Session: "s1"}

// both runs a test on both databases with a recorder on each.
func both(t *testing.T, fn func(t *testing.T, s *store.Store, r *flight.Recorder)) {
	t.Helper()
	storetest.Both(t, func(t *testing.T, s *store.Store) { fn(t, s, newRecorder(t)) })
}

func newRecorder(t testing.TB) *flight.Recorder {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	redactor := content.NewRedactor(content.RedactorConfig{})
	return flight.New(keys, func() *content.Redactor { return redactor })
}

func write(t testing.TB, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func decide(t testing.TB, s *store.Store, r *flight.Recorder, rec flight.Record, prompt string) *flight.Record {
	t.Helper()
	var got flight.Record
	write(t, s, func(tx *store.Tx) error {
		got = rec
		return r.Decided(tx, &got, prompt)
	})
	return &got
}

func list(t testing.TB, s *store.Store, r *flight.Recorder, who call.Principal, f flight.Filter, cursor string, limit int) *flight.Page {
	t.Helper()
	var page *flight.Page
	err := s.Read(t.Context(), func(tx *store.Tx) (err error) {
		page, err = r.List(tx, who, f, cursor, limit)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestApprovalRow: a row has the seed's fields; the preview is 280 characters
// after redaction, the hash that of the prompt, and the prompt is nowhere.
func TestApprovalRow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		secret := "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
		prompt := "Refactor with " + secret + "\n and " + strings.Repeat("é ", 400)
		got := decide(t, s, r, flight.Record{Status: flight.Approved, Policy: "balanced", CLI: "claude", Operation: "claude_request", Score: 2,
			Reasons: []string{}, RequestedMCPServers: []string{"sqry", "exa"}, FullAuto: true, CorrelationID: "corr", Principal: coder}, prompt)
		row := list(t, s, r, coder, flight.Filter{}, "", 10).Approvals[0]
		if diff := cmp.Diff(got, row); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(row.ID, "appr-") || len([]rune(row.PromptPreview)) != 280 || strings.Contains(row.PromptPreview, secret) || strings.Contains(row.PromptPreview, "\n") {
			t.Errorf("id %s, preview of %d characters: %s", row.ID, len([]rune(row.PromptPreview)), row.PromptPreview)
		}
		if row.PromptSHA256 != flight.Hash(prompt) || row.State != flight.Started {
			t.Errorf("%+v", row)
		}
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			var body []byte
			if err := tx.QueryRow(`SELECT body FROM flight`).Scan(&body); err != nil {
				return err
			}
			if strings.Contains(string(body), "Refactor") {
				t.Error("the preview is stored in plain text")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestEditedRow: a row that was edited is not shown.
func TestEditedRow(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{`agent = 'other'`, `correlation = 'x'`, `prompt_hash = 'x'`, `time = time + 1`, `state = 'completed'`, `session = 'x'`} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
				decide(t, s, r, flight.Record{Status: flight.Denied, CLI: "codex", Principal: coder}, "p")
				write(t, s, func(tx *store.Tx) error {
					_, err := tx.Exec(`UPDATE flight SET ` + edit)
					return err
				})
				err := s.Read(t.Context(), func(tx *store.Tx) error {
					_, err := r.List(tx, flight.Operator, flight.Filter{}, "", 10)
					return err
				})
				if !errors.Is(err, flight.ErrForged) {
					t.Errorf("an edited row: %v", err)
				}
			})
		})
	}
}

// TestOwners: an agent sees its own requests, whatever it asks for.
func TestOwners(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		mine := decide(t, s, r, flight.Record{Status: flight.Approved, CLI: "claude", CorrelationID: "same", Principal: coder}, "a")
		other := decide(t, s, r, flight.Record{Status: flight.Approved, CLI: "claude", CorrelationID: "same", Principal: call.Principal{Agent: "other"}}, "a")
		for _, f := range []flight.Filter{{}, {CLI: "claude"}, {Hash: flight.Hash("a")}, {Principal: "coder"}} {
			if got := list(t, s, r, coder, f, "", 10).Approvals; len(got) != 1 || got[0].ID != mine.ID {
				t.Errorf("%+v: %d rows", f, len(got))
			}
		}
		for _, who := range []call.Principal{coder, {}} {
			if got := list(t, s, r, who, flight.Filter{Principal: "other"}, "", 10).Approvals; len(got) != 0 {
				t.Errorf("%v sees another's", who)
			}
		}
		if got := list(t, s, r, flight.Operator, flight.Filter{}, "", 10).Approvals; len(got) != 2 {
			t.Errorf("the operator sees %d", len(got))
		}
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			if _, err := r.Get(tx, coder, other.ID); !errors.Is(err, flight.ErrNotFound) {
				t.Errorf("another's record: %v", err)
			}
			if _, err := r.List(tx, coder, flight.Filter{}, other.ID, 10); !errors.Is(err, flight.ErrNotFound) {
				t.Errorf("another's cursor: %v", err)
			}
			same, err := r.Correlated(tx, coder, "same")
			if len(same) != 1 || same[0].ID != mine.ID {
				t.Errorf("correlated: %d", len(same))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestListLaw: every filter and page size lists what a plain look at all rows
// would, and no statement on the way reads more of them than an index bounds.
func TestListLaw(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		var db storetest.Driver
		opts.Wrap = db.Wrap
		s, r := storetest.Open(t, opts), newRecorder(t)
		rnd := rand.New(rand.NewPCG(1, 2))
		pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
		var all []*flight.Record
		for i := range 30 {
			// Several in one transaction have the same time: the id decides.
			var group []*flight.Record
			write(t, s, func(tx *store.Tx) error {
				group = nil
				for range 200 {
					rec := &flight.Record{Status: pick(flight.Approved, flight.Denied), Policy: pick("strict", "balanced"), CLI: pick("claude", "codex", "grok"),
						Score: rnd.IntN(4), Principal: call.Principal{Agent: pick("coder", "other")}}
					if i == 0 {
						rec.CLI = "old" // which nobody used since, for all kinds of requests
					}
					if err := r.Decided(tx, rec, pick("a", "b", "c")); err != nil {
						return err
					}
					group = append(group, rec)
				}
				return nil
			})
			all = append(all, group...)
		}
		slices.SortFunc(all, func(a, b *flight.Record) int {
			if c := b.Time.Compare(a.Time); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		asked := statements(&db)
		for range 80 {
			f := flight.Filter{CLI: pick("", "claude", "codex", "vibe", "old"), Status: pick("", "", flight.Approved, flight.Denied), Policy: pick("", "", "strict"),
				Principal: pick("", "coder", "other", "nobody")}
			if rnd.IntN(3) == 0 {
				f.Hash = flight.Hash(pick("a", "b", "z"))
			}
			if rnd.IntN(3) == 0 {
				low, high := rnd.IntN(4), rnd.IntN(5)
				f.MinScore, f.MaxScore = &low, &high
			}
			if rnd.IntN(3) == 0 {
				f.From = all[rnd.IntN(len(all))].Time
			}
			if rnd.IntN(3) == 0 {
				f.Until = all[rnd.IntN(len(all))].Time
			}
			who := flight.Operator
			if rnd.IntN(4) == 0 {
				who = coder
			}
			var want, got []string
			for _, rec := range all {
				if matches(rec, f) && (who == flight.Operator || rec.Principal.Agent == who.Agent) {
					want = append(want, rec.ID)
				}
			}
			size := 1 + rnd.IntN(400)
			for cursor := ""; ; {
				page := list(t, s, r, who, f, cursor, size)
				for _, rec := range page.Approvals {
					got = append(got, rec.ID)
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v by %s, %d a page (-want +got):\n%s", f, who, size, diff)
			}
		}
		db.Before(nil)
		bounded(t, s, asked())
	})
}

// statements collects the statements about flights that run from here on.
func statements(db *storetest.Driver) func() []string {
	var mu sync.Mutex
	seen := map[string]bool{}
	db.Before(func(query string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(query, "FROM flight") {
			seen[query] = true
		}
		return nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(seen))
	}
}

// zeros are as many arguments as a statement has.
func zeros(query string) (args []any) {
	for strings.Contains(query, fmt.Sprintf("$%d", len(args)+1)) {
		args = append(args, 0)
	}
	return args
}

// bounded holds SQLite's plans against what a list may do: flights are found by
// id, or by an index that ends with the time, from a place on.
func bounded(t *testing.T, s *store.Store, queries []string) {
	t.Helper()
	if s.Dialect() != store.SQLite {
		return
	}
	if len(queries) < 10 {
		t.Fatalf("only %d statements were seen", len(queries))
	}
	used := map[string]bool{}
	for _, q := range queries {
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			plan, err := store.All(tx, func(rows *store.Rows) (line string, err error) {
				var id, parent, unused int
				return line, rows.Scan(&id, &parent, &unused, &line)
			}, `EXPLAIN QUERY PLAN `+q, zeros(q)...)
			for _, line := range plan {
				how, found := strings.CutPrefix(line, "SEARCH flight USING ")
				switch {
				case !found && !strings.HasPrefix(line+" ", "SCAN flight "): // another table, or a step
				case found && (strings.Contains(how, "(id=?)") || strings.Contains(how, "time")):
					used[how] = true
				default:
					t.Errorf("%s\n%s", line, q)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for how := range used {
		t.Log(how)
	}
	if len(used) < 5 {
		t.Errorf("only %d ways to find flights were seen", len(used))
	}
}

func matches(r *flight.Record, f flight.Filter) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(f.CLI, r.CLI) && is(f.Status, r.Status) && is(f.Policy, r.Policy) && is(f.Principal, r.Principal.Agent) && is(f.Hash, r.PromptSHA256) &&
		(f.MinScore == nil || r.Score >= *f.MinScore) && (f.MaxScore == nil || r.Score <= *f.MaxScore) &&
		(f.From.IsZero() || !r.Time.Before(f.From)) && (f.Until.IsZero() || r.Time.Before(f.Until))
}

// TestCacheState: the sums by day, conversation and prefix have tokens, hashes
// and amounts, are the owner's, and count an end once.
func TestCacheState(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		run := func(who call.Principal, cli, model, session, prefix string, u flight.Usage) {
			t.Helper()
			rec := decide(t, s, r, flight.Record{Status: flight.Approved, CLI: cli, Principal: who, SessionID: session, PrefixHash: prefix, CacheBlocks: 1}, "words of the prompt")
			write(t, s, func(tx *store.Tx) error {
				return errors.Join(r.Runs(tx, rec.ID, flight.Run{JobID: "job_1", CallID: "c_1"}),
					r.Ended(tx, rec.ID, flight.End{State: "completed", Model: model, Usage: &u}), r.Ended(tx, rec.ID, flight.End{State: "failed", Usage: &u}))
			})
		}
		run(coder, "claude", "claude-sonnet-4", "sess", "h1", flight.Usage{InputTokens: 100, OutputTokens: 10, CacheCreationTokens: 1000})
		run(coder, "claude", "claude-sonnet-4", "sess", "h1", flight.Usage{InputTokens: 100, OutputTokens: 10, CacheReadTokens: 1_000_000})
		run(coder, "codex", "gpt-5", "", "h2", flight.Usage{InputTokens: 5})
		run(call.Principal{Agent: "other"}, "claude", "claude-sonnet-4", "sess", "h1", flight.Usage{InputTokens: 7, CacheReadTokens: 9})
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			g, err := r.Global(tx, coder)
			if err != nil {
				return err
			}
			if g.WindowHours != 24 || g.Requests != 3 || g.Hits != 1 || g.CacheReadTokens != 1_000_000 || len(g.PerCLI) != 2 || g.PerCLI[0].CLI != "claude" || g.PerCLI[0].Hits != 1 {
				t.Errorf("global %+v", g)
			}
			if g.SavingsUSD != 2.7 || g.PricesOf != "2026-06-13" || g.ExplicitRequests != 3 {
				t.Errorf("saved %v by prices of %s", g.SavingsUSD, g.PricesOf)
			}
			if all, err := r.Global(tx, flight.Operator); err != nil || all.Requests != 4 {
				t.Errorf("the operator's %+v, %v", all, err)
			}
			c, err := r.Session(tx, coder, "sess", flight.Awareness{})
			if err != nil {
				return err
			}
			if c.Requests != 2 || c.Hits != 1 || c.HitRate != 0.5 || c.Prefixes != 1 || c.TTLRemaining == nil || *c.TTLRemaining < 290_000 || *c.TTLRemaining > 300_000 {
				t.Errorf("session %+v", c)
			}
			p, err := r.Prefix(tx, coder, "h1")
			if err != nil {
				return err
			}
			if p.Requests != 2 || len(p.Breakdown) != 1 || p.Breakdown[0].Model != "claude-sonnet-4" || p.LastSeenAt.Before(p.FirstSeenAt) {
				t.Errorf("prefix %+v", p)
			}
			none, err := r.Prefix(tx, coder, "nowhere")
			if none != nil {
				t.Errorf("%+v", none)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestExpiring: the warning comes within 30 s of the end of the cache's life,
// for Claude, if the operator wants it.
func TestExpiring(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		for _, cli := range []string{"claude", "codex"} {
			rec := decide(t, s, r, flight.Record{Status: flight.Approved, CLI: cli, Principal: coder, SessionID: cli}, "p")
			write(t, s, func(tx *store.Tx) error {
				return r.Ended(tx, rec.ID, flight.End{State: "completed", Usage: &flight.Usage{InputTokens: 1}})
			})
		}
		for _, tt := range []struct {
			session string
			cfg     flight.Awareness
			want    string
		}{
			{"claude", flight.Awareness{Warn: true, TTL: time.Hour}, ""},
			{"claude", flight.Awareness{Warn: true, TTL: 29 * time.Second}, "cache_ttl_expiring_soon"},
			{"claude", flight.Awareness{Warn: true, TTL: time.Nanosecond}, "cache_ttl_expiring_soon"},
			{"claude", flight.Awareness{TTL: time.Nanosecond}, ""},
			{"codex", flight.Awareness{Warn: true, TTL: time.Nanosecond}, ""},
			{"nowhere", flight.Awareness{Warn: true}, ""},
		} {
			err := s.Read(t.Context(), func(tx *store.Tx) error {
				w, err := r.Expiring(tx, coder, tt.session, tt.cfg)
				got := ""
				if w != nil {
					got = w.Code
				}
				if got != tt.want {
					t.Errorf("%s %+v: %q, want %q", tt.session, tt.cfg, got, tt.want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPrices: the table can be read, has its date, and the longest name wins.
func TestPrices(t *testing.T) {
	t.Parallel()
	p := flight.PriceTable()
	if _, err := time.Parse(time.DateOnly, p.AsOf); err != nil || len(p.Models) < 10 {
		t.Fatalf("%+v, %v", p, err)
	}
	for model, want := range map[string]float64{"claude-opus-4-1": 15, "claude-sonnet-4-5": 3, "Claude-Haiku-4": 1, "grok-4.5-fast": 2, "grok-4-x": 1.25, "gpt-5-codex": 1.25} {
		if got, ok := p.Find(model); !ok || got.Input != want {
			t.Errorf("%s: %+v", model, got)
		}
	}
	if _, ok := p.Find("fake-model"); ok {
		t.Error("an unknown model has a price")
	}
}

// TestCacheURI: both spellings, and nothing else.
func TestCacheURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"cache_state://global": "global ", "cache-state://global": "global ", "cache_state://session/s-1": "session s-1", "cache-state://prefix/ab": "prefix ab",
		"cache_state://prefix/": "no", "cache_state://other": "no", "cache://global": "no", "global": "no", "cache_state://global/x": "no",
	} {
		what, key, ok := flight.CacheURI(uri)
		got := what + " " + key
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}

// TestDrop: retention takes what is old, and only that.
func TestDrop(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, r *flight.Recorder) {
		old := decide(t, s, r, flight.Record{Status: flight.Denied, CLI: "claude", Principal: coder}, "p")
		young := decide(t, s, r, flight.Record{Status: flight.Denied, CLI: "claude", Principal: coder}, "p")
		write(t, s, func(tx *store.Tx) error {
			more, err := r.Drop(tx, old.Time.Add(time.Microsecond))
			if more {
				t.Error("there is more to drop than there was")
			}
			return err
		})
		got := list(t, s, r, coder, flight.Filter{CLI: "claude"}, "", 10).Approvals
		if len(got) != 1 || got[0].ID != young.ID {
			t.Errorf("%v", fmt.Sprint(got))
		}
	})
}
