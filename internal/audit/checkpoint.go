package audit

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// ErrCheckpoint says that a checkpoint is not one of this log, or not signed by the key it should be.
var ErrCheckpoint = errors.New("audit: not a checkpoint of this log")

// Checkpoint is a signed statement of what the log held: with it, and the public key, nobody can rewrite what came
// before. Note is the signed text, in the format of transparency logs (c2sp.org/tlog-checkpoint).
type Checkpoint struct {
	Origin string
	Size   int64
	Root   tlog.Hash
	Note   []byte
}

// checkpointText is what is signed.
func checkpointText(origin string, size int64, root tlog.Hash) string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin, size, root)
}

// ParseCheckpoint checks the signature of a note by one of the public keys, given one per line, and reads it.
func ParseCheckpoint(signed []byte, publicKeys string) (Checkpoint, error) {
	verifiers, err := parseVerifiers(publicKeys)
	if err != nil {
		return Checkpoint{}, err
	}
	return openCheckpoint(signed, verifiers)
}

func openCheckpoint(signed []byte, verifiers note.Verifiers) (Checkpoint, error) {
	n, err := note.Open(signed, verifiers)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	c := Checkpoint{Note: signed}
	lines := strings.Split(n.Text, "\n")
	if len(lines) < 4 {
		return c, fmt.Errorf("%w: it has %d lines", ErrCheckpoint, len(lines))
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, fmt.Errorf("%w: its size is %q", ErrCheckpoint, lines[1])
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return c, fmt.Errorf("%w: its root is %q", ErrCheckpoint, lines[2])
	}
	c.Root = tlog.Hash(root)
	return c, nil
}

// Latest returns the newest checkpoint, or an error that wraps ErrNotFound. Its signature is not checked.
func (l *Log) Latest(ctx context.Context) (Checkpoint, error) {
	var c Checkpoint
	err := l.store.Read(ctx, func(tx *store.Tx) (err error) {
		c, err = latestCheckpoint(tx)
		return err
	})
	return c, err
}

func latestCheckpoint(tx *store.Tx) (Checkpoint, error) {
	c, err := scanCheckpoint(tx.QueryRow(`SELECT origin, c.size, c.root, note FROM audit_checkpoint c, audit_head
		ORDER BY c.size DESC LIMIT 1`))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("%w: no checkpoint has been signed yet", ErrNotFound)
	}
	return c, err
}

func scanCheckpoint(row interface{ Scan(...any) error }) (Checkpoint, error) {
	var c Checkpoint
	var root []byte
	if err := row.Scan(&c.Origin, &c.Size, &root, &c.Note); err != nil {
		return c, err
	}
	var err error
	c.Root, err = toHash(root)
	return c, err
}

// Checkpoint signs the tree as it stands, after taking in what waits, and stores and publishes the result. If this
// size has been signed before, that checkpoint is returned; with another root it never is signed.
func (q *Sequencer) Checkpoint(ctx context.Context) (Checkpoint, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		n, err := q.step(ctx)
		if err != nil && !errors.Is(err, errFenced) {
			return Checkpoint{}, err
		}
		if err == nil && n < stepSize {
			break
		}
	}
	h := q.tail.head // verified by this node, unlike what the table says by now
	signed, err := note.Sign(&note.Note{Text: checkpointText(h.origin, h.size, h.root)}, q.opts.Keys.signer)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("sign a checkpoint: %w", err)
	}
	var c Checkpoint
	err = q.log.store.Write(ctx, func(tx *store.Tx) error {
		c, err = storeCheckpoint(tx, Checkpoint{Origin: h.origin, Size: h.size, Root: h.root, Note: signed})
		return err
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("store a checkpoint: %w", err)
	}
	q.signed = c.Size
	q.publish(c)
	return c, nil
}

func storeCheckpoint(tx *store.Tx, c Checkpoint) (Checkpoint, error) {
	_, err := tx.Exec(`INSERT INTO audit_checkpoint (size, root, note) VALUES ($1, $2, $3) ON CONFLICT (size) DO NOTHING`,
		c.Size, c.Root[:], c.Note)
	if err != nil {
		return c, err
	}
	stored, err := scanCheckpoint(tx.QueryRow(`SELECT origin, c.size, c.root, note FROM audit_checkpoint c, audit_head
		WHERE c.size = $1`, c.Size))
	if err != nil {
		return c, err
	}
	if stored.Root != c.Root {
		return c, fmt.Errorf("%w: size %d was signed with another root", ErrTampered, c.Size)
	}
	return stored, nil
}
