package store_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// A process that is killed at random moments loses nothing that it said was durable, though it was only in the journal,
// and what it said is there once.
func TestKilledLightWriter(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	opts.Alone = true
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, createKept)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for range 8 {
		out, cmd := start(t, "write lightly until killed", opts.Dir)
		for range 1 + rand.IntN(200) {
			n, err := strconv.Atoi(line(t, out))
			if err != nil {
				t.Fatal(out.Text())
			}
			acknowledged = n
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what it said before it died
			if n, err := strconv.Atoi(out.Text()); err == nil {
				acknowledged = n
			}
		}
		last, rows := kept(t, opts)
		if last < acknowledged || rows != last {
			t.Fatalf("%d was acknowledged; there are %d rows, the last is %d", acknowledged, rows, last)
		}
	}
}

// kept opens the database as after a crash and says what is in it.
func kept(t *testing.T, opts store.Options) (last, rows int) {
	t.Helper()
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT coalesce(max(n), 0), count(*) FROM kept`).Scan(&last, &rows)
	})
	if err != nil {
		t.Fatal(err)
	}
	return last, rows
}

// crashed leaves a data directory behind as a crash would: the journal has five rows that the database has not.
func crashed(t *testing.T, change func(journal []byte) []byte) store.Options {
	t.Helper()
	opts := storetest.SQLite(t)
	opts.Alone = true
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	for n := range 5 {
		if err := s.WriteLight(t.Context(), func(tx *store.Tx) error { return tx.Put(keptTable, n+1, []byte("body")) }); err != nil {
			t.Fatal(err)
		}
	}
	left := opts
	left.Dir = t.TempDir()
	names, err := filepath.Glob(filepath.Join(opts.Dir, "gatehouse.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "gatehouse.journal" {
			if text = change(text); text == nil {
				continue
			}
		}
		if err := os.WriteFile(filepath.Join(left.Dir, filepath.Base(name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// span is where an entry is, without what fills it up.
type span struct{ at, end int }

// entries finds the entries of a journal, each at the beginning of a block.
func entries(j []byte) (all []span) {
	for at := 0; at < len(j) && string(j[at:at+4]) == "ghj2"; {
		end := at + 20 + int(binary.BigEndian.Uint32(j[at+4:]))
		all = append(all, span{at, end})
		at = (end + 4095) / 4096 * 4096
	}
	return all
}

// packed writes a journal as an earlier program did: one entry right after the other.
func packed(j []byte) (out []byte) {
	for _, e := range entries(j) {
		entry := append([]byte("ghj1"), j[e.at+4:e.end]...)
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		sum.Write(entry[:16])
		sum.Write(entry[20:])
		binary.BigEndian.PutUint32(entry[16:], sum.Sum32())
		out = append(out, entry...)
	}
	return append(out, make([]byte, 4096)...)
}

// A journal is read up to where it was written: a torn entry, and what lies behind the last, count for nothing.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func([]byte) []byte
		want   int
	}{
		"whole":            {func(j []byte) []byte { return j }, 5},
		"cut in the last":  {func(j []byte) []byte { return j[:entries(j)[4].end-1] }, 4},
		"cut after it":     {func(j []byte) []byte { return j[:entries(j)[4].end] }, 5},
		"a bit of a third": {func(j []byte) []byte { j[entries(j)[2].end-1] ^= 1; return j }, 2},
		"the first's head": {func(j []byte) []byte { j[9] ^= 1; return j }, 0},
		"an older tail":    {func(j []byte) []byte { return append(j[:entries(j)[3].at:entries(j)[3].at], j[:entries(j)[1].at]...) }, 3},
		"as it was before": {packed, 5},
		"zeros":            {func(j []byte) []byte { clear(j); return j }, 0},
		"none":             {func([]byte) []byte { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := crashed(t, test.change)
			for range 2 { // the second time there is nothing left to take over
				if last, rows := kept(t, opts); rows != test.want || last != test.want {
					t.Errorf("%d rows up to %d, want %d", rows, last, test.want)
				}
			}
			if _, err := os.Stat(filepath.Join(opts.Dir, "gatehouse.journal")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the journal is still there: %v", err)
			}
		})
	}
}

// A database that was put back from an older copy does not take over the journal of a newer one.
func TestJournalOfAnother(t *testing.T) {
	t.Parallel()
	opts := crashed(t, func(j []byte) []byte { return j })
	journal := filepath.Join(opts.Dir, "gatehouse.journal")
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, text[entries(text)[1].at:], 0o600); err != nil { // the first entry is lost
		t.Fatal(err)
	}
	if s, err := store.Open(t.Context(), opts); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("opened: %v", err)
		if err == nil {
			s.Close()
		}
	}
}

// The clock does not go back to before a crash, though its last reading was only in the journal.
func TestJournalKeepsClock(t *testing.T) {
	t.Parallel()
	wall := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	opts := storetest.SQLite(t)
	opts.Alone, opts.Clock = true, func() time.Time { return wall }
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	wall = wall.Add(time.Hour)
	if err := s.WriteLight(t.Context(), func(tx *store.Tx) error { return tx.Put(keptTable, 1, nil) }); err != nil {
		t.Fatal(err)
	}
	left := opts
	left.Dir = t.TempDir()
	if err := os.CopyFS(left.Dir, os.DirFS(opts.Dir)); err != nil {
		t.Fatal(err)
	}
	left.Clock = func() time.Time { return wall.Add(-30 * time.Minute) }
	after := storetest.Open(t, left)
	err := after.Read(t.Context(), func(tx *store.Tx) error {
		now, err := tx.Now()
		if err == nil && now.Before(wall) {
			t.Errorf("it is %s, and was %s", now, wall)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What cannot be put into the database is a reason to take no more: a gate whose database is full, locked or read-only
// says so, and does not go on until the journal is full as well.
func TestJournalDoesNotHideFailures(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	d := &storetest.Driver{}
	opts.Alone, opts.Wrap = true, d.Wrap
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	put := func(n int) error {
		return s.WriteLight(t.Context(), func(tx *store.Tx) error { return tx.Put(keptTable, n, nil) })
	}
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	d.Before(func(query string) error {
		if query == "BEGIN IMMEDIATE" {
			return store.ErrLocked
		}
		return nil
	})
	if err := put(2); err != nil {
		t.Errorf("before anybody could notice: %v", err)
	}
	if n := count(t, s); n != 0 {
		t.Errorf("%d rows in a database that cannot be written", n)
	}
	wantErr(t, "a write after that", put(3), store.ErrLocked, store.ErrCommit)
	d.Before(nil)
	if err := put(4); err != nil {
		t.Error(err)
	}
	if n := count(t, s); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}
