package audit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// maxList bounds a page.
const maxList = 1000

// Filter selects records: those that have every value given here. The zero value selects all.
type Filter struct {
	Node, Kind, Principal, Session, Surface, Operation, Level, Outcome, Correlation string

	CallID string
	// From and Until bound the time: From is the first that counts, Until the first that does not.
	From, Until time.Time
}

// Page is a part of a list, newest record first. Next is the cursor of the page after it, empty at the end. Records
// come without their bodies and hashes; Get has them.
type Page struct {
	Records []*Record
	Next    string
}

// columnNames are the filter's columns in the table, in the order of Record.columns. The node is not a column: its
// number is part of the position.
var columnNames = [...]string{"", "kind", "principal", "session", "surface", "operation", "level", "outcome", "correlation"}

func (f *Filter) columns() [9]string {
	return [...]string{f.Node, f.Kind, f.Principal, f.Session, f.Surface, f.Operation, f.Level, f.Outcome, f.Correlation}
}

// match judges one record. Whatever a search finds is judged again, so that neither a clash of posting keys nor a
// forged posting puts a record on the page.
func (f *Filter) match(r *Record) bool {
	have := r.columns()
	for i, want := range f.columns() {
		if want != "" && want != have[i] {
			return false
		}
	}
	return (f.CallID == "" || f.CallID == r.CallID) &&
		(f.From.IsZero() || !r.Time.Before(f.From)) &&
		(f.Until.IsZero() || r.Time.Before(f.Until))
}

// List returns the newest records that match, from the cursor of an earlier page on, or from the top if it is empty.
// The order is that of the log, with records that have no index yet before the others.
func (l *Log) List(ctx context.Context, f Filter, cursor string, limit int) (Page, error) {
	if limit <= 0 || limit > maxList {
		return Page{}, fmt.Errorf("audit: a list has 1 to %d records, not %d", maxList, limit)
	}
	var page Page
	err := l.store.Read(ctx, func(tx *store.Tx) error {
		s, err := l.newSearch(tx, f, cursor, limit+1) // one more, to see whether there is another page
		if err != nil {
			return err
		}
		records, err := s.find()
		if err != nil {
			return err
		}
		page = Page{Records: records}
		if len(records) > limit {
			page.Records = records[:limit]
			page.Next = records[limit-1].ID
		}
		return nil
	})
	return page, err
}

// search is one list in the making: it goes through the log from the newest record down until it has enough.
type search struct {
	tx     *store.Tx
	sets   *setCache
	rows   *rowCache
	filter Filter
	keys   []int64 // of the postings to intersect
	want   int
	found  []*Record
	// candidates are indexes, falling, whose records have all values but have not been read yet.
	candidates []int64
	at         run // where the last candidate that was read is

	head  head
	nodes []node
	names map[int64]string
	// What is still to be searched: records without an index below the cursor (all if before is nil, none if skip), and
	// indexes [low, high).
	skip      bool
	before    *Record
	low, high int64
}

func (l *Log) newSearch(tx *store.Tx, f Filter, cursor string, want int) (*search, error) {
	s := &search{tx: tx, sets: l.sets, rows: l.rows, filter: f, want: want, names: make(map[int64]string)}
	for column, value := range f.columns() {
		if value != "" {
			s.keys = append(s.keys, postingKey(column, value))
		}
	}
	var err error
	if s.head, err = readHead(tx); err != nil {
		return nil, err
	}
	if s.nodes, err = readNodes(tx); err != nil {
		return nil, err
	}
	for _, n := range s.nodes {
		s.names[n.no] = n.name
	}
	s.high = s.head.size
	if err := s.bound(); err != nil {
		return nil, err
	}
	if cursor == "" {
		return s, nil
	}
	micros, pos, err := parseID(cursor)
	if err != nil {
		return nil, err
	}
	index, err := indexOf(tx, pos)
	if err != nil {
		return nil, err
	}
	if index == Unsequenced {
		s.before = &Record{Time: time.UnixMicro(micros), pos: pos}
		return s, nil
	}
	s.skip, s.high = true, min(s.high, index)
	return s, nil
}

// bound turns the time range into a range of indexes that holds all of it. Stored with every 256 records is the
// highest time so far, which only rises; a record is behind it by no more than the lag.
func (s *search) bound() error {
	if !s.filter.From.IsZero() {
		n, found, err := s.firstBlock(s.filter.From.UnixMicro())
		if err != nil {
			return err
		}
		if !found {
			n = s.head.size >> blockBits // all full blocks are older
		}
		s.low = n << blockBits
	}
	if !s.filter.Until.IsZero() {
		n, found, err := s.firstBlock(s.filter.Until.UnixMicro() + s.head.lag)
		if err != nil {
			return err
		}
		if found {
			s.high = (n + 1) << blockBits
		}
	}
	return nil
}

// firstBlock finds the first full block by whose end a record had reached the time.
func (s *search) firstBlock(micros int64) (n int64, found bool, err error) {
	err = s.tx.QueryRow(`SELECT n FROM audit_subtree WHERE level = $1 AND latest >= $2 ORDER BY latest, n LIMIT 1`,
		subtreeStep, micros).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return n, err == nil, err
}

func (s *search) find() ([]*Record, error) {
	if s.filter.CallID != "" {
		return s.findCall()
	}
	if err := s.unsequenced(); err != nil {
		return nil, err
	}
	err := s.search()
	if err == nil {
		err = s.fetch()
	}
	if err != nil {
		return nil, err
	}
	return s.found, nil
}

// search goes through what no block holds yet, and then through the blocks; through everything where no posting helps.
func (s *search) search() error {
	if len(s.keys) == 0 {
		return s.searchAll(s.low)
	}
	sealed := s.head.size >> blockBits
	if err := s.searchAll(max(s.low, sealed<<blockBits)); err != nil {
		return err
	}
	for tier := 0; tier <= lastTier && !s.done(); tier++ {
		if err := s.searchTier(tier, sealed); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) done() bool { return len(s.found) >= s.want }

// take judges a record and keeps it if it matches.
func (s *search) take(r *Record) {
	r.Node = s.names[nodeOf(r.pos)]
	if !s.done() && s.filter.match(r) {
		s.found = append(s.found, r)
	}
}

// findCall is quick by nature: a call has few records, and an index of its own.
func (s *search) findCall() ([]*Record, error) {
	records, err := readRecords(s.tx, "", lean, `call_id = $1 AND call_id <> ''`, s.filter.CallID)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Index, err = indexOf(s.tx, r.pos); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(records, newestFirst)
	for _, r := range records {
		if r.Index == Unsequenced && !s.passed(r) || r.Index >= 0 && r.Index < s.high {
			s.take(r)
		}
	}
	return s.found, nil
}

// newestFirst is the order of a list.
func newestFirst(a, b *Record) int {
	if a.Index == Unsequenced && b.Index == Unsequenced {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.pos, a.pos))
	}
	if a.Index == Unsequenced || b.Index == Unsequenced {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Compare(b.Index, a.Index)
}

// passed says whether a record without an index stands before the cursor.
func (s *search) passed(r *Record) bool {
	return s.skip || s.before != nil && newestFirst(r, s.before) <= 0
}

// unsequenced searches the records that have no index yet, of which there are few.
func (s *search) unsequenced() error {
	if s.skip {
		return nil
	}
	var fresh []*Record
	for _, n := range s.nodes {
		limit := s.want
		if s.before != nil {
			limit = unlimited // some of them stand before the cursor
		}
		records, err := s.matching(position(n.no, n.sequenced)+1, position(n.no+1, 0), limit)
		if err != nil {
			return err
		}
		fresh = append(fresh, records...)
	}
	slices.SortFunc(fresh, newestFirst)
	for _, r := range fresh {
		if !s.passed(r) {
			s.take(r)
		}
	}
	return nil
}

// unlimited is a limit that no answer reaches.
const unlimited = 1 << 30

// matching reads the records of one node at positions [from, to) that match, newest first.
func (s *search) matching(from, to int64, limit int) ([]*Record, error) {
	if s.filter.Node != "" && s.filter.Node != s.names[nodeOf(from)] {
		return nil, nil
	}
	where := "pos >= $1 AND pos < $2"
	args := []any{from, to}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND %s $%d", condition, len(args))
	}
	for i, want := range s.filter.columns() {
		if want != "" && columnNames[i] != "" {
			add(columnNames[i]+" =", want)
		}
	}
	if !s.filter.From.IsZero() {
		add("time >=", s.filter.From.UnixMicro())
	}
	if !s.filter.Until.IsZero() {
		add("time <", s.filter.Until.UnixMicro())
	}
	args = append(args, limit)
	return readRecords(s.tx, "", lean, fmt.Sprintf("%s ORDER BY pos DESC LIMIT CAST($%d AS BIGINT)", where, len(args)), args...)
}
