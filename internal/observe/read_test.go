//go:build unix

package observe_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"good": "text", "large": strings.Repeat("x", 101)} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Mkdir(at("dir"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("/dev/zero", at("endless")),
		os.Symlink(at("good"), at("link")), os.Symlink(at("loop"), at("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name           string
		any, own       error
		read, readSelf string
	}{
		{name: "good", read: "text", readSelf: "text"},
		{name: "link", read: "text", own: observe.ErrNoFile},
		{name: "large", any: observe.ErrNoFile, own: observe.ErrNoFile},
		{name: "dir", any: observe.ErrNoFile, own: observe.ErrNoFile},
		{name: "pipe", any: observe.ErrNoFile, own: observe.ErrNoFile},
		{name: "endless", any: observe.ErrNoFile, own: observe.ErrNoFile},
		{name: "loop", any: syscall.ELOOP, own: observe.ErrNoFile},
		{name: "missing", any: fs.ErrNotExist, own: fs.ErrNotExist},
	} {
		if got, err := observe.ReadFile(at(c.name), 100); string(got) != c.read || !errors.Is(err, c.any) {
			t.Errorf("ReadFile %s: %q, %v; want %q, %v", c.name, got, err, c.read, c.any)
		}
		if got, err := observe.ReadOwnFile(at(c.name), 100); string(got) != c.readSelf || !errors.Is(err, c.own) {
			t.Errorf("ReadOwnFile %s: %q, %v; want %q, %v", c.name, got, err, c.readSelf, c.own)
		}
	}
}
