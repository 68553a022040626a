package audit

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Topic is notified when records were appended, TopicSequenced when they got their indexes.
const (
	Topic          = "audit"
	TopicSequenced = "audit.sequenced"
)

// saltSize is enough that a dropped body cannot be found by trying.
const saltSize = 16

// recordTable is where records go.
var recordTable = store.NewTable("audit_record", "pos", "time", "kind", "call_id", "principal", "session", "surface", "operation", "level",
	"outcome", "correlation", "salt", "body", "body_hash", "hash")

// chain is the end of this node's hash chain.
type chain struct {
	node int64
	seq  int64
	hash tlog.Hash
	// fresh are the newest records up to the end, without their bodies, for the sequencer of a node that is alone: it
	// does not have to read back what was written a moment ago. There may be none; what is there has no hole.
	fresh []*Record
}

// maxFresh bounds what is kept for a sequencer that does not come; it reads them all the same.
const maxFresh = 2 * stepSize

// chainKey is where the chain's end is remembered between transactions: only this node writes it.
type chainKey struct{}

// Append adds records to the end of this node's chain, in the caller's transaction: they are durable when it is. It
// fills in what the caller left to it. The [Sequencer] gives them their indexes later.
func Append(tx *store.Tx, records ...*Record) error {
	c, err := openChain(tx)
	if err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	for _, r := range records {
		if c, err = c.append(tx, r); err != nil {
			return fmt.Errorf("append to the log: %w", err)
		}
	}
	tx.Remember(chainKey{}, c)
	store.Notify(tx, Topic, "")
	return nil
}

func (c chain) append(tx *store.Tx, r *Record) (chain, error) {
	r.Node = tx.Node()
	if err := r.validate(); err != nil {
		return c, err
	}
	if r.Time.IsZero() {
		now, err := tx.Now()
		if err != nil {
			return c, err
		}
		r.Time = now
	}
	r.Time = r.Time.UTC().Truncate(time.Microsecond)
	r.Index = Unsequenced
	r.Seq = c.seq + 1
	r.pos = position(c.node, r.Seq)
	r.ID = makeID(r.Time.UnixMicro(), r.pos)
	if r.Body == nil {
		r.Body = []byte{} // null means dropped
	}
	r.salt = make([]byte, saltSize)
	_, _ = rand.Read(r.salt) // it never fails
	r.BodyHash = bodyHash(r.salt, r.Body)
	r.Hash = r.leaf(c.hash)
	err := tx.Put(recordTable, r.pos, r.Time.UnixMicro(), r.Kind, r.CallID, r.Principal, r.Session, r.Surface,
		r.Operation, r.Level, r.Outcome, r.Correlation, r.salt, pack(r.Body), r.BodyHash[:], r.Hash[:])
	return chain{c.node, r.Seq, r.Hash, c.keep(tx, r)}, err
}

// keep adds a record to the fresh ones. A write that is not committed is followed by one from the same end, which takes
// its place: nobody has seen it.
func (c chain) keep(tx *store.Tx, r *Record) []*Record {
	if !tx.Alone() {
		return nil
	}
	if len(c.fresh) >= maxFresh {
		c.fresh = nil
	}
	bare := *r
	bare.Body, bare.salt = nil, nil
	return append(c.fresh, &bare)
}

// openChain finds the end of this node's chain: in memory, or in the database after a start or a failure.
func openChain(tx *store.Tx) (chain, error) {
	if c, ok := tx.Recall(chainKey{}).(chain); ok {
		return c, nil
	}
	var c chain
	_, err := tx.Exec(`INSERT INTO audit_node (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`, tx.Node())
	if err != nil {
		return c, err
	}
	if err := tx.QueryRow(`SELECT no FROM audit_node WHERE name = $1`, tx.Node()).Scan(&c.node); err != nil {
		return c, err
	}
	var pos int64
	var hash []byte
	err = tx.QueryRow(`SELECT pos, hash FROM audit_record WHERE pos >= $1 AND pos < $2 ORDER BY pos DESC LIMIT 1`,
		position(c.node, 0), position(c.node+1, 0)).Scan(&pos, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return c, nil
	case err != nil:
		return c, err
	}
	c.seq = seqOf(pos)
	c.hash, err = toHash(hash)
	return c, err
}

// toHash turns a column into a hash. A wrong length is damage, not a reason to panic.
func toHash(b []byte) (tlog.Hash, error) {
	if len(b) != tlog.HashSize {
		return tlog.Hash{}, fmt.Errorf("%w: a hash of %d bytes", ErrTampered, len(b))
	}
	return tlog.Hash(b), nil
}
