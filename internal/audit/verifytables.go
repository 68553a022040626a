package audit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// verifyBatch is how many records are read at a time, so that a long verification holds no long transaction.
const verifyBatch = 2048

// VerifyOptions add to what a verification holds the log against.
type VerifyOptions struct {
	// Checkpoint is one kept outside the gate: it finds what whoever holds the signing key has rewritten.
	Checkpoint []byte
}

// Verify recomputes the whole log from its tables and holds it against the checkpoints in them, and the one given.
// The public keys are given one per line. The error says that the verification could not be done; what is wrong with
// the log is in the report. Records may be appended meanwhile.
func Verify(ctx context.Context, s *store.Store, publicKeys string, opts VerifyOptions) (*Report, error) {
	verifiers, err := parseVerifiers(publicKeys)
	if err != nil {
		return nil, err
	}
	t := &tableCheck{checker: newChecker(verifiers), store: s, names: make(map[int64]string)}
	err = t.verify(ctx, opts)
	return &t.report, err
}

// tableCheck feeds a checker from the tables, and checks the tables that only they have.
type tableCheck struct {
	*checker
	store  *store.Store
	head   head
	nodes  []node
	names  map[int64]string
	latest int64
	full   []fullSubtree    // computed in this batch, to be compared with the stored ones
	sealed int64            // blocks of postings
	sets   map[int64][]byte // the postings of the block at hand
	tier   int
	block  int64
}

func (t *tableCheck) verify(ctx context.Context, opts VerifyOptions) error {
	if err := t.store.Read(ctx, t.open); err != nil {
		return fmt.Errorf("verify the log: %w", err)
	}
	if opts.Checkpoint != nil {
		t.checkpoint(opts.Checkpoint, "the checkpoint given")
	}
	t.onSubtree = func(level int, n int64, hash tlog.Hash) {
		t.full = append(t.full, fullSubtree{level, n, hash, t.latest})
	}
	for from := int64(0); from < t.head.size; from += verifyBatch {
		to := min(from+verifyBatch, t.head.size)
		err := t.store.Read(ctx, func(tx *store.Tx) error { return t.batch(tx, from, to) })
		if err != nil {
			return fmt.Errorf("verify the log: %w", err)
		}
	}
	t.compareRoots() // before anything past the tree's end can cast doubt on it
	if err := t.rest(ctx); err != nil {
		return fmt.Errorf("verify the log: %w", err)
	}
	t.finish(t.head)
	return nil
}

// open reads, in one snapshot, what the log claims to be.
func (t *tableCheck) open(tx *store.Tx) error {
	var err error
	if t.head, err = readHead(tx); err != nil {
		return err
	}
	t.report.Origin = t.head.origin
	if t.nodes, err = readNodes(tx); err != nil {
		return err
	}
	for _, n := range t.nodes {
		t.names[n.no] = n.name
	}
	if err := t.strays(tx); err != nil {
		return err
	}
	var end int64
	if err := tx.QueryRow(`SELECT coalesce(max(first + size), 0) FROM audit_run`).Scan(&end); err != nil {
		return err
	}
	if end != t.head.size {
		t.damaged("the order covers %d records, the head names %d", end, t.head.size)
	}
	return t.readCheckpoints(tx)
}

func (t *tableCheck) readCheckpoints(tx *store.Tx) error {
	rows, err := tx.Query(`SELECT size, root, note FROM audit_checkpoint ORDER BY size`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var size int64
		var root, signed []byte
		if err := rows.Scan(&size, &root, &signed); err != nil {
			return err
		}
		where := fmt.Sprintf("the stored checkpoint of size %d", size)
		cp, ok := t.checkpoint(signed, where)
		if ok && (cp.Size != size || !bytes.Equal(cp.Root[:], root)) {
			t.problem(Problem{Fault: WrongRoot, Index: Unsequenced,
				Detail: where + " does not say what was signed; its row was changed"})
		}
	}
	return rows.Err()
}

func (t *tableCheck) damaged(format string, args ...any) {
	t.problem(Problem{Fault: IndexDamaged, Index: Unsequenced, Detail: fmt.Sprintf(format, args...)})
}

// strays looks for records outside all chains: of no known node, or with no place in one.
func (t *tableCheck) strays(tx *store.Tx) error {
	from := int64(math.MinInt64)
	ends := make([]int64, 0, len(t.nodes)+1)
	for _, n := range t.nodes {
		ends = append(ends, position(n.no, 1))
	}
	for i, end := range append(ends, math.MaxInt64) {
		var pos int64
		err := tx.QueryRow(`SELECT pos FROM audit_record WHERE pos >= $1 AND pos < $2 ORDER BY pos LIMIT 1`, from, end).Scan(&pos)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			t.problem(Problem{Fault: Inserted, Index: Unsequenced, Seq: seqOf(pos),
				Detail: fmt.Sprintf("the record at position %d belongs to no node's chain", pos)})
		}
		if i < len(t.nodes) {
			from = position(t.nodes[i].no+1, 0)
		}
	}
	return nil
}

// batch judges the records at indexes [from, to).
func (t *tableCheck) batch(tx *store.Tx, from, to int64) error {
	now, err := readHead(tx)
	if err != nil {
		return err
	}
	if sealed := now.size >> blockBits; sealed != t.sealed {
		t.sealed, t.sets = sealed, nil // the log has grown, and postings have moved to other tiers
	}
	runs, err := runsBetween(tx, from, to)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.first != from {
			t.damaged("indexes %d to %d have no records", from, r.first-1)
		}
		if err := t.run(tx, r); err != nil {
			return err
		}
		from = r.first + r.size
	}
	if from != to {
		t.damaged("indexes %d to %d have no records", from, to-1)
	}
	return t.compareSubtrees(tx)
}

// run judges the records of one run, and notes those that are not there.
func (t *tableCheck) run(tx *store.Tx, run run) error {
	name := t.names[nodeOf(run.pos)]
	records, err := readRecords(tx, name, whole, `pos >= $1 AND pos < $2 ORDER BY pos`, run.pos, run.pos+run.size)
	if err != nil {
		return err
	}
	for i := range run.size {
		index, pos := run.first+i, run.pos+i
		if len(records) == 0 || records[0].pos != pos {
			t.missing(index, name, seqOf(pos))
			continue
		}
		r := records[0]
		records = records[1:]
		r.Index = index
		t.latest = max(t.latest, r.Time.UnixMicro())
		t.record(r)
		if err := t.findable(tx, r); err != nil {
			return err
		}
	}
	return nil
}

// compareSubtrees holds the stored hashes against the computed ones.
func (t *tableCheck) compareSubtrees(tx *store.Tx) error {
	for _, f := range t.full {
		var hash []byte
		var latest int64
		err := tx.QueryRow(`SELECT hash, latest FROM audit_subtree WHERE level = $1 AND n = $2`, f.level, f.n).Scan(&hash, &latest)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		first, last := f.n<<f.level, (f.n+1)<<f.level-1
		switch {
		case !bytes.Equal(hash, f.hash[:]):
			t.damaged("records %d to %d do not have the hash stored for them", first, last)
		case latest != f.latest:
			t.damaged("the time stored for records %d to %d is wrong", first, last)
		}
	}
	t.full = t.full[:0]
	return nil
}

// findable checks that the list finds the record under each of its values. It stops at the first record that is not to
// be trusted: what its values were is unknown.
func (t *tableCheck) findable(tx *store.Tx, r *Record) error {
	if t.broken || r.Index >= t.sealed<<blockBits {
		return nil
	}
	if err := t.openBlock(tx, r.Index); err != nil {
		return err
	}
	i := r.Index - t.block<<tierBits(t.tier)
	for column, value := range r.columns() {
		set := t.sets[postingKey(column, value)]
		if value != "" && (!wellFormed(set, t.tier) || !contains(set, i)) {
			t.problem(Problem{Fault: IndexDamaged, Index: r.Index, ID: r.ID, Node: r.Node, Seq: r.Seq,
				Detail: fmt.Sprintf("the list does not find it by %q", value)})
		}
	}
	return nil
}

// openBlock reads the postings of the block that holds the index, unless they are at hand.
func (t *tableCheck) openBlock(tx *store.Tx, index int64) error {
	tier := 0
	for from, _ := blocksOf(tier, t.sealed); index>>tierBits(tier) < from; from, _ = blocksOf(tier, t.sealed) {
		tier++
	}
	block := index >> tierBits(tier)
	if t.sets != nil && t.tier == tier && t.block == block {
		return nil
	}
	t.tier, t.block, t.sets = tier, block, make(map[int64][]byte)
	rows, err := tx.Query(`SELECT key, bits FROM audit_posting WHERE tier = $1 AND block = $2`, tier, block)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key int64
		var bits []byte
		if err := rows.Scan(&key, &bits); err != nil {
			return err
		}
		t.sets[key] = bits
	}
	return rows.Err()
}

// rest follows the chains past the end of the tree.
func (t *tableCheck) rest(ctx context.Context) error {
	for _, n := range t.nodes {
		chain := t.chain(n.name)
		if chain.next-1 != n.sequenced {
			t.damaged("%d records of node %s are said to be in the tree, %d are", n.sequenced, n.name, chain.next-1)
		}
		for more := true; more; {
			var records []*Record
			err := t.store.Read(ctx, func(tx *store.Tx) (err error) {
				records, err = readRecords(tx, n.name, whole, `pos >= $1 AND pos < $2 ORDER BY pos LIMIT CAST($3 AS BIGINT)`,
					position(n.no, chain.next), position(n.no+1, 0), verifyBatch)
				return err
			})
			if err != nil {
				return err
			}
			for _, r := range records {
				t.body(r)
				chain.check(t.checker, r)
				t.report.Unsequenced++
			}
			more = len(records) == verifyBatch
		}
	}
	return nil
}
