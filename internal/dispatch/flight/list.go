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

// Filter says which requests are listed. Empty fields match all.
type Filter struct {
	CLI, Status, Policy string
	// Hash is a prompt's.
	Hash string
	// Principal is an agent's name; owners see their own only, whatever it says.
	Principal string
	// MinScore and MaxScore bound the score; nil does not.
	MinScore, MaxScore *int
	// From is the first time that counts, Until the first that does not.
	From, Until time.Time
}

// Page is a part of a list, newest first. Next is the cursor of the page after
// it, "" at the end.
type Page struct {
	Approvals []*Record `json:"approvals"`
	Next      string    `json:"next,omitzero"`
}

// The bounds of a list.
const (
	DefaultList = 50
	MaxList     = 500
)

// spot is a place in the order of records.
type spot struct {
	time int64
	id   string
}

func (a spot) before(b spot) bool { return a.time < b.time || a.time == b.time && a.id < b.id }

// List returns the newest requests that match, from the cursor of an earlier
// page on.
func (r *Recorder) List(tx *store.Tx, owner call.Principal, f Filter, cursor string, limit int) (*Page, error) {
	if limit < 1 || limit > MaxList {
		return nil, fmt.Errorf("a list has 1 to %d requests, not %d", MaxList, limit)
	}
	if owner.Agent != Operator.Agent {
		if f.Principal != "" && f.Principal != owner.Agent || owner.Agent == "" {
			return &Page{Approvals: []*Record{}}, nil
		}
		f.Principal = owner.Agent
	}
	s := &search{tx: tx, filter: f, low: keyring.Micros(f.From), high: spot{1 << 62, ""}, want: limit + 1}
	if !f.Until.IsZero() {
		s.high = spot{keyring.Micros(f.Until), ""}
	}
	if cursor != "" {
		at, err := r.place(tx, owner, cursor)
		if err != nil {
			return nil, err
		}
		if at.before(s.high) {
			s.high = at
		}
	}
	spots, err := s.find()
	if err != nil {
		return nil, err
	}
	page := &Page{Approvals: []*Record{}}
	if len(spots) > limit {
		spots = spots[:limit]
		page.Next = spots[limit-1].id
	}
	page.Approvals, err = r.load(tx, spots)
	return page, err
}

// place is where a cursor's record is. Another's record is no cursor.
func (r *Recorder) place(tx *store.Tx, owner call.Principal, id string) (spot, error) {
	rec, err := r.Get(tx, owner, id)
	if err != nil {
		return spot{}, fmt.Errorf("the cursor is not one of this list: %w", err)
	}
	return spot{keyring.Micros(rec.Time), rec.ID}, nil
}

// load reads the records of a page in one query.
func (r *Recorder) load(tx *store.Tx, spots []spot) ([]*Record, error) {
	out := make([]*Record, 0, len(spots))
	if len(spots) == 0 {
		return out, nil
	}
	args := make([]any, len(spots))
	var in strings.Builder
	for i, s := range spots {
		args[i] = s.id
		fmt.Fprintf(&in, ",$%d", i+1)
	}
	list, err := store.All(tx, func(rows *store.Rows) (*Record, error) { return r.scan(rows) },
		`SELECT `+columns+` FROM flight WHERE id IN (`+in.String()[1:]+`)`, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b *Record) int {
		if (spot{keyring.Micros(a.Time), a.ID}).before(spot{keyring.Micros(b.Time), b.ID}) {
			return 1
		}
		return -1
	})
	return append(out, list...), nil
}

// search is one list in the making.
type search struct {
	tx     *store.Tx
	filter Filter
	low    int64 // first time that counts
	high   spot  // first place that does not
	want   int
	found  []spot // falling
}

// find returns the places of the newest records that match.
func (s *search) find() ([]spot, error) {
	f := &s.filter
	if f.CLI == "" && f.Status == "" && f.Policy == "" && f.Hash == "" && f.MinScore == nil && f.MaxScore == nil {
		// All of them, or all of one agent's: there is an index in this order.
		if f.Principal == "" {
			return s.query(``)
		}
		return s.query(`agent = $4 AND `, f.Principal)
	}
	classes, err := s.classes()
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		// The classes are in the order of their newest record: once that is older
		// than all that was found, so is the rest.
		if len(s.found) == s.want && c.newest <= s.found[s.want-1].time {
			break
		}
		var spots []spot
		if f.Hash != "" {
			spots, err = s.query(`class = $4 AND prompt_hash = $5 AND `, c.id, f.Hash)
		} else {
			spots, err = s.query(`class = $4 AND `, c.id)
		}
		if err != nil {
			return nil, err
		}
		s.merge(spots)
	}
	return s.found, nil
}

func (s *search) query(where string, args ...any) ([]spot, error) {
	low := s.low
	if len(s.found) == s.want {
		low = max(low, s.found[s.want-1].time)
	}
	args = append([]any{s.high.time, s.high.id, low}, args...)
	args = append(args, s.want)
	return store.All(s.tx, func(rows *store.Rows) (p spot, err error) { return p, rows.Scan(&p.time, &p.id) },
		fmt.Sprintf(`SELECT time, id FROM flight WHERE %s (time, id) < ($1, $2) AND time >= $3 ORDER BY time DESC, id DESC LIMIT CAST($%d AS BIGINT)`, where, len(args)), args...)
}

// merge keeps the newest of what was found and what is added.
func (s *search) merge(spots []spot) {
	s.found = append(s.found, spots...)
	slices.SortFunc(s.found, func(a, b spot) int {
		switch {
		case a == b:
			return 0
		case b.before(a):
			return -1
		}
		return 1
	})
	s.found = s.found[:min(len(s.found), s.want)]
}

type class struct{ id, newest int64 }

// classes are those that match and have a record in the time that counts, the
// one with the newest first.
func (s *search) classes() ([]class, error) {
	f := &s.filter
	args := []any{s.high.time, s.low}
	var where strings.Builder
	also := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&where, condition, len(args))
	}
	for _, c := range [][2]string{{"agent", f.Principal}, {"cli", f.CLI}, {"status", f.Status}, {"policy", f.Policy}} {
		if c[1] != "" {
			also(` AND `+c[0]+` = $%d`, c[1])
		}
	}
	if f.MinScore != nil {
		also(` AND score >= $%d`, *f.MinScore)
	}
	if f.MaxScore != nil {
		also(` AND score <= $%d`, *f.MaxScore)
	}
	hash := ``
	if f.Hash != "" {
		args = append(args, f.Hash)
		hash = fmt.Sprintf(` AND prompt_hash = $%d`, len(args))
	}
	newest := `latest`
	if s.high.time < 1<<62 || f.Hash != "" {
		newest = `(SELECT coalesce(max(time), -1) FROM flight WHERE flight.class = flight_class.id AND time <= $1` + hash + `)`
	}
	list, err := store.All(s.tx, func(rows *store.Rows) (c class, err error) { return c, rows.Scan(&c.id, &c.newest) },
		`SELECT id, newest FROM (SELECT id, `+newest+` AS newest FROM flight_class WHERE latest >= $2 AND CAST($1 AS BIGINT) > 0`+where.String()+`) AS c WHERE newest >= $2 ORDER BY newest DESC`, args...)
	return list, err
}
