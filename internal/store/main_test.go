package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// childEnv names what the test binary does when it is started by a test as another process.
const childEnv = "GATEHOUSE_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role, os.Args[1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child does its part, says so on its standard output, and waits for the end of its standard input.
func child(role, dir string) error {
	switch role {
	case "hold the directory":
		if _, err := store.Lock(dir); err != nil {
			return err
		}
	case "hold the database":
		if err := holdDatabase(dir); err != nil {
			return err
		}
	case "fill the disk":
		if err := fillDisk(dir); err != nil {
			return err
		}
	case "write until killed":
		return writeUntilKilled(dir, false)
	case "write lightly until killed":
		return writeUntilKilled(dir, true)
	default:
		return fmt.Errorf("no such role: %s", role)
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func holdDatabase(dir string) error {
	db, err := sql.Open("sqlite", dir+"/gatehouse.db?_txlock=immediate")
	if err != nil {
		return err
	}
	_, err = db.Begin()
	return err
}

// fillDisk writes while the process may not make any file larger, and then again when it may.
func fillDisk(dir string) error {
	s, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	put := func() error {
		return s.Write(context.Background(), func(tx *store.Tx) error {
			_, err := tx.Exec(`INSERT INTO kept (body) VALUES ($1)`, make([]byte, 20_000))
			return err
		})
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 400_000, Max: old.Max}); err != nil {
		return err
	}
	kept := 0
	for ; kept < 1000 && err == nil; kept++ {
		err = put()
	}
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull) || !errors.Is(err, store.ErrCommit) {
		return fmt.Errorf("write %d on a full disk: %w", kept, err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := put(); err != nil {
		return fmt.Errorf("after the disk had room again: %w", err)
	}
	fmt.Println(kept) // the one that failed is made up for by the last
	return nil
}

// writeUntilKilled acknowledges each number on its standard output once the store says it is durable.
func writeUntilKilled(dir string, light bool) error {
	s, err := store.Open(context.Background(), store.Options{Dir: dir, Alone: light})
	if err != nil {
		return err
	}
	var next int64
	err = s.Read(context.Background(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT coalesce(max(n), 0) FROM kept`).Scan(&next)
	})
	if err != nil {
		return err
	}
	for {
		next++
		var err error
		switch {
		case light && next%50 == 0: // and now and then all that waits goes into the database
			err = s.Read(context.Background(), func(*store.Tx) error { return nil })
			fallthrough
		case light:
			err = errors.Join(err, s.WriteLight(context.Background(), func(tx *store.Tx) error { return tx.Put(keptTable, next, make([]byte, 3000)) }))
		default:
			err = s.Write(context.Background(), func(tx *store.Tx) error {
				_, err := tx.Exec(`INSERT INTO kept (n, body) VALUES ($1, $2)`, next, make([]byte, 3000))
				return err
			})
		}
		if err != nil {
			return err
		}
		fmt.Println(next)
	}
}

var keptTable = store.NewTable("kept", "n", "body")

// start starts the test binary as another process and returns its output, after the line that it waits for, if any.
func start(t *testing.T, role, dir string) (out *bufio.Scanner, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // killed or not, it has ended
	})
	return bufio.NewScanner(stdout), cmd
}

func line(t *testing.T, out *bufio.Scanner) string {
	t.Helper()
	if !out.Scan() {
		t.Fatalf("the other process ended: %v", out.Err())
	}
	return out.Text()
}
