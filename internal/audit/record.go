package audit

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"
)

// The kinds of records the gate writes. Others are allowed.
const (
	KindCall    = "call"    // what was asked, and the decision with its votes
	KindRequest = "request" // a person was asked
	KindVerdict = "verdict" // who answered, on which channel
	KindStart   = "start"   // the effect was let go
	KindOutcome = "outcome" // how it ended
	KindAdmin   = "admin"   // something about the gate itself changed
)

// Unsequenced is the index of a record that has none yet.
const Unsequenced = -1

// maxField bounds a column; what is longer belongs in the body.
const maxField = 1024

// ErrRecord refuses a record that the log could not hold or give back unchanged.
var ErrRecord = errors.New("audit: unfit record")

// Record is one event. The exported fields up to Body are the caller's to fill; [Append] fills the rest. After that it
// never changes.
type Record struct {
	Time        time.Time // by the database's clock; Append sets it if it is zero
	Kind        string
	CallID      string // the call it belongs to
	Principal   string
	Session     string
	Surface     string
	Operation   string
	Level       string
	Outcome     string
	Correlation string
	Body        []byte // canonical JSON; nil once retention has dropped it

	ID       string // unique; sorts by time
	Index    int64  // place in the log, or Unsequenced
	Node     string // who wrote it
	Seq      int64  // place in that node's chain, from 1
	Dropped  bool   // whether retention has dropped the body
	BodyHash tlog.Hash
	Hash     tlog.Hash // the leaf in the tree

	salt []byte
	pos  int64
}

// columns are the fields a filter can name, in the order of their numbers in posting keys: only ever add at the end.
func (r *Record) columns() [9]string {
	return [...]string{r.Node, r.Kind, r.Principal, r.Session, r.Surface, r.Operation, r.Level, r.Outcome, r.Correlation}
}

// validate refuses what PostgreSQL cannot store as text, so that both databases take the same records, and what would
// make two fields of one.
func (r *Record) validate() error {
	if r.Kind == "" {
		return fmt.Errorf("%w: it has no kind", ErrRecord)
	}
	fields := r.columns()
	for _, f := range append(fields[:], r.CallID) {
		switch {
		case len(f) > maxField:
			return fmt.Errorf("%w: a field has %d bytes, more than %d", ErrRecord, len(f), maxField)
		case !utf8.ValidString(f), strings.ContainsRune(f, 0), strings.Contains(f, fieldEnd):
			return fmt.Errorf("%w: field %q is not text", ErrRecord, f)
		}
	}
	return nil
}

// bodyHash commits to the body. The salt goes when the body goes, after which nobody can try out what it said.
func bodyHash(salt, body []byte) tlog.Hash {
	h := sha256.New()
	h.Write(salt)
	h.Write(body)
	return tlog.Hash(h.Sum(nil))
}

// leaf is the hash of everything the record says and of the record before it in its node's chain.
func (r *Record) leaf(prev tlog.Hash) tlog.Hash {
	b := make([]byte, 0, 512)
	b = append(b, "gatehouse record v1\n"...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.pos))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time.UnixMicro()))
	fields := r.columns()
	for _, f := range append(fields[:], r.CallID) {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	b = append(b, r.BodyHash[:]...)
	b = append(b, prev[:]...)
	return tlog.RecordHash(b)
}

// nodeShift leaves 40 bits for the place in a node's chain.
const nodeShift = 40

// position is the key of a record: its node's number and its place in that node's chain.
func position(node, seq int64) int64 { return node<<nodeShift | seq }

func nodeOf(pos int64) int64 { return pos >> nodeShift }
func seqOf(pos int64) int64  { return pos & (1<<nodeShift - 1) }

// idEncoding keeps the order of what it encodes.
var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// makeID puts the time first, so that identifiers sort by it, and the position, so that they are unique and lead to
// the record without an index.
func makeID(micros, pos int64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(micros))
	binary.BigEndian.PutUint64(b[8:], uint64(pos))
	var text [26]byte
	idEncoding.Encode(text[:], b[:])
	return string(text[:])
}

// parseID is the reverse of makeID.
func parseID(id string) (micros, pos int64, err error) {
	b, err := idEncoding.DecodeString(id)
	if err != nil || len(b) != 16 {
		return 0, 0, fmt.Errorf("%w: %q is not the identifier of a record", ErrNotFound, id)
	}
	micros, pos = int64(binary.BigEndian.Uint64(b[:8])), int64(binary.BigEndian.Uint64(b[8:]))
	if makeID(micros, pos) != id { // the last letter has bits to spare
		return 0, 0, fmt.Errorf("%w: %q is not the identifier of a record", ErrNotFound, id)
	}
	return micros, pos, nil
}
