package store

import (
	"os"
	"path/filepath"
)

// Stamp stands for everything that was committed to the database, by whomever: two that are equal were taken with
// nothing committed in between. The zero value equals nothing.
type Stamp struct {
	header [96]byte
	known  bool
}

// Same says that nothing was committed between two stamps.
func (s Stamp) Same(as Stamp) bool { return s.known && as.known && s.header == as.header }

// Stamp returns the state of the database before the transaction. It costs a hundredth of a query: SQLite keeps a count
// of commits in the header of the index of its write-ahead log, where all processes that use the database
// find it (https://www.sqlite.org/walformat.html, section 2.1). PostgreSQL has no such thing, and a read may be of a
// moment ago.
func (tx *Tx) Stamp() Stamp {
	if tx.group == nil || !tx.group.light {
		return Stamp{}
	}
	return tx.store.writer.index.stamp(tx.store.opts.Dir)
}

// index reads that header. The file stays the same while the writer's connection lasts; when that is lost, the header
// is not relied on again. It must be closed after all connections: closing it ends the locks that
// this process has on it, SQLite's included.
type index struct {
	file *os.File
	lost bool
}

func (x *index) stamp(dir string) (s Stamp) {
	if x.lost {
		return s
	}
	if x.file == nil {
		f, err := os.Open(filepath.Join(dir, databaseFile+"-shm"))
		if err != nil {
			return s
		}
		x.file = f
	}
	n, err := x.file.ReadAt(s.header[:], 0)
	s.known = err == nil && n == len(s.header)
	return s
}

func (x *index) close() error {
	if x.file == nil {
		return nil
	}
	return x.file.Close()
}
