package launch

import "unsafe"

// view is a Config as it lies in the mapped file. Reading one makes no copies,
// because the second stage may have no heap to put them on.
type view struct {
	path       *byte
	argv, env  uintptr // tables of addresses, ended by a zero
	dir        *byte
	umask      uint32
	filter     bytes
	notify     bool
	handledFS  uint64
	handledNet uint64
	scoped     uint64
	rules      list
	limits     list
	listen     uint16
	socket     bytes
	tty        bool
	namespaces list
	quiet      bool
	want       uint64
	ok         bool // everything was read, and nothing was left over
}

// bytes is a run of bytes with a NUL behind it.
type bytes struct{ b []byte }

func (s bytes) len() int      { return len(s.b) }
func (s bytes) at(i int) byte { return s.b[i] }
func (s bytes) first() *byte  { return unsafe.SliceData(s.b) }

// list is what is left of a list whose entries were checked by parse.
type list struct {
	cursor
	n uint64
}

func (l *list) num() uint64 {
	l.n--
	return l.cursor.num()
}

func (l *list) pair() (uint64, uint64) {
	l.n--
	first := l.cursor.num()
	return first, l.cursor.num()
}

func (l *list) rule() (*byte, uint64) {
	l.n--
	path := l.str().first()
	return path, l.cursor.num()
}

// parse reads the wire form. Anything short, long or out of range is refused.
func parse(b []byte) (v view) {
	c := cursor{b: b}
	path := c.str()
	v.path = path.first()
	var args int
	v.argv, args = c.vector()
	v.env, _ = c.vector()
	v.dir = c.str().first()
	v.umask = uint32(c.num())
	v.filter = c.str()
	v.notify = c.flag()
	v.handledFS, v.handledNet, v.scoped = c.num(), c.num(), c.num()
	v.rules = c.list()
	for l := v.rules; l.n > 0 && !c.bad; l.n-- {
		c.str()
		c.num()
	}
	v.limits = c.list()
	for l := v.limits; l.n > 0 && !c.bad; l.n-- {
		c.num()
		c.num()
	}
	v.listen = uint16(c.num())
	v.socket = c.str()
	v.tty = c.flag()
	v.namespaces = c.list()
	for l := v.namespaces; l.n > 0 && !c.bad; l.n-- {
		c.num()
	}
	v.quiet = c.flag()
	v.want = c.num()
	v.ok = !c.bad && len(c.b) == 0 && path.len() > 0 && args > 0
	return v
}

// cursor walks the wire form; running past its end sets bad.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	part := c.b[:n]
	c.b = c.b[n:]
	return part
}

func (c *cursor) num() uint64 {
	p := c.take(8)
	if p == nil {
		return 0
	}
	return *(*uint64)(unsafe.Pointer(unsafe.SliceData(p)))
}

func (c *cursor) flag() bool { return c.num() == 1 }

func (c *cursor) str() bytes {
	n := c.num()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return bytes{}
	}
	p := c.take(n + 8 - n%8)
	if p == nil || p[n] != 0 {
		c.bad, c.b = true, nil
		return bytes{}
	}
	return bytes{p[:n]}
}

func (c *cursor) list() list {
	n := c.num()
	return list{cursor: cursor{b: c.b}, n: n}
}

// vector fills in the table of addresses that the kernel wants and returns
// where it is.
func (c *cursor) vector() (uintptr, int) {
	n := c.num()
	if n > uint64(len(c.b))/8 {
		c.bad, c.b = true, nil
		return 0, 0
	}
	raw := c.take(8 * (n + 1))
	if raw == nil {
		return 0, 0
	}
	table := unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(raw))), n+1)
	for i := range table[:n] {
		table[i] = uintptr(unsafe.Pointer(c.str().first()))
	}
	table[n] = 0
	return uintptr(unsafe.Pointer(unsafe.SliceData(table))), int(n)
}
