package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// ErrNotFound says that there is no such record or checkpoint.
var ErrNotFound = errors.New("audit: not found")

// Log reads the log in a store. It is safe for concurrent use.
type Log struct {
	store *store.Store
	sets  *setCache
	rows  *rowCache
}

// New returns the log in the store.
func New(s *store.Store) *Log { return &Log{store: s, sets: newSetCache(), rows: newRowCache()} }

// detail is how much of a record is read.
type detail int

const (
	lean   detail = 3 // what a list shows
	hashed detail = 4 // what the sequencer needs as well
	whole  detail = 15
)

// fields are the columns that hold text.
var fields = []string{"kind", "call_id", "principal", "session", "surface", "operation", "level", "outcome", "correlation"}

// fieldEnd separates fields that are read as one: most of what a row costs is the number of its columns. No record has
// it in a field.
const fieldEnd = "\x1f"

// selectRecords is the beginning of a query.
func selectRecords(tx *store.Tx, d detail) string {
	text := strings.Join(fields, ", ")
	if d != whole {
		end := "char(31)"
		if tx.Dialect() == store.Postgres {
			end = "chr(31)"
		}
		text = "concat_ws(" + end + ", " + text + ")"
	}
	return "SELECT pos, time, " + text + map[detail]string{hashed: ", hash", whole: ", hash, body_hash, salt, body"}[d] + " FROM audit_record WHERE "
}

// Get returns the record with the identifier.
func (l *Log) Get(ctx context.Context, id string) (*Record, error) {
	micros, pos, err := parseID(id)
	if err != nil {
		return nil, err
	}
	var found *Record
	err = l.store.Read(ctx, func(tx *store.Tx) error {
		records, err := readAnywhere(tx, `pos = $1`, pos)
		if err != nil {
			return err
		}
		if len(records) == 0 || records[0].Time.UnixMicro() != micros {
			return fmt.Errorf("%w: no record %s", ErrNotFound, id)
		}
		found = records[0]
		return nil
	})
	return found, err
}

// ByCall returns the records of one call in the order they were written.
func (l *Log) ByCall(ctx context.Context, callID string) ([]*Record, error) {
	var found []*Record
	err := l.store.Read(ctx, func(tx *store.Tx) (err error) {
		found, err = readAnywhere(tx, `call_id = $1 AND call_id <> '' ORDER BY time, pos`, callID)
		return err
	})
	return found, err
}

// node is one writer of records.
type node struct {
	no        int64
	name      string
	sequenced int64
}

func readNodes(tx *store.Tx) ([]node, error) {
	return store.All(tx, func(rows *store.Rows) (n node, err error) {
		err = rows.Scan(&n.no, &n.name, &n.sequenced)
		return n, err
	}, `SELECT no, name, sequenced FROM audit_node ORDER BY no`)
}

// readRecords reads the records of one node, unsequenced as far as the caller is told.
func readRecords(tx *store.Tx, nodeName string, d detail, where string, args ...any) ([]*Record, error) {
	sc := newScanner(nodeName, d)
	return store.All(tx, sc.scan, selectRecords(tx, d)+where, args...)
}

// scanner turns rows into records. What a row is scanned into is made once and copied, since lists are read often.
type scanner struct {
	detail         detail
	r              Record
	micros         int64
	text           string // all fields at once
	hash, bodyHash sql.RawBytes
	dest           []any
}

func newScanner(nodeName string, d detail) *scanner {
	sc := &scanner{detail: d, r: Record{Node: nodeName, Index: Unsequenced}}
	r := &sc.r
	if d != whole {
		sc.dest = []any{&r.pos, &sc.micros, &sc.text, &sc.hash}[:d]
		return sc
	}
	sc.dest = []any{&r.pos, &sc.micros}
	for _, f := range r.fields() {
		sc.dest = append(sc.dest, f)
	}
	sc.dest = append(sc.dest, &sc.hash, &sc.bodyHash, &r.salt, &r.Body)
	return sc
}

func (sc *scanner) scan(rows *store.Rows) (*Record, error) {
	if err := rows.Scan(sc.dest...); err != nil {
		return nil, err
	}
	r := new(Record)
	*r = sc.r
	r.Time = time.UnixMicro(sc.micros).UTC()
	r.Seq = seqOf(r.pos)
	r.ID = makeID(sc.micros, r.pos)
	var err error
	if sc.detail != whole {
		err = r.split(sc.text)
	}
	if sc.detail >= hashed && err == nil {
		r.Hash, err = toHash(sc.hash)
	}
	if sc.detail == whole && err == nil {
		r.Dropped, r.Body = r.salt == nil, Unpack(r.Body)
		r.BodyHash, err = toHash(sc.bodyHash)
	}
	return r, err
}

// fields are where the columns of the same name go.
func (r *Record) fields() [9]*string {
	return [...]*string{&r.Kind, &r.CallID, &r.Principal, &r.Session, &r.Surface, &r.Operation, &r.Level, &r.Outcome, &r.Correlation}
}

// split takes apart what was read as one.
func (r *Record) split(text string) error {
	if strings.Count(text, fieldEnd) != len(fields)-1 {
		return fmt.Errorf("%w: record %s has a field that no record has", ErrTampered, r.ID)
	}
	for _, f := range r.fields() {
		*f, text, _ = strings.Cut(text, fieldEnd)
	}
	return nil
}

// readAnywhere reads records with their payload, nodes' names and indexes.
func readAnywhere(tx *store.Tx, where string, args ...any) ([]*Record, error) {
	records, err := readRecords(tx, "", whole, where, args...)
	if err != nil {
		return nil, err
	}
	return records, complete(tx, records)
}

// complete fills in the nodes' names, and the indexes of records that were read without.
func complete(tx *store.Tx, records []*Record) error {
	if len(records) == 0 {
		return nil
	}
	nodes, err := readNodes(tx)
	if err != nil {
		return err
	}
	names := make(map[int64]string, len(nodes))
	for _, n := range nodes {
		names[n.no] = n.name
	}
	for _, r := range records {
		r.Node = names[nodeOf(r.pos)]
		if r.Index == Unsequenced {
			if r.Index, err = indexOf(tx, r.pos); err != nil {
				return err
			}
		}
	}
	return nil
}

// indexOf finds the index of the record at a position, or Unsequenced.
func indexOf(tx *store.Tx, pos int64) (int64, error) {
	runs, err := store.All(tx, scanRun, `SELECT first, size, pos FROM audit_run WHERE pos <= $1 ORDER BY pos DESC LIMIT 1`, pos)
	if err != nil {
		return 0, err
	}
	if len(runs) == 0 || pos >= runs[0].pos+runs[0].size {
		return Unsequenced, nil
	}
	return runs[0].first + pos - runs[0].pos, nil
}

// readIndexes reads the records at indexes [from, to) with their payload.
func readIndexes(tx *store.Tx, from, to int64) ([]*Record, error) {
	runs, err := runsBetween(tx, from, to)
	if err != nil {
		return nil, err
	}
	var all []*Record
	for _, run := range runs {
		records, err := readRecords(tx, "", whole, `pos >= $1 AND pos < $2 ORDER BY pos`, run.pos, run.pos+run.size)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			r.Index = run.first + r.pos - run.pos
		}
		all = append(all, records...)
	}
	return all, complete(tx, all)
}
