package rulebook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// load reads what is in force, and whom the approvers trust.
func (b *Book) load(ctx context.Context) error {
	var files []file
	var head session.Head
	trusted, projects := make(map[trust]bool), make(map[string]*project)
	err := b.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if head, err = b.opts.Sessions.PolicyHead(tx, Scope); errors.Is(err, session.ErrNotFound) {
			return b.isNew(tx)
		}
		if err != nil {
			return err
		}
		if files, err = b.readFiles(tx, Scope); err != nil {
			return err
		}
		if err := b.readProjects(tx, projects); err != nil {
			return err
		}
		return b.readTrust(tx, trusted)
	})
	if err != nil || head.Hash.IsZero() {
		return err
	}
	b.mu.Lock()
	b.trusted = trusted
	b.mu.Unlock()
	ed, err := b.compile(files)
	if err != nil {
		return fmt.Errorf("the policy in the store does not compile: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.force, b.head, b.projects = ed, head.Hash, projects
	return nil
}

// isNew says that a store without a head is a new one. One that holds files
// lost its head to someone who wants those on disk to be taken unasked.
func (b *Book) isNew(tx *store.Tx) error {
	var rows int
	if err := tx.QueryRow(`SELECT COUNT(*) FROM policy_files`).Scan(&rows); err != nil {
		return err
	}
	if rows > 0 {
		return fmt.Errorf("the stored policy has no head: %w", session.ErrForged)
	}
	return nil
}

// write puts an edition in force in the store: the head moves from the
// policy that the change was judged against, or not at all.
func (b *Book) write(tx *store.Tx, from call.Digest, to *edition, by string) error {
	if _, err := b.opts.Sessions.SetPolicyHead(tx, Scope, from, to.snap.Hash, by); err != nil {
		return err
	}
	if err := b.writeFiles(tx, Scope, to.files, by); err != nil {
		return err
	}
	store.Notify(tx, Scope, to.snap.Hash.String())
	return nil
}

// signature signs a row, so that the files in force cannot be changed in the
// database by anyone who does not hold the gate's key.
func (b *Book) signature(scope string, content []byte) *keyring.Row {
	return b.opts.Keys.Row("policy files").Text(scope).Bytes(content)
}

func (b *Book) writeFiles(tx *store.Tx, scope string, files []file, by string) error {
	content, err := json.Marshal(files)
	if err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO policy_files (scope, content, set_by, set_at, mac) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope) DO UPDATE SET content = excluded.content, set_by = excluded.set_by, set_at = excluded.set_at, mac = excluded.mac`,
		scope, content, by, keyring.Micros(now), b.signature(scope, content).Sum())
	return err
}

// readFiles returns the files of a scope. Whoever asks knows that there is a
// row, be it for no files: one that is gone was taken away.
func (b *Book) readFiles(tx *store.Tx, scope string) ([]file, error) {
	var content, mac []byte
	err := tx.QueryRow(`SELECT content, mac FROM policy_files WHERE scope = $1`, scope).Scan(&content, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("the stored policy of %s is missing: %w", scope, session.ErrForged)
	}
	if err != nil {
		return nil, err
	}
	if !b.signature(scope, content).Is(mac) {
		return nil, fmt.Errorf("the stored policy of %s: %w", scope, session.ErrForged)
	}
	var files []file
	return files, json.Unmarshal(content, &files)
}

// trust is an approver's word for one text at one path.
type trust struct {
	path   string
	digest call.Digest
}

func (b *Book) trustRow(t trust) *keyring.Row {
	return b.opts.Keys.Row("trust").Text(t.path).Bytes(t.digest[:])
}

// writeTrust lets a project's file loosen, as it is and where it is.
func (b *Book) writeTrust(tx *store.Tx, t trust, by string) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO policy_trust (path, digest, set_by, set_at, mac) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (path, digest) DO NOTHING`, t.path, t.digest[:], by, keyring.Micros(now), b.trustRow(t).Sum())
	store.Notify(tx, Scope, "trust")
	return err
}

// readProjects returns the remembered files of projects.
func (b *Book) readProjects(tx *store.Tx, projects map[string]*project) error {
	rows, err := tx.Query(`SELECT scope FROM policy_files WHERE scope LIKE 'project:%'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var scopes []string
	for rows.Next() {
		var scope string
		if err := rows.Scan(&scope); err != nil {
			return err
		}
		scopes = append(scopes, scope)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, scope := range scopes {
		files, err := b.readFiles(tx, scope)
		if err != nil {
			return err
		}
		for _, f := range files {
			projects[f.Path] = &project{content: f.Content}
		}
	}
	return nil
}

func (b *Book) readTrust(tx *store.Tx, trusted map[trust]bool) error {
	rows, err := tx.Query(`SELECT path, digest, mac FROM policy_trust`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t trust
		var digest, mac []byte
		if err := rows.Scan(&t.path, &digest, &mac); err != nil {
			return err
		}
		if len(digest) != copy(t.digest[:], digest) || !b.trustRow(t).Is(mac) {
			return fmt.Errorf("a trusted digest: %w", session.ErrForged)
		}
		trusted[t] = true
	}
	return rows.Err()
}
