package audit

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// subtreeStep is the distance between the levels of the tree whose hashes are stored. What lies between follows from
// at most 2^7 hashes of the level below, so the tree costs one row per 256 records.
const subtreeStep = 8

// frontier is the right edge of a tree: the roots of its full subtrees, the largest first, one for each bit of size.
// It is all that is needed to add to the tree.
type frontier struct {
	size  int64
	roots []tlog.Hash
}

// add appends a leaf and reports each stored subtree that it completes.
func (f *frontier) add(leaf tlog.Hash, full func(level int, n int64, hash tlog.Hash)) {
	hash := leaf
	for level, rest := 1, f.size; rest&1 == 1; level, rest = level+1, rest>>1 {
		last := len(f.roots) - 1
		hash = tlog.NodeHash(f.roots[last], hash)
		f.roots = f.roots[:last]
		if level%subtreeStep == 0 {
			full(level, f.size>>level, hash)
		}
	}
	f.roots = append(f.roots, hash)
	f.size++
}

// root is the hash of the whole tree.
func (f *frontier) root() tlog.Hash {
	if len(f.roots) == 0 {
		return sha256.Sum256(nil)
	}
	hash := f.roots[len(f.roots)-1]
	for _, left := range slices.Backward(f.roots[:len(f.roots)-1]) {
		hash = tlog.NodeHash(left, hash)
	}
	return hash
}

func (f *frontier) clone() frontier { return frontier{f.size, slices.Clone(f.roots)} }

// loadFrontier rebuilds the right edge of the tree of the given size from stored hashes.
func loadFrontier(tx *store.Tx, size int64) (frontier, error) {
	f := frontier{size: size}
	for level := bits.Len64(uint64(size)) - 1; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		hash, err := subtree(tx, level, size>>level-1)
		if err != nil {
			return f, err
		}
		f.roots = append(f.roots, hash)
	}
	return f, nil
}

// treeReader lets the functions of tlog read the tree.
func treeReader(tx *store.Tx) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			var err error
			if hashes[i], err = subtree(tx, level, n); err != nil {
				return nil, err
			}
		}
		return hashes, nil
	})
}

// subtree computes the hash of the n-th full subtree of 2^level leaves from the nearest stored level below.
func subtree(tx *store.Tx, level int, n int64) (tlog.Hash, error) {
	base := level - level%subtreeStep
	from, to := n<<(level-base), (n+1)<<(level-base)
	var hashes []tlog.Hash
	var err error
	if base == 0 {
		hashes, err = leaves(tx, from, to)
	} else {
		hashes, err = store.All(tx, scanHash,
			`SELECT hash FROM audit_subtree WHERE level = $1 AND n >= $2 AND n < $3 ORDER BY n`, base, from, to)
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	if int64(len(hashes)) != to-from {
		return tlog.Hash{}, fmt.Errorf("%w: the tree lacks hashes at level %d from %d", ErrTampered, base, from)
	}
	for len(hashes) > 1 {
		for i := range len(hashes) / 2 {
			hashes[i] = tlog.NodeHash(hashes[2*i], hashes[2*i+1])
		}
		hashes = hashes[:len(hashes)/2]
	}
	return hashes[0], nil
}

func scanHash(rows *store.Rows) (tlog.Hash, error) {
	var b []byte
	if err := rows.Scan(&b); err != nil {
		return tlog.Hash{}, err
	}
	return toHash(b)
}

// leaves reads the hashes of the records at indexes [from, to).
func leaves(tx *store.Tx, from, to int64) ([]tlog.Hash, error) {
	spans, err := runsBetween(tx, from, to)
	if err != nil {
		return nil, err
	}
	var all []tlog.Hash
	for _, s := range spans {
		hashes, err := store.All(tx, scanHash,
			`SELECT hash FROM audit_record WHERE pos >= $1 AND pos < $2 ORDER BY pos`, s.pos, s.pos+s.size)
		if err != nil {
			return nil, err
		}
		all = append(all, hashes...)
	}
	return all, nil
}

// run says that the records at indexes [first, first+size) are those at positions [pos, pos+size).
type run struct{ first, size, pos int64 }

func scanRun(rows *store.Rows) (r run, err error) {
	err = rows.Scan(&r.first, &r.size, &r.pos)
	return r, err
}

// runsBetween returns the runs that hold indexes [from, to), cut to them, in order.
func runsBetween(tx *store.Tx, from, to int64) ([]run, error) {
	runs, err := store.All(tx, scanRun, `SELECT first, size, pos FROM audit_run
		WHERE first >= (SELECT coalesce(max(first), 0) FROM audit_run WHERE first <= $1) AND first < $2 ORDER BY first`, from, to)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		r := &runs[i]
		if skip := from - r.first; skip > 0 {
			r.first, r.pos, r.size = r.first+skip, r.pos+skip, r.size-skip
		}
		r.size = min(r.size, to-r.first)
	}
	return slices.DeleteFunc(runs, func(r run) bool { return r.size <= 0 }), nil
}
