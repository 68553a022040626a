package audit

import (
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// fetchPart is how many candidates are read with one statement; a few are read with a smaller one.
const (
	fetchPart  = 64
	fetchSmall = 16
)

// searchTier intersects the postings of the blocks of one tier, from the newest block down.
func (s *search) searchTier(tier int, sealed int64) error {
	from, to := blocksOf(tier, sealed)
	from = max(from, s.low>>tierBits(tier))
	to = min(to, (s.high-1)>>tierBits(tier)+1)
	for ; to > from && !s.done(); to -= fan {
		blocks, err := s.sets.load(s.tx, tier, max(from, to-fan), to, s.keys)
		if err != nil {
			return err
		}
		for i, sets := range blocks {
			if err := s.searchBlock((to-1-int64(i))<<tierBits(tier), tier, sets); err != nil || s.done() {
				return err
			}
		}
	}
	return nil
}

// searchBlock considers the records that are in all sets of a block, newest first.
func (s *search) searchBlock(first int64, tier int, sets [][]byte) (err error) {
	common(sets, tier, func(i int64) (more bool) {
		more, err = s.consider(first + i)
		return more && err == nil
	})
	return err
}

// searchAll considers every record from an index on.
func (s *search) searchAll(from int64) error {
	for index := s.high - 1; index >= from && !s.done(); index-- {
		if more, err := s.consider(index); err != nil || !more {
			return err
		}
	}
	return nil
}

// consider adds an index to the candidates, if it is in the range, and says whether lower ones are wanted. Candidates
// are read as soon as they may be enough, and otherwise together: records that match are often few and far between.
func (s *search) consider(index int64) (more bool, err error) {
	if index >= s.high || index < s.low {
		return index >= s.high, nil
	}
	s.candidates = append(s.candidates, index)
	if len(s.candidates) < fetchPart && len(s.candidates) < s.want-len(s.found) {
		return true, nil
	}
	err = s.fetch()
	return !s.done(), err
}

// fetch reads the candidates and takes those that match.
func (s *search) fetch() error {
	indexes := s.candidates
	s.candidates = s.candidates[:0]
	if len(indexes) == 0 || s.done() {
		return nil
	}
	records := make([]*Record, len(indexes))
	var missing []any
	place := make(map[int64]int)
	for i, index := range indexes {
		if s.at.size == 0 || index < s.at.first {
			var err error
			if s.at, err = runAt(s.tx, index); err != nil {
				return err
			}
		}
		pos := s.at.pos + index - s.at.first
		if records[i] = s.rows.get(pos); records[i] == nil {
			missing, place[pos] = append(missing, pos), i
		}
	}
	if err := s.fetchRows(missing, func(r *Record) { records[place[r.pos]] = r }); err != nil {
		return err
	}
	for i, r := range records {
		if r == nil {
			return fmt.Errorf("%w: no record has index %d", ErrTampered, indexes[i])
		}
		r.Index = indexes[i]
		s.take(r)
	}
	return nil
}

// fetchRows reads the records at the positions from the database.
func (s *search) fetchRows(positions []any, found func(*Record)) error {
	if len(positions) == 0 {
		return nil
	}
	part := fetchPart
	if len(positions) <= fetchSmall {
		part = fetchSmall
	}
	for len(positions) < part { // always as many, so that there are two texts for the database to prepare
		positions = append(positions, int64(-1))
	}
	records, err := readRecords(s.tx, "", lean, fetchWhere[part], positions...)
	for _, r := range records {
		s.rows.put(r)
		found(r)
	}
	return err
}

// runAt finds the run that holds an index.
func runAt(tx *store.Tx, index int64) (run, error) {
	runs, err := store.All(tx, scanRun,
		`SELECT first, size, pos FROM audit_run WHERE first <= $1 ORDER BY first DESC LIMIT 1`, index)
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("%w: no run holds index %d", ErrTampered, index)
	}
	if err != nil {
		return run{}, err
	}
	return runs[0], nil
}

var fetchWhere = map[int]string{
	fetchSmall: "pos IN (" + placeholders(1, fetchSmall) + ")",
	fetchPart:  "pos IN (" + placeholders(1, fetchPart) + ")",
}

func placeholders(from, count int) string {
	marks := make([]string, count)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(marks, ", ")
}
