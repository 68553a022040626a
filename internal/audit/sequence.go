package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// stepSize is how many records one step takes into the tree. Others wait for the writer meanwhile.
const stepSize = 4096

var (
	// ErrTampered says that stored hashes do not fit together. The sequencer then adds nothing.
	ErrTampered = errors.New("audit: the log has been tampered with")
	// errFenced says that another node extended the tree first.
	errFenced = errors.New("audit: another node was faster")
)

// head is the tree as stored.
type head struct {
	origin string
	size   int64
	root   tlog.Hash
	latest int64 // the highest time of a record in the tree, in microseconds
	lag    int64 // the most by which a record was behind that when it was sequenced
}

func readHead(tx *store.Tx) (h head, err error) {
	var root []byte
	err = tx.QueryRow(`SELECT origin, size, root, latest, lag FROM audit_head`).
		Scan(&h.origin, &h.size, &root, &h.latest, &h.lag)
	if err != nil {
		return h, err
	}
	h.root, err = toHash(root)
	return h, err
}

// tail is what the sequencer keeps of the tree from one step to the next: its head, its right edge, and the postings
// of the block that is being filled.
type tail struct {
	head     head
	frontier frontier
	open     postings
}

// loadTail reads the tail of the tree and checks that it hashes to its head.
func loadTail(tx *store.Tx, h head) (*tail, error) {
	f, err := loadFrontier(tx, h.size)
	if err != nil {
		return nil, err
	}
	if f.root() != h.root {
		return nil, fmt.Errorf("%w: the tree of %d records does not hash to its root", ErrTampered, h.size)
	}
	t := &tail{head: h, frontier: f, open: postings{}}
	records, err := readIndexes(tx, h.size&^(blockSize-1), h.size)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		t.open.add(r, r.Index&(blockSize-1))
	}
	return t, nil
}

// step is one extension of the tree, computed and not yet stored.
type step struct {
	from     head
	to       *tail
	runs     []run
	nodes    map[int64]int64 // node number: how many of its records are sequenced afterwards
	subtrees []fullSubtree
	blocks   []fullBlock
}

type fullSubtree struct {
	level  int
	n      int64
	hash   tlog.Hash
	latest int64
}

type fullBlock struct {
	n    int64
	sets []encoded
}

// extend computes the tree with the records added, in their order.
func (t *tail) extend(records []*Record) *step {
	to := &tail{head: t.head, frontier: t.frontier.clone(), open: make(postings, len(t.open))}
	for key, set := range t.open {
		to.open[key] = slices.Clone(set)
	}
	s := &step{from: t.head, to: to, nodes: make(map[int64]int64)}
	for _, r := range records {
		s.add(r)
	}
	to.head.size, to.head.root = to.frontier.size, to.frontier.root()
	return s
}

func (s *step) add(r *Record) {
	t := s.to
	r.Index = t.frontier.size
	if n := len(s.runs); n > 0 && s.runs[n-1].pos+s.runs[n-1].size == r.pos {
		s.runs[n-1].size++
	} else {
		s.runs = append(s.runs, run{first: r.Index, size: 1, pos: r.pos})
	}
	s.nodes[nodeOf(r.pos)] = r.Seq
	micros := r.Time.UnixMicro()
	t.head.latest = max(t.head.latest, micros)
	t.head.lag = max(t.head.lag, t.head.latest-micros)
	t.frontier.add(r.Hash, func(level int, n int64, hash tlog.Hash) {
		s.subtrees = append(s.subtrees, fullSubtree{level, n, hash, t.head.latest})
	})
	t.open.add(r, r.Index&(blockSize-1))
	if t.frontier.size&(blockSize-1) == 0 {
		s.blocks = append(s.blocks, fullBlock{r.Index >> blockBits, t.open.encode()})
		clear(t.open)
	}
}

// store writes the step, unless the tree is no longer the one it started from.
func (s *step) store(tx *store.Tx) error {
	h := s.to.head
	n, err := tx.Exec(`UPDATE audit_head SET size = $1, root = $2, latest = $3, lag = $4 WHERE size = $5 AND root = $6`,
		h.size, h.root[:], h.latest, h.lag, s.from.size, s.from.root[:])
	if err != nil {
		return err
	}
	if n != 1 {
		return errFenced
	}
	for _, node := range slices.Sorted(maps.Keys(s.nodes)) {
		if _, err := tx.Exec(`UPDATE audit_node SET sequenced = $1 WHERE no = $2`, s.nodes[node], node); err != nil {
			return err
		}
	}
	if err := s.storeRuns(tx); err != nil {
		return err
	}
	for _, t := range s.subtrees {
		_, err := tx.Exec(`INSERT INTO audit_subtree (level, n, hash, latest) VALUES ($1, $2, $3, $4)`,
			t.level, t.n, t.hash[:], t.latest)
		if err != nil {
			return err
		}
	}
	for _, b := range s.blocks {
		if err := sealBlock(tx, b.n, b.sets); err != nil {
			return err
		}
	}
	store.Notify(tx, TopicSequenced, "")
	return nil
}

// storeRuns makes the last stored run longer where the first new one continues it: a log with one writer is one run.
func (s *step) storeRuns(tx *store.Tx) error {
	for i, r := range s.runs {
		if i == 0 {
			n, err := tx.Exec(`UPDATE audit_run SET size = size + $1 WHERE first + size = $2 AND pos + size = $3
				AND first = (SELECT max(first) FROM audit_run)`, r.size, r.first, r.pos)
			if err != nil {
				return err
			}
			if n == 1 {
				continue
			}
		}
		_, err := tx.Exec(`INSERT INTO audit_run (first, size, pos) VALUES ($1, $2, $3)`, r.first, r.size, r.pos)
		if err != nil {
			return err
		}
	}
	return nil
}

// unsequenced reads up to limit records that are not in the tree yet, merged by time; those of one node stay in the
// order of their chain. A hole in a chain is damage: nothing after it may be sequenced. upTo is how many of each node's
// records are in the tree.
func unsequenced(tx *store.Tx, limit int) (all []*Record, upTo map[int64]int64, err error) {
	nodes, err := readNodes(tx)
	if err != nil {
		return nil, nil, err
	}
	var queues [][]*Record
	upTo = make(map[int64]int64, len(nodes))
	for _, n := range nodes {
		upTo[n.no] = n.sequenced
		records, err := readRecords(tx, n.name, hashed, `pos > $1 AND pos < $2 ORDER BY pos LIMIT CAST($3 AS BIGINT)`,
			position(n.no, n.sequenced), position(n.no+1, 0), limit)
		if err != nil {
			return nil, nil, err
		}
		for i, r := range records {
			if r.Seq != n.sequenced+int64(i)+1 {
				return nil, nil, fmt.Errorf("%w: record %d of node %s is missing", ErrTampered, n.sequenced+int64(i)+1, n.name)
			}
		}
		if len(records) > 0 {
			queues = append(queues, records)
		}
	}
	return mergeByTime(queues, limit), upTo, nil
}

func mergeByTime(queues [][]*Record, limit int) []*Record {
	var merged []*Record
	for len(queues) > 0 && len(merged) < limit {
		first := 0
		for i, q := range queues {
			if q[0].Time.Before(queues[first][0].Time) {
				first = i
			}
		}
		merged = append(merged, queues[first][0])
		if queues[first] = queues[first][1:]; len(queues[first]) == 0 {
			queues = slices.Delete(queues, first, first+1)
		}
	}
	return merged
}

// Step takes what waits into the tree, up to a limit, and says how many records that were. It is safe to call from
// several nodes and goroutines at once.
func (q *Sequencer) Step(ctx context.Context) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		n, err := q.step(ctx)
		if !errors.Is(err, errFenced) {
			return n, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// step reads and computes outside the writer, which only has to store the result.
func (q *Sequencer) step(ctx context.Context) (int, error) {
	records, known, err := q.fresh(ctx)
	if err == nil && !known {
		records, err = q.stored(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("sequence the log: %w", err)
	}
	if len(records) == 0 {
		return 0, nil
	}
	s, upTo := q.tail.extend(records), q.upTo
	q.upTo = nil // unless it is stored
	if err := q.log.store.Write(ctx, s.store); err != nil {
		return 0, fmt.Errorf("sequence the log: %w", err)
	}
	q.tail = s.to
	if upTo != nil {
		maps.Copy(upTo, s.nodes)
		q.upTo = upTo
	}
	return len(records), nil
}

// fresh returns the records that are not in the tree yet from memory, where this node is alone and has all of them. They
// are durable: what was remembered is what was committed.
func (q *Sequencer) fresh(ctx context.Context) (records []*Record, known bool, err error) {
	if q.upTo == nil {
		return nil, false, nil
	}
	err = q.log.store.WriteLight(ctx, func(tx *store.Tx) error {
		records, known = nil, false // it may run more than once
		c, ok := tx.Recall(chainKey{}).(chain)
		if !ok {
			return nil
		}
		done := q.upTo[c.node]
		for len(c.fresh) > 0 && c.fresh[0].Seq <= done {
			c.fresh = c.fresh[1:]
		}
		tx.Remember(chainKey{}, c)
		records, known = c.fresh[:min(len(c.fresh), stepSize)], c.seq-int64(len(c.fresh)) == done
		return nil
	})
	return records, known, err
}

// stored reads the records that are not in the tree yet from the database, and the tree if it is not as it was.
func (q *Sequencer) stored(ctx context.Context) (records []*Record, err error) {
	current, upTo := q.tail, map[int64]int64(nil)
	err = q.log.store.Read(ctx, func(tx *store.Tx) error {
		h, err := readHead(tx)
		if err != nil {
			return err
		}
		if current == nil || current.head != h {
			if current, err = q.follow(tx, h); err != nil {
				return err
			}
		}
		records, upTo, err = unsequenced(tx, stepSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	if q.tail = current; q.log.store.Alone() && len(records) < stepSize {
		q.upTo = upTo
	}
	return records, nil
}

// follow catches up with a tree that another node has extended. It must contain the tree this node has seen, or
// somebody has rewritten history and this node will not build on it.
func (q *Sequencer) follow(tx *store.Tx, h head) (*tail, error) {
	if seen := q.tail; seen != nil {
		if h.size < seen.head.size || h.origin != seen.head.origin {
			return nil, fmt.Errorf("%w: the tree had %d records and has %d", ErrTampered, seen.head.size, h.size)
		}
		f, err := loadFrontier(tx, seen.head.size)
		if err != nil {
			return nil, err
		}
		if f.root() != seen.head.root {
			return nil, fmt.Errorf("%w: the first %d records hash to another root than before", ErrTampered, seen.head.size)
		}
	}
	return loadTail(tx, h)
}
