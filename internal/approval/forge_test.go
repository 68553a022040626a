package approval_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// columns lists a table's columns.
func columns(tx *store.Tx, table string) ([]string, error) {
	query := `SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY 1`
	if tx.Dialect() == store.SQLite {
		query = `SELECT name FROM pragma_table_info($1) ORDER BY 1`
	}
	return store.All(tx, func(rows *store.Rows) (name string, err error) { return name, rows.Scan(&name) }, query, table)
}

// other is a value that differs from v and fits its column.
func other(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case bool:
		return !v
	case int64:
		if v == 0 || v == 1 {
			return 1 - v // it may be a truth value
		}
		return v + 1
	case []byte:
		if len(v) == 0 {
			return []byte{1}
		}
		w := append([]byte(nil), v...)
		w[len(w)-1] ^= 1
		return w
	}
	panic(fmt.Sprintf("a column of type %T", v))
}

// TestEditedRowsAreRefused is attack 2: whoever can write to the database but
// does not have the key changes one column, any column, of a row, and nothing
// that reads the row goes on.
func TestEditedRowsAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		pending := o.file(t, ask("s1", 1), plenty)
		g := o.granted(t, ask("s1", 2), nil, plenty)
		var link, cookie string
		o.write(t, func(tx *store.Tx) error {
			l, err1 := o.NewLink(tx, "ada")
			c, _, err2 := o.SignIn(tx, "ada", "test")
			link, cookie = l.Reveal(), c.Reveal()
			return errors.Join(err1, err2)
		})
		tables := []struct {
			table, where string
			use          func(tx *store.Tx) error
		}{
			{"approval_request", "state = 'pending'", func(tx *store.Tx) error {
				_, _, err := o.Answer(tx, pending.ID, yes(pending), plenty)
				return err
			}},
			{"approval_grant", "1 = 1", func(tx *store.Tx) error {
				_, err := o.Consume(tx, g.ID)
				return err
			}},
			{"approver", "1 = 1", func(tx *store.Tx) error {
				_, err := o.CheckCredential(tx, o.ada)
				return err
			}},
			{"sign_in_link", "1 = 1", func(tx *store.Tx) error {
				_, _, err := o.RedeemLink(tx, link, "x")
				return err
			}},
			{"console_session", "1 = 1", func(tx *store.Tx) error {
				_, _, err := o.CheckCookie(tx, cookie)
				return err
			}},
			{"approval_mark", "1 = 1", func(tx *store.Tx) error {
				_, err := o.AddApprover(tx, "ada", "bob")
				return err
			}},
		}
		for _, table := range tables {
			if err := o.back(t, table.use); err != nil {
				t.Fatalf("%s: as it is: %v", table.table, err)
			}
			var names []string
			o.read(t, func(tx *store.Tx) (err error) { names, err = columns(tx, table.table); return err })
			if len(names) < 3 {
				t.Fatalf("%s has the columns %v", table.table, names)
			}
			for _, column := range names {
				err := o.back(t, func(tx *store.Tx) error {
					var v any
					if err := tx.QueryRow(`SELECT ` + column + ` FROM ` + table.table + ` WHERE ` + table.where).Scan(&v); err != nil {
						t.Fatal(err)
					}
					if _, err := tx.Exec(`UPDATE `+table.table+` SET `+column+` = $1 WHERE `+table.where, other(v)); err != nil {
						t.Fatal(err)
					}
					return table.use(tx)
				})
				// Renamed, a row is not found; otherwise it is seen to be forged.
				if !errors.Is(err, approval.ErrForged) && !errors.Is(err, approval.ErrNotFound) && !errors.Is(err, approval.ErrCredential) {
					t.Errorf("%s.%s was edited: got %v, want %v", table.table, column, err, approval.ErrForged)
				}
			}
		}
	})
}

// TestForgedGrantDeniesThePrincipal: a grant that was moved to another session
// in the database covers nothing there.
func TestForgedGrantDeniesThePrincipal(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		o.granted(t, ask("s1", 1), forSession, plenty)
		for _, edit := range []string{
			`UPDATE approval_grant SET session = 's2'`,
			`UPDATE approval_grant SET session = 's2', expires = expires + 1000000`,
		} {
			err := o.back(t, func(tx *store.Tx) error {
				if _, err := tx.Exec(edit); err != nil {
					t.Fatal(err)
				}
				_, err := o.Grants(tx, principal("s2"))
				return err
			})
			if !errors.Is(err, approval.ErrForged) {
				t.Errorf("%s: got %v, want %v", edit, err, approval.ErrForged)
			}
		}
		used := o.granted(t, ask("s3", 2), nil, plenty)
		o.write(t, func(tx *store.Tx) error { _, err := o.Consume(tx, used.ID); return err })
		err := o.back(t, func(tx *store.Tx) error {
			if _, err := tx.Exec(`UPDATE approval_grant SET state = 'good', uses = 0, ended = 0 WHERE id = $1`, used.ID); err != nil {
				t.Fatal(err)
			}
			_, err := o.Consume(tx, used.ID)
			return err
		})
		if !errors.Is(err, approval.ErrForged) {
			t.Errorf("a spent grant was made good again: %v", err)
		}
	})
}
