package audit

import "sync"

// maxRows bounds the records kept in memory, of a few hundred bytes each: the newest pages, which people look at again
// and again while they follow what agents do.
const maxRows = 8192

// rowCache keeps records as lists show them. A record never changes, and what retention drops is not in a list.
type rowCache struct {
	mu   sync.Mutex
	rows map[int64]Record // by position
}

func newRowCache() *rowCache { return &rowCache{rows: make(map[int64]Record)} }

// get returns a copy of the record at a position, nil if it is not kept.
func (c *rowCache) get(pos int64) *Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.rows[pos]
	if !ok {
		return nil
	}
	return &r
}

// put keeps a record, and makes room by dropping whatever the map yields first.
func (c *rowCache) put(r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.rows {
		if len(c.rows) < maxRows {
			break
		}
		delete(c.rows, other)
	}
	c.rows[r.pos] = *r
}
