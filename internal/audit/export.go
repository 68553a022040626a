package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// exportFormat is the first line's mark. A change of what is hashed needs another.
const exportFormat = "gatehouse audit export v1"

// maxLine bounds a line of an export that is read.
const maxLine = 64 << 20

// exportLine is one line of an export: the header, a checkpoint or a record. The checkpoints come before the records,
// so that a verification needs to read it only once.
type exportLine struct {
	Format string     `json:"format,omitempty"`
	Origin string     `json:"origin,omitempty"`
	Size   int64      `json:"size,omitempty"`
	Root   *tlog.Hash `json:"root,omitempty"`

	Checkpoint string `json:"checkpoint,omitempty"`

	Record *exportRecord `json:"record,omitempty"`
}

// exportRecord is a record as text. The body is a string and not JSON within JSON, because its exact bytes are what was
// hashed and must survive whatever lays out the document anew; one that is not UTF-8 is given in base64.
type exportRecord struct {
	Index       int64     `json:"index"`
	ID          string    `json:"id"`
	Time        time.Time `json:"time"`
	Node        string    `json:"node"`
	Seq         int64     `json:"seq"`
	Kind        string    `json:"kind"`
	CallID      string    `json:"call_id,omitempty"`
	Principal   string    `json:"principal,omitempty"`
	Session     string    `json:"session,omitempty"`
	Surface     string    `json:"surface,omitempty"`
	Operation   string    `json:"operation,omitempty"`
	Level       string    `json:"level,omitempty"`
	Outcome     string    `json:"outcome,omitempty"`
	Correlation string    `json:"correlation,omitempty"`
	Dropped     bool      `json:"dropped,omitempty"`
	Salt        []byte    `json:"salt,omitempty"`
	Body        *string   `json:"body,omitempty"`
	BodyBytes   []byte    `json:"body_bytes,omitempty"`
	BodyHash    tlog.Hash `json:"body_hash"`
	Hash        tlog.Hash `json:"hash"`
}

func toExport(r *Record) *exportRecord {
	e := &exportRecord{
		Index: r.Index, ID: r.ID, Time: r.Time, Node: r.Node, Seq: r.Seq, Kind: r.Kind, CallID: r.CallID,
		Principal: r.Principal, Session: r.Session, Surface: r.Surface, Operation: r.Operation, Level: r.Level,
		Outcome: r.Outcome, Correlation: r.Correlation, Dropped: r.Dropped, Salt: r.salt, BodyHash: r.BodyHash, Hash: r.Hash,
	}
	switch text := string(r.Body); {
	case r.Dropped:
	case utf8.ValidString(text):
		e.Body = &text
	default:
		e.BodyBytes = r.Body
	}
	return e
}

// record is the reverse. Whether identifier, time and place fit each other is part of it: the position they come from
// is what was hashed.
func (e *exportRecord) record() (*Record, error) {
	r := &Record{
		Index: e.Index, ID: e.ID, Time: e.Time, Node: e.Node, Seq: e.Seq, Kind: e.Kind, CallID: e.CallID,
		Principal: e.Principal, Session: e.Session, Surface: e.Surface, Operation: e.Operation, Level: e.Level,
		Outcome: e.Outcome, Correlation: e.Correlation, Dropped: e.Dropped, salt: e.Salt, BodyHash: e.BodyHash, Hash: e.Hash,
	}
	r.Body = e.BodyBytes
	if e.Body != nil {
		r.Body = []byte(*e.Body)
	}
	micros, pos, err := parseID(e.ID)
	if err == nil && (micros != e.Time.UnixMicro() || seqOf(pos) != e.Seq) {
		err = errors.New("the identifier does not fit the record's time and place")
	}
	r.pos = pos
	return r, err
}

// Export writes the sequenced records as JSON Lines, with all that is needed to verify them without the database. It
// holds no transaction open for long.
func (l *Log) Export(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	var h head
	var notes [][]byte
	err := l.store.Read(ctx, func(tx *store.Tx) (err error) {
		if h, err = readHead(tx); err != nil {
			return err
		}
		notes, err = store.All(tx, func(rows *store.Rows) (n []byte, err error) {
			err = rows.Scan(&n)
			return n, err
		}, `SELECT note FROM audit_checkpoint WHERE size <= $1 ORDER BY size`, h.size)
		return err
	})
	if err != nil {
		return fmt.Errorf("export the log: %w", err)
	}
	if err := enc.Encode(exportLine{Format: exportFormat, Origin: h.origin, Size: h.size, Root: &h.root}); err != nil {
		return err
	}
	for _, n := range notes {
		if err := enc.Encode(exportLine{Checkpoint: string(n)}); err != nil {
			return err
		}
	}
	for from := int64(0); from < h.size; from += verifyBatch {
		if err := l.exportBatch(ctx, enc, from, min(from+verifyBatch, h.size)); err != nil {
			return fmt.Errorf("export the log: %w", err)
		}
	}
	return out.Flush()
}

func (l *Log) exportBatch(ctx context.Context, enc *json.Encoder, from, to int64) error {
	var records []*Record
	err := l.store.Read(ctx, func(tx *store.Tx) (err error) {
		records, err = readIndexes(tx, from, to)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := enc.Encode(exportLine{Record: toExport(r)}); err != nil {
			return err
		}
	}
	return nil
}

// VerifyExport does with an export what [Verify] does with the tables. The error says that it could not be read.
func VerifyExport(r io.Reader, publicKeys string, opts VerifyOptions) (*Report, error) {
	verifiers, err := parseVerifiers(publicKeys)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	first, err := nextLine(lines)
	if err != nil || first.Format != exportFormat || first.Root == nil {
		return nil, fmt.Errorf("not a %s: %w", exportFormat, err)
	}
	c := newChecker(verifiers)
	c.report.Origin = first.Origin
	if opts.Checkpoint != nil {
		c.checkpoint(opts.Checkpoint, "the checkpoint given")
	}
	for {
		line, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the export after record %d: %w", c.frontier.size-1, err)
		case line.Checkpoint != "":
			c.checkpoint([]byte(line.Checkpoint), "a checkpoint in the export")
		case line.Record != nil:
			c.exported(line.Record)
		}
	}
	c.finish(head{size: first.Size, root: *first.Root})
	return &c.report, nil
}

// exported judges a line's record: its place is a claim like any other.
func (c *checker) exported(e *exportRecord) {
	index := c.frontier.size
	r, err := e.record()
	r.Index = index
	if err != nil {
		c.blame(Changed, r, "%v", err)
	}
	if e.Index != index {
		c.blame(Missing, r, "the record in this place says it is %d", e.Index)
	}
	c.record(r)
}

func nextLine(lines *bufio.Scanner) (exportLine, error) {
	var line exportLine
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return line, err
		}
		return line, io.EOF
	}
	dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
	dec.DisallowUnknownFields()
	return line, dec.Decode(&line)
}
