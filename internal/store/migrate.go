package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
)

// migrationFiles holds one folder per database. To change the schema, add the next number to both, with the same
// name; a file that has been released is never edited.
//
//go:embed migrations
var migrationFiles embed.FS

// migration is one NNN_name.sql file.
type migration struct {
	number   int
	name     string
	sql      string
	checksum string
}

const createMigrations = `CREATE TABLE store_migration (
	number INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	checksum TEXT NOT NULL
)`

// loadMigrations reads the files of one database in the order of their numbers.
func loadMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql") // sorted, and the numbers have the same width
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, file := range names {
		digits, name, ok := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		number, err := strconv.Atoi(digits)
		if !ok || err != nil || len(digits) != 3 {
			return nil, fmt.Errorf("migration %s is not named NNN_name.sql", file)
		}
		if len(all) > 0 && all[len(all)-1].number == number {
			return nil, fmt.Errorf("two migrations have the number %03d", number)
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		all = append(all, migration{number, name, string(text), hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// migrate brings the schema up to date in one transaction: all of it, or nothing.
func (s *Store) migrate(ctx context.Context) error {
	files, err := s.dialect.migrations()
	if s.opts.Migrations != nil {
		files, err = s.opts.Migrations, nil
	}
	if err != nil {
		return err
	}
	known, err := loadMigrations(files)
	if err != nil {
		return err
	}
	conn, err := s.writeDB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, s.dialect.beginWrite()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	err = s.migrateIn(ctx, conn, known)
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rollback)
	}
	return nil
}

func (s *Store) migrateIn(ctx context.Context, conn *sql.Conn, known []migration) error {
	if lock := s.dialect.lockSchema(); lock != "" {
		if _, err := conn.ExecContext(ctx, lock); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
	applied, err := s.applied(ctx, conn)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	pending, err := compare(known, applied)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if len(applied) == 0 {
		level = slog.LevelDebug // a new database; nobody's data is touched
	}
	for _, m := range pending {
		s.log.Log(ctx, level, "store: migrating the schema", "number", m.number, "name", m.name)
		if _, err := conn.ExecContext(ctx, m.sql); err != nil {
			return fmt.Errorf("migration %03d_%s: %w", m.number, m.name, err)
		}
		_, err := conn.ExecContext(ctx, `INSERT INTO store_migration (number, name, checksum) VALUES ($1, $2, $3)`,
			m.number, m.name, m.checksum)
		if err != nil {
			return fmt.Errorf("migration %03d_%s: %w", m.number, m.name, err)
		}
	}
	return nil
}

// applied reads which migrations the database has had. The table is created only where it is missing, so that a role
// without the right to create tables can open a database that is up to date.
func (s *Store) applied(ctx context.Context, conn *sql.Conn) ([]migration, error) {
	var n int
	if err := conn.QueryRowContext(ctx, s.dialect.hasTable(), "store_migration").Scan(&n); err != nil {
		return nil, err
	}
	if n == 0 {
		_, err := conn.ExecContext(ctx, createMigrations)
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, `SELECT number, name, checksum FROM store_migration ORDER BY number`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []migration
	for rows.Next() {
		var m migration
		if err := rows.Scan(&m.number, &m.name, &m.checksum); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, rows.Err()
}

// compare returns the migrations still to run. What has run must be a beginning of what we know, unchanged.
func compare(known, applied []migration) ([]migration, error) {
	for i, a := range applied {
		switch {
		case i >= len(known):
			return nil, fmt.Errorf("%w: it has migration %03d_%s; start the newer gatehouse that wrote it, or restore "+
				"a copy of the database from before that upgrade", ErrFuture, a.number, a.name)
		case known[i].number != a.number || known[i].name != a.name:
			return nil, fmt.Errorf("%w: it has migration %03d_%s where this program has %03d_%s; start the gatehouse "+
				"that wrote it, or restore a copy of the database", ErrHistory, a.number, a.name, known[i].number, known[i].name)
		case known[i].checksum != a.checksum:
			return nil, fmt.Errorf("%w: migration %03d_%s has been edited since it ran; a released migration is never "+
				"changed: put it back and add a new one", ErrHistory, a.number, a.name)
		}
	}
	return known[len(applied):], nil
}
