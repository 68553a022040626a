package flight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

	raw []jsontext.Value // of the records
}

// MarshalJSONTo writes the records as they are stored, which is their JSON.
func (p *Page) MarshalJSONTo(enc *jsontext.Encoder) error {
	out := struct {
		Approvals []jsontext.Value `json:"approvals"`
		Next      string           `json:"next,omitzero"`
	}{p.raw, p.Next}
	if out.Approvals == nil {
		out.Approvals = []jsontext.Value{}
	}
	return json.MarshalEncode(enc, &out)
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
	found, err := r.find(s)
	if err != nil {
		return nil, err
	}
	page := &Page{Approvals: []*Record{}}
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].rec.ID
	}
	for _, f := range found {
		page.Approvals, page.raw = append(page.Approvals, f.rec), append(page.raw, f.raw)
	}
	return page, nil
}

// listed is a record of a page with its JSON.
type listed struct {
	rec *Record
	raw jsontext.Value
}

func (r *Recorder) looked(rows *store.Rows) (l listed, err error) {
	l.rec, l.raw, err = r.look(rows)
	return l, err
}

// place is where a cursor's record is. Another's record is no cursor.
func (r *Recorder) place(tx *store.Tx, owner call.Principal, id string) (spot, error) {
	rec, err := r.Get(tx, owner, id)
	if err != nil {
		return spot{}, fmt.Errorf("the cursor is not one of this list: %w", err)
	}
	return spot{keyring.Micros(rec.Time), rec.ID}, nil
}

// load reads the records that were found in one query. It always names as many
// as are wanted, the last one again and again, so that the statement is the
// same and need not be planned each time.
func (r *Recorder) load(s *search) ([]listed, error) {
	if len(s.found) == 0 {
		return nil, nil
	}
	args := make([]any, s.want)
	var in strings.Builder
	for i := range args {
		args[i] = s.found[min(i, len(s.found)-1)].id
		fmt.Fprintf(&in, ",$%d", i+1)
	}
	list, err := store.All(s.tx, r.looked, `SELECT `+columns+` FROM flight WHERE id IN (`+in.String()[1:]+`)`, args...)
	slices.SortFunc(list, func(a, b listed) int {
		return cmp.Or(b.rec.Time.Compare(a.rec.Time), cmp.Compare(b.rec.ID, a.rec.ID))
	})
	return list, err
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

// find returns the newest records that match.
func (r *Recorder) find(s *search) ([]listed, error) {
	f := &s.filter
	if f.CLI == "" && f.Status == "" && f.Policy == "" && f.Hash == "" && f.MinScore == nil && f.MaxScore == nil {
		// All of them, or all of one agent's: there is an index in this order.
		text, args := s.query(columns, ``, s.want)
		if f.Principal != "" {
			text, args = s.query(columns, `agent = $4 AND `, s.want, f.Principal)
		}
		return store.All(s.tx, r.looked, text, args...)
	}
	classes, err := s.classes()
	if err != nil || len(classes) == 0 {
		return nil, err
	}
	done := false
	if len(classes) > fewClasses || f.Hash != "" {
		if done, err = s.scan(classes); err != nil {
			return nil, err
		}
	}
	if !done {
		if err := s.byClass(classes); err != nil {
			return nil, err
		}
	}
	return r.load(s)
}

// Up to so many classes are asked one by one. Where there are more, chances are
// that the newest records have enough that match, so some are looked at first.
const (
	fewClasses = 10
	firstLook  = 256
)

// scan looks at the newest records and takes those of the classes. It says
// whether that was all there is to find.
func (s *search) scan(classes []class) (done bool, err error) {
	wanted := make(map[int64]bool, len(classes))
	for _, c := range classes {
		wanted[c.id] = true
	}
	text, args := s.query(`time, id, class`, ``, firstLook)
	if s.filter.Hash != "" {
		text, args = s.query(`time, id, class`, `prompt_hash = $4 AND `, firstLook, s.filter.Hash)
	}
	seen := 0
	found, err := store.All(s.tx, func(rows *store.Rows) (p spot, err error) {
		var class int64
		seen++
		if err = rows.Scan(&p.time, &p.id, &class); !wanted[class] {
			p = spot{}
		}
		return p, err
	}, text, args...)
	found = slices.DeleteFunc(found, func(p spot) bool { return p == spot{} })
	if err != nil || len(found) < s.want && seen == firstLook {
		return false, err
	}
	s.found = found[:min(len(found), s.want)]
	return true, nil
}

// byClass merges the newest records of all classes that match, some classes at
// a time.
func (s *search) byClass(classes []class) error {
	for group := range slices.Chunk(classes, fewClasses) {
		// The classes are in the order of their latest time: once that is before
		// all that was found, so are the records of the rest.
		if len(s.found) == s.want && group[0].latest <= s.found[s.want-1].time {
			break
		}
		args := []any{s.high.time, s.high.id, s.least(), s.want}
		hash := ``
		if s.filter.Hash != "" {
			args, hash = append(args, s.filter.Hash), ` AND prompt_hash = $5`
		}
		var text strings.Builder
		for i := range fewClasses { // always as many, as in load
			id := int64(-1)
			if i < len(group) {
				id = group[i].id
			}
			args = append(args, id)
			fmt.Fprintf(&text, ` UNION ALL SELECT time, id FROM (SELECT time, id FROM flight WHERE class = $%d%s AND (time, id) < ($1, $2) AND time >= $3
				ORDER BY time DESC, id DESC LIMIT CAST($4 AS BIGINT)) AS c%d`, len(args), hash, i)
		}
		spots, err := store.All(s.tx, func(rows *store.Rows) (p spot, err error) { return p, rows.Scan(&p.time, &p.id) },
			strings.TrimPrefix(text.String(), " UNION ALL "), args...)
		if err != nil {
			return err
		}
		s.merge(spots)
	}
	return nil
}

// least is the first time that a record must have to be among those wanted.
func (s *search) least() int64 {
	if len(s.found) == s.want {
		return max(s.low, s.found[s.want-1].time)
	}
	return s.low
}

// query is the statement for the newest records of one index.
func (s *search) query(what, where string, limit int, args ...any) (string, []any) {
	args = append([]any{s.high.time, s.high.id, s.low}, args...)
	args = append(args, limit)
	return fmt.Sprintf(`SELECT %s FROM flight WHERE %s (time, id) < ($1, $2) AND time >= $3 ORDER BY time DESC, id DESC LIMIT CAST($%d AS BIGINT)`, what, where, len(args)), args
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

// class is a row of flight_class: none of its records is younger than latest.
type class struct{ id, latest int64 }

// classes are those that match and may have a record in the time that counts,
// the one with the latest first.
func (s *search) classes() ([]class, error) {
	f := &s.filter
	args := []any{s.low}
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
	return store.All(s.tx, func(rows *store.Rows) (c class, err error) { return c, rows.Scan(&c.id, &c.latest) },
		`SELECT id, latest FROM flight_class WHERE latest >= $1`+where.String()+` ORDER BY latest DESC`, args...)
}
