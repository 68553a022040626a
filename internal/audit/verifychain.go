package audit

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// chainCheck follows one node's chain of hashes. A record that does not fit raises a suspicion, and the record after
// it usually tells what happened: whether it was changed, inserted, or something before it removed.
type chainCheck struct {
	next  int64     // the place of the next record
	prev  tlog.Hash // the hash it must follow
	blind bool      // the record before is gone, and its hash with it
	// shift is by how much records have moved from their true place, after one was inserted or removed and the rest
	// renumbered.
	shift int64
	last  *suspect // the record before, if it did not fit
	swap  *swap    // the two records before, if the first of them seemed inserted
}

// swap is a suspect that seemed inserted, and the record after it: if the next one follows the suspect, the two have
// only changed places.
type swap struct {
	first  *suspect
	second *Record
}

// suspect is a record that does not fit its place.
type suspect struct {
	record  *Record
	prev    tlog.Hash // the hash it should have followed
	problem int       // its place in the report; -1 if the report is full
}

// skip goes past a record that is gone.
func (k *chainCheck) skip(seq int64) {
	k.next, k.blind, k.last = seq+1, true, nil
}

func (k *chainCheck) check(c *checker, r *Record) {
	switch {
	case r.Seq > k.next && !k.blind:
		c.blame(Missing, r, "records %d to %d of node %s, before this one, are gone", k.next, r.Seq-1, r.Node)
		k.blind, k.last = true, nil
	case r.Seq < k.next:
		c.blame(IndexDamaged, r, "record %d of node %s comes again, after %d", r.Seq, r.Node, k.next-1)
	}
	k.next = r.Seq + 1
	switch {
	case k.blind, k.follows(r, k.shift, k.prev):
		k.last, k.swap = nil, nil
	case k.swapped(c, r):
		k.last, k.swap = nil, nil
	case k.explained(c, r):
		k.last = nil
	default:
		k.suspect(c, r)
	}
	k.prev, k.blind = r.Hash, false
}

// follows says whether the record, moved back to its true place, comes right after the given hash.
func (k *chainCheck) follows(r *Record, shift int64, prev tlog.Hash) bool {
	moved := *r
	moved.pos -= shift
	return moved.leaf(prev) == r.Hash
}

// explained says whether the suspicion about the record before explains this one too.
func (k *chainCheck) explained(c *checker, r *Record) bool {
	if k.last == nil || k.last.problem < 0 {
		return false
	}
	p := &c.report.Problems[k.last.problem]
	suspected := k.last.record
	switch {
	case k.follows(r, k.shift, suspected.leaf(k.last.prev)):
		p.Detail = "its stored hash was changed"
	case k.follows(r, k.shift+1, k.last.prev):
		k.shift++
		k.swap = &swap{k.last, r}
		p.Fault, p.Detail = Inserted, "the record after it follows the one before it"
	case k.follows(r, k.shift-1, suspected.Hash):
		k.shift--
		p.Fault, p.Detail = Missing, "a record before this one was removed, and this one moved to its place"
	default:
		return false
	}
	return true
}

// swapped says whether the two records before this one have changed places.
func (k *chainCheck) swapped(c *checker, r *Record) bool {
	if k.swap == nil || !k.follows(r, k.shift-1, k.swap.first.record.Hash) {
		return false
	}
	k.shift--
	p := &c.report.Problems[k.swap.first.problem]
	p.Fault, p.Detail = Reordered, "it has changed places with the record after it"
	c.blame(Reordered, k.swap.second, "it has changed places with the record before it")
	return true
}

func (k *chainCheck) suspect(c *checker, r *Record) {
	s := suspect{record: r, prev: k.prev, problem: -1}
	if len(c.report.Problems) < maxProblems {
		s.problem = len(c.report.Problems)
		c.unverified = append(c.unverified, s)
	}
	c.blame(Changed, r, "its content does not fit its hash and the record before it")
	k.last, k.swap = &s, nil
}

// unravel looks for pairs of suspects that fit each other's place, and clears those that were only suspected because
// one of a pair stands before them.
func (c *checker) unravel() {
	innocent := make(map[int]bool)
	for i, a := range c.unverified {
		for _, b := range c.unverified[i+1:] {
			if a.record.Node != b.record.Node || !a.fits(b.record.pos, b.prev) || !b.fits(a.record.pos, a.prev) {
				continue
			}
			for _, pair := range [][2]suspect{{a, b}, {b, a}} {
				p := &c.report.Problems[pair[0].problem]
				p.Fault = Reordered
				p.Detail = fmt.Sprintf("it has changed places with record %d of node %s", pair[1].record.Seq, p.Node)
				for _, after := range c.unverified {
					if after.record.pos == pair[0].record.pos+1 && after.fits(after.record.pos, pair[1].record.Hash) {
						innocent[after.problem] = true
					}
				}
			}
		}
	}
	kept := c.report.Problems[:0]
	for i, p := range c.report.Problems {
		if !innocent[i] {
			kept = append(kept, p)
		}
	}
	c.report.Problems = kept
}

// fits says whether the suspect belongs in the given place, after the given hash.
func (s suspect) fits(pos int64, prev tlog.Hash) bool {
	moved := *s.record
	moved.pos = pos
	return moved.leaf(prev) == s.record.Hash
}
