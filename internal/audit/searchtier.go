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
		blocks, err := s.readBlocks(tier, max(from, to-fan), to)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if err := s.fetch(b); err != nil || s.done() {
				return err
			}
		}
	}
	return nil
}

// candidates are the records of one block that have all values.
type candidates struct {
	first int64
	set   bitset
}

// readBlocks asks for the postings of all values at once; the database leaves out the blocks that lack one of them.
func (s *search) readBlocks(tier int, from, to int64) ([]candidates, error) {
	var keys []int64
	for column, value := range s.filter.columns() {
		if value != "" {
			keys = append(keys, postingKey(column, value))
		}
	}
	args := []any{tier}
	for _, key := range keys {
		args = append(args, key)
	}
	for i := range int64(fan) { // always sixteen, so that there is one text for the database to prepare
		block := to - 1 - i
		if block < from {
			block = -1
		}
		args = append(args, block)
	}
	return store.All(s.tx, func(rows *store.Rows) (candidates, error) {
		var block int64
		data := make([][]byte, len(keys))
		dest := []any{&block}
		for i := range data {
			dest = append(dest, &data[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return candidates{}, err
		}
		return intersectAll(tier, block, data)
	}, blocksQuery(len(keys)), args...)
}

// blocksQuery is the text for a number of keys: $1 is the tier, then come the keys, then sixteen blocks.
func blocksQuery(keys int) string {
	columns, tables := "p0.block", "audit_posting p0"
	where := "p0.tier = $1 AND p0.key = $2"
	for i := range keys {
		columns += fmt.Sprintf(", p%d.bits", i)
		if i > 0 {
			// CROSS JOIN keeps SQLite from looking for another order than the one written.
			tables += fmt.Sprintf(" CROSS JOIN audit_posting p%d", i)
			where += fmt.Sprintf(" AND p%d.tier = $1 AND p%d.block = p0.block AND p%d.key = $%d", i, i, i, i+2)
		}
	}
	blocks := make([]string, fan)
	for i := range blocks {
		blocks[i] = fmt.Sprintf("$%d", keys+2+i)
	}
	return "SELECT " + columns + " FROM " + tables + " WHERE " + where +
		" AND p0.block IN (" + strings.Join(blocks, ", ") + ") ORDER BY p0.block DESC"
}

func intersectAll(tier int, block int64, data [][]byte) (candidates, error) {
	c := candidates{first: block << tierBits(tier)}
	for _, d := range data {
		set := newBitset(tier)
		if err := set.decodeInto(d, tier, 0); err != nil {
			return c, err
		}
		if c.set == nil {
			c.set = set
			continue
		}
		c.set.intersect(set)
	}
	return c, nil
}

// fetch reads the candidates that lie in range, newest first, until the search has enough.
func (s *search) fetch(c candidates) error {
	c.set.clip(s.low-c.first, s.high-c.first)
	var batch []int64
	var err error
	for i := range c.set.descending {
		if batch = append(batch, c.first+i); len(batch) < fetchPart && len(batch) < s.want-len(s.found) {
			continue
		}
		if err = s.fetchBatch(batch); err != nil || s.done() {
			return err
		}
		batch = batch[:0]
	}
	return s.fetchBatch(batch)
}

// fetchBatch reads the records at the given indexes, which fall.
func (s *search) fetchBatch(indexes []int64) error {
	if len(indexes) == 0 {
		return nil
	}
	var at run
	args := make([]any, fetchPart)
	index := make(map[int64]int64, len(indexes))
	for i := range args {
		args[i] = int64(-1)
		if i >= len(indexes) {
			continue
		}
		if indexes[i] < at.first || at.size == 0 {
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
	records, err := readRecords(s.tx, "", leanColumns, fetchWhere, args...)
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

var fetchWhere = func() string {
	marks := make([]string, fetchPart)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	return "pos IN (" + strings.Join(marks, ", ") + ")"
}()
