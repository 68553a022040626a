package keyring

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// ErrOtherKeys refuses to start on a database that belongs to other keys.
var ErrOtherKeys = errors.New("the database belongs to other keys")

// ErrReplaced refuses to start on an empty database where these keys have been
// used with another one: whoever emptied it would otherwise enrol first.
var ErrReplaced = errors.New("these keys belong to another database, and this one is new")

// Bind ties the keys to the database, the first time, and checks the tie ever
// after. Call it at start-up, before anything else uses the keys.
func (k *Keyring) Bind(ctx context.Context, st *store.Store) error {
	known, err := k.known()
	if err != nil {
		return err
	}
	var name string
	if err := st.Write(ctx, func(tx *store.Tx) (err error) {
		name, err = k.bind(tx, known)
		return err
	}); err != nil {
		return fmt.Errorf("bind the keys to the database: %w", err)
	}
	if known == name {
		return nil
	}
	// The database first, the file second: a crash between them is made good
	// at the next start.
	if err := writeFile(k.dir, boundFile, name+"\n"); err != nil {
		return fmt.Errorf("bind the keys to the database: %w", err)
	}
	return nil
}

// known is the name of the database these keys were used with.
func (k *Keyring) known() (string, error) {
	path := filepath.Join(k.dir, boundFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := errors.Join(err, private(path, false)); err != nil {
		return "", fmt.Errorf("keys: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (k *Keyring) bind(tx *store.Tx, known string) (string, error) {
	if known == "" {
		if err := k.bindFirst(tx); err != nil {
			return "", err
		}
	}
	var name, fingerprint string
	var bound int64
	var mac []byte
	err := tx.QueryRow(`SELECT name, fingerprint, bound, mac FROM keyring`).Scan(&name, &fingerprint, &bound, &mac)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("%w: give it keys of its own, or restore the database %s", ErrReplaced, known)
	case err != nil:
		return "", err
	case fingerprint != k.Fingerprint() || !k.bindRow(name, bound).Is(mac):
		return "", fmt.Errorf("%w: they have the fingerprint %s, the database wants %.32q; copy the keys of the node that "+
			"created it", ErrOtherKeys, k.Fingerprint(), fingerprint)
	case known != "" && known != name:
		return "", fmt.Errorf("%w: it is %s, they were used with %s", ErrReplaced, name, known)
	}
	return name, nil
}

// bindFirst writes the tie, unless there is one.
func (k *Keyring) bindFirst(tx *store.Tx) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	name, err := NewID("db_", k.random)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO keyring (one, name, fingerprint, bound, mac) VALUES (1, $1, $2, $3, $4)
		ON CONFLICT (one) DO NOTHING`, name, k.Fingerprint(), Micros(now), k.bindRow(name, Micros(now)).Sum())
	return err
}

func (k *Keyring) bindRow(name string, bound int64) *Row {
	return k.Row("keyring").Text(name, k.Fingerprint()).Time(time.UnixMicro(bound))
}
