package audit

import (
	"fmt"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// cacheBytes bounds the postings kept in memory: those of about a dozen values over a million records.
const cacheBytes = 4 << 20

// setCache keeps postings that searches have read. A sealed block never changes, so nothing in it grows stale.
type setCache struct {
	mu    sync.Mutex
	sets  map[setKey][]byte // nil where no record of the block has the value
	bytes int
}

type setKey struct {
	tier       int
	block, key int64
}

func newSetCache() *setCache { return &setCache{sets: make(map[setKey][]byte)} }

// load returns the sets of blocks [from, to), at most sixteen, the last block first; within a block in the order of the
// keys. A block that lacks one of the keys may lack the sets of the keys after it, too.
func (c *setCache) load(tx *store.Tx, tier int, from, to int64, keys []int64) ([][][]byte, error) {
	blocks := make([][][]byte, to-from)
	for i := range blocks {
		blocks[i] = make([][]byte, len(keys))
	}
	for k, key := range keys {
		var missing []int64
		for i, sets := range blocks {
			if k > 0 && sets[k-1] == nil {
				continue
			}
			block := to - 1 - int64(i)
			set, known := c.get(setKey{tier, block, key})
			if sets[k] = set; !known {
				missing = append(missing, block)
			}
		}
		if err := c.read(tx, tier, key, missing, func(block int64, set []byte) { blocks[to-1-block][k] = set }); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

var selectSets = `SELECT block, bits FROM audit_posting WHERE tier = $1 AND key = $2 AND block IN (` + placeholders(3, fan) + `)`

// read gets the sets of one key from the database, and notes which blocks have none.
func (c *setCache) read(tx *store.Tx, tier int, key int64, blocks []int64, found func(int64, []byte)) error {
	if len(blocks) == 0 {
		return nil
	}
	args := []any{tier, key}
	for i := range fan { // always as many, so that there is one text for the database to prepare
		block := int64(-1)
		if i < len(blocks) {
			block = blocks[i]
		}
		args = append(args, block)
	}
	type posting struct {
		block int64
		set   []byte
	}
	postings, err := store.All(tx, func(rows *store.Rows) (p posting, err error) {
		if err = rows.Scan(&p.block, &p.set); err == nil && !wellFormed(p.set, tier) {
			err = fmt.Errorf("%w: a posting of %d bytes", ErrTampered, len(p.set))
		}
		return p, err
	}, selectSets, args...)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		c.put(setKey{tier, block, key}, nil)
	}
	for _, p := range postings {
		c.put(setKey{tier, p.block, key}, p.set)
		found(p.block, p.set)
	}
	return nil
}

func (c *setCache) get(k setKey) (set []byte, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, known = c.sets[k]
	return set, known
}

// entryBytes is what an entry costs besides its set, roughly.
const entryBytes = 64

// put keeps a set, and makes room by dropping whatever the map yields first.
func (c *setCache) put(k setKey, set []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, known := c.sets[k]; known {
		c.bytes -= entryBytes + len(old)
	}
	c.sets[k] = set
	c.bytes += entryBytes + len(set)
	for other, dropped := range c.sets {
		if c.bytes <= cacheBytes {
			return
		}
		delete(c.sets, other)
		c.bytes -= entryBytes + len(dropped)
	}
}
