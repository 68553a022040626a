package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// ErrProof says that a proof does not prove what it claims.
var ErrProof = errors.New("audit: the proof is wrong")

// Proof is a document that proves, to whoever has the public key and nothing else, that a record is in the log, or
// that the log of an old checkpoint is the beginning of that of a newer one. It is meant to be kept as JSON.
type Proof struct {
	// Record and Prev, the hash of the record before it in its node's chain, are there to prove that it is in the log.
	Record *exportRecord `json:"record,omitempty"`
	Prev   *tlog.Hash    `json:"prev,omitempty"`
	// Old is there to prove that nothing was rewritten since.
	Old string `json:"old,omitempty"`

	Hashes     []tlog.Hash `json:"hashes"`
	Checkpoint string      `json:"checkpoint"`
}

// Proven is what a proof proves.
type Proven struct {
	Record     *Record     // nil if the proof is about an old checkpoint
	Old        *Checkpoint // nil if it is about a record
	Checkpoint Checkpoint  // signed by the key
}

// Prove proves that the record at the index is in the log, by the newest checkpoint. A record younger than that
// cannot be proved yet; the error wraps ErrNotFound.
func (l *Log) Prove(ctx context.Context, index int64) (*Proof, error) {
	var p *Proof
	err := l.store.Read(ctx, func(tx *store.Tx) error {
		c, err := latestCheckpoint(tx)
		if err != nil {
			return err
		}
		if index < 0 || index >= c.Size {
			return fmt.Errorf("%w: the newest checkpoint covers the first %d records, not record %d", ErrNotFound, c.Size, index)
		}
		hashes, err := tlog.ProveRecord(c.Size, index, treeReader(tx))
		if err != nil {
			return err
		}
		p = &Proof{Hashes: hashes, Checkpoint: string(c.Note)}
		return p.addRecord(tx, index)
	})
	if err != nil {
		return nil, fmt.Errorf("prove record %d: %w", index, err)
	}
	return p, nil
}

func (p *Proof) addRecord(tx *store.Tx, index int64) error {
	records, err := readIndexes(tx, index, index+1)
	if err != nil {
		return err
	}
	if len(records) != 1 {
		return fmt.Errorf("%w: record %d is gone", ErrTampered, index)
	}
	r := records[0]
	p.Record, p.Prev = toExport(r), &tlog.Hash{}
	if r.Seq == 1 {
		return nil
	}
	var prev []byte
	if err := tx.QueryRow(`SELECT hash FROM audit_record WHERE pos = $1`, r.pos-1).Scan(&prev); err != nil {
		return err
	}
	*p.Prev, err = toHash(prev)
	return err
}

// ProveConsistency proves that the log at an old checkpoint is the beginning of the log at the newest one.
func (l *Log) ProveConsistency(ctx context.Context, old []byte, publicKeys string) (*Proof, error) {
	before, err := ParseCheckpoint(old, publicKeys)
	if err != nil {
		return nil, err
	}
	var p *Proof
	err = l.store.Read(ctx, func(tx *store.Tx) error {
		c, err := latestCheckpoint(tx)
		if err != nil {
			return err
		}
		if before.Origin != c.Origin {
			return fmt.Errorf("%w: it is of log %q, this is %q", ErrCheckpoint, before.Origin, c.Origin)
		}
		if before.Size > c.Size {
			return fmt.Errorf("%w: the newest checkpoint has %d records, the old one %d", ErrTampered, c.Size, before.Size)
		}
		p = &Proof{Old: string(old), Checkpoint: string(c.Note)}
		if before.Size > 0 {
			p.Hashes, err = tlog.ProveTree(c.Size, before.Size, treeReader(tx))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("prove consistency: %w", err)
	}
	return p, nil
}

// CheckProof judges a proof with nothing but the public keys, one per line.
func CheckProof(document []byte, publicKeys string) (*Proven, error) {
	verifiers, err := parseVerifiers(publicKeys)
	if err != nil {
		return nil, err
	}
	var p Proof
	if err := json.Unmarshal(document, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	c, err := openCheckpoint([]byte(p.Checkpoint), verifiers)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	proven := &Proven{Checkpoint: c}
	switch {
	case p.Record != nil && p.Prev != nil && p.Old == "":
		proven.Record, err = p.checkRecord(c)
	case p.Old != "" && p.Record == nil:
		proven.Old, err = p.checkOld(c, verifiers)
	default:
		err = errors.New("it is neither about a record nor about a checkpoint")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return proven, nil
}

func (p *Proof) checkRecord(c Checkpoint) (*Record, error) {
	r, err := p.Record.record()
	if err != nil {
		return nil, err
	}
	if r.leaf(*p.Prev) != r.Hash {
		return nil, errors.New("the record does not fit its hash")
	}
	if !r.Dropped && bodyHash(r.salt, r.Body) != r.BodyHash {
		return nil, errors.New("the body does not fit its hash")
	}
	return r, tlog.CheckRecord(p.Hashes, c.Size, c.Root, r.Index, r.Hash)
}

func (p *Proof) checkOld(c Checkpoint, verifiers note.Verifiers) (*Checkpoint, error) {
	old, err := openCheckpoint([]byte(p.Old), verifiers)
	if err != nil {
		return nil, err
	}
	if old.Origin != c.Origin {
		return nil, fmt.Errorf("the checkpoints are of logs %q and %q", old.Origin, c.Origin)
	}
	if old.Size == 0 {
		return &old, nil // every log begins with nothing
	}
	return &old, tlog.CheckTree(p.Hashes, c.Size, c.Root, old.Size, old.Root)
}
