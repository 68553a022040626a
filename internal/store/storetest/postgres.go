package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser is the role that initdb creates.
const superuser = "gatehouse"

// errNoPostgres is why tests on PostgreSQL are skipped.
var errNoPostgres = errors.New("PostgreSQL is not installed (no initdb on the PATH or in /usr/lib/postgresql/*/bin)")

// guard runs the server and ends it when its own standard input does: a pipe whose other end the test process holds.
// Nothing the test process does, or fails to do before it dies, leaves a server or its data behind.
const guard = `dir=$0
"$@" & server=$!
read -r keep
kill -QUIT $server
wait $server
[ "$keep" ] || rm -rf "$dir"`

// shared is the cluster that the tests of one process use, each with a database of its own.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
	mu      sync.Mutex // CREATE DATABASE copies a template that nobody else may be using
	count   int
}

func sharedCluster(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = newCluster() })
	skipWithout(t, shared.err)
	return shared.cluster
}

func skipWithout(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoPostgres) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// account is another user than ours, if it is set.
type account struct {
	uid, gid uint32
	set      bool
}

// Cluster is a PostgreSQL server of the tests' own.
type Cluster struct {
	dir   string
	bin   string
	user  account // whom the server runs as
	guard *exec.Cmd
	hold  io.WriteCloser
}

// NewCluster starts a server for one test, which may stop and start it. Tests that only need a database use
// [Postgres].
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c, err := newCluster()
	skipWithout(t, err)
	t.Cleanup(func() { c.stop("") })
	return c
}

func newCluster() (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gatehouse-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin}
	if err := c.dropPrivileges(); err != nil {
		return nil, err
	}
	initdb := c.command("initdb", "-D", c.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return c, c.start()
}

// binaries finds the folder with initdb: the newest version's, or the PATH's.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errNoPostgres
}

// dropPrivileges picks the user the server runs as: PostgreSQL refuses to run as root.
func (c *Cluster) dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return fmt.Errorf("no unprivileged user to run PostgreSQL as: %w", err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	c.user = account{uint32(uid), uint32(gid), true}
	return os.Chown(c.dir, int(uid), int(gid))
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = c.user.attributes()
	return cmd
}

// Start starts the server again after Kill, on the same data.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
}

// start runs the server without syncs, which only a crash of the whole machine would miss.
func (c *Cluster) start() error {
	server := c.command("postgres", "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "full_page_writes=off", "-c", "max_connections=200", "-c", "deadlock_timeout=50ms")
	c.guard = exec.Command("/bin/sh", append([]string{"-c", guard, c.dir}, server.Args...)...)
	c.guard.Dir, c.guard.SysProcAttr = server.Dir, server.SysProcAttr
	log, err := os.Create(filepath.Join(c.dir, "log")) // a file needs no goroutine to copy it
	if err != nil {
		return err
	}
	defer log.Close()
	c.guard.Stdout, c.guard.Stderr = log, log
	hold, err := c.guard.StdinPipe()
	if err != nil {
		return err
	}
	c.hold = hold
	if err := c.guard.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := c.exec("SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			c.stop("")
			return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, text)
		}
	}
}

// Kill ends the server at once, as a crash would. Its data stay for Start.
func (c *Cluster) Kill() { c.stop("keep\n") }

// ReadOnly starts the server anew as a standby that follows nobody, which takes no writes, or as itself again.
func (c *Cluster) ReadOnly(t testing.TB, on bool) {
	t.Helper()
	c.Kill()
	signal := filepath.Join(c.data(), "standby.signal")
	err := os.Remove(signal)
	if on {
		err = os.WriteFile(signal, nil, 0o644)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	c.Start(t)
}

// stop tells the guard to end the server, and to remove its data unless it is told to keep them.
func (c *Cluster) stop(word string) {
	if c.hold == nil {
		if word == "" {
			_ = os.RemoveAll(c.dir)
		}
		return
	}
	_, _ = io.WriteString(c.hold, word) // a guard that is gone has done its work
	_ = c.hold.Close()
	_ = c.guard.Wait() // its status is that of a killed server
	c.hold = nil
}

// DSN is the URL of one of the cluster's databases.
func (c *Cluster) DSN(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database}
	u.RawQuery = url.Values{"host": {c.dir}}.Encode()
	return u.String()
}

// Exec runs a statement as the superuser.
func (c *Cluster) Exec(t testing.TB, statement string) {
	t.Helper()
	if err := c.exec(statement); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func (c *Cluster) createDatabase(t testing.TB) string {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.count++
	name := fmt.Sprintf("test%d", shared.count)
	if err := c.exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return c.DSN(name)
}
