package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// fetchPart is how many candidates are read with one statement.
const fetchPart = 64

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

// searchBlock adds the records that are in all sets of a block to the candidates, newest first. Candidates are read as
// soon as they may be enough, and otherwise together: records that match are often few and far between.
func (s *search) searchBlock(first int64, tier int, sets [][]byte) error {
	common := s.scratch[:1<<(tierBits(tier)-6)]
	for i := range common {
		common[i] = ^uint64(0)
	}
	for _, set := range sets {
		if set == nil || !common.intersect(set) {
			return nil
		}
	}
	for i := range common.descending {
		index := first + i
		if index >= s.high {
			continue
		}
		if index < s.low {
			break
		}
		s.candidates = append(s.candidates, index)
		if len(s.candidates) < fetchPart && len(s.candidates) < s.want-len(s.found) {
			continue
		}
		if err := s.fetch(); err != nil || s.done() {
			return err
		}
	}
	return nil
}

// fetch reads the candidates and takes those that match.
func (s *search) fetch() error {
	indexes := s.candidates
	s.candidates = nil
	if len(indexes) == 0 || s.done() {
		return nil
	}
	var at run
	args := make([]any, fetchPart)
	index := make(map[int64]int64, len(indexes))
	for i := range args {
		args[i] = int64(-1) // always as many, so that there is one text for the database to prepare
		if i >= len(indexes) {
			continue
		}
		if at.size == 0 || indexes[i] < at.first {
			runs, err := store.All(s.tx, scanRun,
				`SELECT first, size, pos FROM audit_run WHERE first <= $1 ORDER BY first DESC LIMIT 1`, indexes[i])
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				return fmt.Errorf("%w: no run holds index %d", ErrTampered, indexes[i])
			}
			at = runs[0]
		}
		pos := at.pos + indexes[i] - at.first
		args[i], index[pos] = pos, indexes[i]
	}
	records, err := readRecords(s.tx, "", lean, fetchWhere, args...)
	if err != nil {
		return err
	}
	for _, r := range records {
		r.Index = index[r.pos]
	}
	slices.SortFunc(records, newestFirst)
	for _, r := range records {
		s.take(r)
	}
	return nil
}

var fetchWhere = "pos IN (" + placeholders(1, fetchPart) + ")"

func placeholders(from, count int) string {
	marks := make([]string, count)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(marks, ", ")
}
