package flight

import (
	"cmp"
	"database/sql"
	"errors"
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

// find returns the newest records that match. Whatever the filter, only a
// bounded number of rows that do not match is looked at.
func (r *Recorder) find(s *search) ([]listed, error) {
	f := &s.filter
	if f.CLI == "" && f.Status == "" && f.Policy == "" && f.MinScore == nil && f.MaxScore == nil && (f.Hash == "" || f.Principal == "") {
		// All of them, one agent's or one prompt's: there is an index in this order.
		switch {
		case f.Principal != "":
			return r.newest(s, `agent = $4 AND`, s.low, f.Principal)
		case f.Hash != "":
			return r.newest(s, `prompt_hash = $4 AND`, s.low, f.Hash)
		}
		return r.newest(s, ``, s.low)
	}
	matching, total, err := s.count()
	if err != nil || matching == 0 {
		return nil, err
	}
	if matching > fewClasses {
		for n := max(2*s.want*total/matching, leastLook); n <= mostLook; n *= 4 {
			found, done, err := r.glance(s, n)
			if err != nil || done {
				return found, err
			}
		}
	}
	if err := s.byClass(); err != nil {
		return nil, err
	}
	return r.load(s)
}

// newest returns the newest records under a condition, down to a time.
func (r *Recorder) newest(s *search, where string, from int64, args ...any) ([]listed, error) {
	text := fmt.Sprintf(`SELECT %s FROM flight WHERE %s (time, id) < ($1, $2) AND time >= $3 ORDER BY time DESC, id DESC LIMIT %d`, columns, where, s.want)
	return store.All(s.tx, r.looked, text, append([]any{s.high.time, s.high.id, from}, args...)...)
}

// Up to so many classes are asked one by one. Where there are more, chances are
// that the newest records have enough that match, so some are looked at first:
// twice as many as it takes if all classes are alike, and then more.
const (
	fewClasses          = 24
	leastLook, mostLook = 256, 4096
)

// glance looks at the n newest records and takes those of the classes that
// match. It says whether that was all there is to find.
func (r *Recorder) glance(s *search, n int) (found []listed, done bool, err error) {
	index, args := ``, []any{s.high.time, s.high.id, s.low}
	if s.filter.Hash != "" {
		index, args = `prompt_hash = $4 AND`, append(args, s.filter.Hash)
	}
	newest := fmt.Sprintf(`FROM flight WHERE %s (time, id) < ($1, $2) AND time >= $3 ORDER BY time DESC, id DESC LIMIT`, index)
	conditions, values := s.conditions(len(args))
	found, err = store.All(s.tx, r.looked, fmt.Sprintf(`SELECT %s FROM flight WHERE id IN (
			SELECT id FROM (SELECT id, time, class %s %d) AS newest WHERE class IN (SELECT id FROM flight_class WHERE %s) ORDER BY time DESC, id DESC LIMIT %d)
		ORDER BY time DESC, id DESC`, columns, newest, n, conditions, s.want), append(args, values...)...)
	if err != nil || len(found) == s.want {
		return found, true, err
	}
	var more int
	err = s.tx.QueryRow(fmt.Sprintf(`SELECT 1 %s 1 OFFSET %d`, newest, n), args...).Scan(&more)
	if errors.Is(err, sql.ErrNoRows) {
		return found, true, nil
	}
	return nil, false, err
}

// byClass merges the newest records of all classes that match, some classes at
// a time.
func (s *search) byClass() error {
	classes, err := s.classes()
	if err != nil {
		return err
	}
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
		for i, c := range group {
			args = append(args, c.id)
			fmt.Fprintf(&text, ` UNION ALL SELECT time, id FROM (SELECT time, id FROM flight WHERE class = $%d%s AND (time, id) < ($1, $2) AND time >= $3
				ORDER BY time DESC, id DESC LIMIT CAST($4 AS BIGINT)) AS c%d`, len(args), hash, i)
		}
		spots, err := store.All(s.tx, func(rows *store.Rows) (p spot, err error) { return p, rows.Scan(&p.time, &p.id) },
			`SELECT time, id FROM (`+strings.TrimPrefix(text.String(), " UNION ALL ")+`) AS newest ORDER BY time DESC, id DESC LIMIT CAST($4 AS BIGINT)`, args...)
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
	conditions, args := s.conditions(1)
	return store.All(s.tx, func(rows *store.Rows) (c class, err error) { return c, rows.Scan(&c.id, &c.latest) },
		`SELECT id, latest FROM flight_class WHERE latest >= $1 AND `+conditions+` ORDER BY latest DESC`, append([]any{s.low}, args...)...)
}

// count is how many classes match, and how many there are.
func (s *search) count() (matching, total int, err error) {
	conditions, args := s.conditions(1)
	err = s.tx.QueryRow(`SELECT (SELECT count(*) FROM flight_class WHERE latest >= $1 AND `+conditions+`), (SELECT count(*) FROM flight_class)`,
		append([]any{s.low}, args...)...).Scan(&matching, &total)
	return matching, total, err
}

// conditions are what a class must be, with what it is compared with, in a
// statement that has so many arguments before.
func (s *search) conditions(before int) (text string, args []any) {
	f := &s.filter
	where := []string{`1 = 1`}
	also := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, before+len(args)))
	}
	for _, c := range [][2]string{{"agent", f.Principal}, {"cli", f.CLI}, {"status", f.Status}, {"policy", f.Policy}} {
		if c[1] != "" {
			also(c[0]+` = $%d`, c[1])
		}
	}
	if f.MinScore != nil {
		also(`score >= $%d`, *f.MinScore)
	}
	if f.MaxScore != nil {
		also(`score <= $%d`, *f.MaxScore)
	}
	return strings.Join(where, ` AND `), args
}
