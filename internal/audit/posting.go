package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// A posting says which records of a block have one value in one column, as a set of bits. Filters intersect postings,
// so that a combination nobody has costs no more than one everybody has: no index over single columns can do that
// when each value is common.
//
// Blocks come in tiers. The sequencer seals a block of tier 0 when it has 256 records; sixteen blocks of a tier become
// one of the next, up to the last. So a search reads at most fifteen blocks of each lower tier, newest first, and then
// the largest; and a write touches one small block. Records after the last sealed block are searched as they are.
const (
	blockBits = 8                     // 256 records in a block of tier 0
	fanBits   = 4                     // 16 blocks make one of the next tier
	lastTier  = 2                     // of 65,536 records, 8 KiB a set at most
	fan       = 1 << fanBits          //
	blockSize = int64(1) << blockBits //
)

// tierBits says how many records a block of the tier has, as a power of two.
func tierBits(tier int) int { return blockBits + tier*fanBits }

// postingKey stands for a value in a column. It is a hash because values may be long and a list re-checks what it
// finds; a cryptographic one because agents choose some of the values.
func postingKey(column int, value string) int64 {
	h := sha256.New()
	h.Write([]byte{byte(column)})
	h.Write([]byte(value))
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// bitset is a set of the records of one block.
type bitset []uint64

func newBitset(tier int) bitset { return make(bitset, 1<<(tierBits(tier)-6)) }

func (s bitset) set(i int64) { s[i>>6] |= 1 << (i & 63) }

// descending yields the members from the highest down.
func (s bitset) descending(yield func(int64) bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if !descendingWord(s[i], int64(i)<<6, yield) {
			return
		}
	}
}

// descendingWord yields the members of one word and reports whether more are wanted.
func descendingWord(w uint64, base int64, yield func(int64) bool) bool {
	for w != 0 {
		top := 63 - bits.LeadingZeros64(w)
		if !yield(base | int64(top)) {
			return false
		}
		w &^= 1 << top
	}
	return true
}

// The first byte of an encoded set: a list of 16-bit members that fall, or plain bits in words of 64.
const (
	sparse byte = 0
	dense  byte = 1
)

// encode writes the set as a list of members if that is less than half as long as the bits: bits are quicker to compare.
func (s bitset) encode() []byte {
	count := 0
	for _, w := range s {
		count += bits.OnesCount64(w)
	}
	if 2*count < 4*len(s) {
		out := append(make([]byte, 0, 1+2*count), sparse)
		for i := range s.descending {
			out = binary.BigEndian.AppendUint16(out, uint16(i))
		}
		return out
	}
	out := append(make([]byte, 0, 1+8*len(s)), dense)
	for _, w := range s {
		out = binary.BigEndian.AppendUint64(out, w)
	}
	return out
}

// wellFormed says whether data is an encoded set of a block of the tier.
func wellFormed(data []byte, tier int) bool {
	switch {
	case len(data) == 0:
		return false
	case data[0] == sparse:
		return len(data)%2 == 1
	}
	return data[0] == dense && len(data) == 1+1<<tierBits(tier)/8
}

// memberAt reads the member of a sparse set at an offset, wordAt the i-th word of a dense one.
func memberAt(data []byte, at int) int64 { return int64(binary.BigEndian.Uint16(data[at:])) }
func wordAt(data []byte, i int) uint64   { return binary.BigEndian.Uint64(data[1+8*i:]) }

// contains looks into an encoded set without decoding it.
func contains(data []byte, i int64) bool {
	if data[0] == dense {
		return wordAt(data, int(i>>6))>>(i&63)&1 == 1
	}
	n := len(data) / 2
	k := sort.Search(n, func(k int) bool { return memberAt(data, 1+2*k) <= i })
	return k < n && memberAt(data, 1+2*k) == i
}

// add puts an encoded set of a block of the tier into s, where its first bit has the given place.
func (s bitset) add(data []byte, tier int, place int64) error {
	size := int64(1) << tierBits(tier)
	if !wellFormed(data, tier) {
		return fmt.Errorf("%w: a posting of %d bytes", ErrTampered, len(data))
	}
	if data[0] == dense {
		for i := range size / 64 {
			s[place/64+i] |= wordAt(data, int(i))
		}
		return nil
	}
	for at := 1; at < len(data); at += 2 {
		i := memberAt(data, at)
		if i >= size {
			return fmt.Errorf("%w: a posting names record %d of a block of %d", ErrTampered, i, size)
		}
		s.set(place + i)
	}
	return nil
}

// common yields what is in all of the encoded, well-formed sets of a block of the tier, from the highest down, and does
// no more than its reader asks for.
func common(sets [][]byte, tier int, yield func(int64) bool) {
	lead := slices.MinFunc(sets, func(a, b []byte) int { return cmp.Compare(len(a), len(b)) })
	switch {
	case len(lead) == 0: // a value that no record of the block has
	case lead[0] == dense:
		commonDense(sets, yield)
	case len(lead) <= 1+2*fewMembers:
		commonSparse(lead, sets, yield)
	default:
		commonMixed(lead, sets, tier, yield)
	}
}

// fewMembers is up to how many members of a set are looked up in the others one by one.
const fewMembers = 256

// commonMixed writes the members of one set as bits and goes on with words.
func commonMixed(lead []byte, sets [][]byte, tier int, yield func(int64) bool) {
	s := newBitset(tier)
	for at := 1; at < len(lead); at += 2 {
		s.set(memberAt(lead, at))
	}
	for _, set := range sets {
		if &set[0] != &lead[0] && !s.intersect(set) {
			return
		}
	}
	s.descending(yield)
}

// intersect keeps what is also in an encoded, well-formed set of a block of the same size, and says whether anything is.
func (s bitset) intersect(data []byte) bool {
	any := uint64(0)
	if data[0] == dense {
		for i := range s {
			s[i] &= wordAt(data, i)
			any |= s[i]
		}
		return any != 0
	}
	at := len(data) - 2 // the members fall, so that the lowest is last
	for i := range s {
		var word uint64
		for ; at > 0 && memberAt(data, at)>>6 == int64(i); at -= 2 {
			word |= 1 << (memberAt(data, at) & 63)
		}
		s[i] &= word
		any |= s[i]
	}
	return any != 0
}

// commonSparse goes through the members of one set and looks each up in the others, which it reads once as well.
func commonSparse(lead []byte, sets [][]byte, yield func(int64) bool) {
	read := make([]int, len(sets)) // how far, of those that are sparse
next:
	for at := 1; at < len(lead); at += 2 {
		i := memberAt(lead, at)
		for k, set := range sets {
			if set[0] == dense {
				if wordAt(set, int(i>>6))>>(i&63)&1 == 0 {
					continue next
				}
				continue
			}
			for read[k] < len(set)/2 && memberAt(set, 1+2*read[k]) > i {
				read[k]++
			}
			if read[k] == len(set)/2 {
				return
			}
			if memberAt(set, 1+2*read[k]) != i {
				continue next
			}
		}
		if !yield(i) {
			return
		}
	}
}

// commonDense goes through the words of all sets at once, four sets in one go: where no word has a member that is in
// all of them, loading the words is all that takes time.
func commonDense(sets [][]byte, yield func(int64) bool) {
	var four [4][]byte
	for k := range four {
		four[k] = sets[min(k, len(sets)-1)][1:]
	}
	a, b, c, d := four[0], four[1], four[2], four[3]
	for at := len(a) - 8; at >= 0; at -= 8 {
		word := binary.BigEndian.Uint64(a[at:at+8]) & binary.BigEndian.Uint64(b[at:at+8]) &
			binary.BigEndian.Uint64(c[at:at+8]) & binary.BigEndian.Uint64(d[at:at+8])
		for k := len(four); word != 0 && k < len(sets); k++ {
			word &= binary.BigEndian.Uint64(sets[k][1+at:])
		}
		if word != 0 && !descendingWord(word, int64(at)<<3, yield) {
			return
		}
	}
}

// postings are the sets of a block of tier 0 that is being filled, by key.
type postings map[int64]bitset

// add notes one record's values.
func (p postings) add(r *Record, i int64) {
	for column, value := range r.columns() {
		if value != "" {
			key := postingKey(column, value)
			if p[key] == nil {
				p[key] = newBitset(0)
			}
			p[key].set(i)
		}
	}
}

// encoded is a posting as it is stored.
type encoded struct {
	key  int64
	bits []byte
}

// encode returns the sets in the order of their key in the table.
func (p postings) encode() []encoded {
	all := make([]encoded, 0, len(p))
	for key, set := range p {
		all = append(all, encoded{key, set.encode()})
	}
	slices.SortFunc(all, func(a, b encoded) int { return cmp.Compare(a.key, b.key) })
	return all
}

// insertBatch is how many postings one statement inserts.
const insertBatch = 32

const insertPosting = `INSERT INTO audit_posting (tier, block, key, bits) VALUES ($1, $2, $3, $4)`

var insertPostings = func() string {
	text := insertPosting
	for i := 1; i < insertBatch; i++ {
		text += fmt.Sprintf(", ($%d, $%d, $%d, $%d)", 4*i+1, 4*i+2, 4*i+3, 4*i+4)
	}
	return text
}()

func insertBlock(tx *store.Tx, tier int, block int64, all []encoded) error {
	for ; len(all) >= insertBatch; all = all[insertBatch:] {
		args := make([]any, 0, 4*insertBatch)
		for _, p := range all[:insertBatch] {
			args = append(args, tier, block, p.key, p.bits)
		}
		if _, err := tx.Exec(insertPostings, args...); err != nil {
			return err
		}
	}
	for _, p := range all {
		if _, err := tx.Exec(insertPosting, tier, block, p.key, p.bits); err != nil {
			return err
		}
	}
	return nil
}

// sealBlock stores a full block of tier 0, and each larger block that it completes.
func sealBlock(tx *store.Tx, block int64, sets []encoded) error {
	if err := insertBlock(tx, 0, block, sets); err != nil {
		return err
	}
	for tier := 0; tier < lastTier && (block+1)%fan == 0; tier++ {
		block /= fan
		merged, err := mergeBlocks(tx, tier, block)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM audit_posting WHERE tier = $1 AND block >= $2 AND block < $3`,
			tier, block*fan, (block+1)*fan)
		if err != nil {
			return err
		}
		if err := insertBlock(tx, tier+1, block, merged); err != nil {
			return err
		}
	}
	return nil
}

// mergeBlocks makes one block of the next tier out of the sixteen blocks of this one. It goes key by key, since the
// sets of a large block do not all fit in memory when there are as many values as records.
func mergeBlocks(tx *store.Tx, tier int, into int64) ([]encoded, error) {
	rows, err := tx.Query(`SELECT block, key, bits FROM audit_posting WHERE tier = $1 AND block >= $2 AND block < $3
		ORDER BY key, block`, tier, into*fan, (into+1)*fan)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var merged []encoded
	set := newBitset(tier + 1)
	current, open := int64(0), false
	finish := func() {
		if open {
			merged = append(merged, encoded{current, set.encode()})
			clear(set)
		}
	}
	for rows.Next() {
		var block, key int64
		var data []byte
		if err := rows.Scan(&block, &key, &data); err != nil {
			return nil, err
		}
		if key != current || !open {
			finish()
			current, open = key, true
		}
		if err := set.add(data, tier, (block-into*fan)<<tierBits(tier)); err != nil {
			return nil, err
		}
	}
	finish()
	return merged, rows.Err()
}

// blocksOf says which blocks of a tier stand when the given number of tier 0 have been sealed: [from, to).
func blocksOf(tier int, sealed int64) (from, to int64) {
	to = sealed >> (tier * fanBits)
	if tier == lastTier {
		return 0, to
	}
	return to &^ (fan - 1), to
}
