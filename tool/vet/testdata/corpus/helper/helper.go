// Package helper is another package that the executors use.
package helper

import (
	"os"
	"os/exec"
	"strings"
)

func Save(p string, b []byte) error { return os.WriteFile(p, b, 0o600) }

func Upper(s string) string { return strings.ToUpper(s) }

type Store interface{ Put(k, v string) error }

type disk struct{ dir string }

func (d disk) Put(k, v string) error { return os.WriteFile(d.dir+"/"+k, []byte(v), 0o600) }

type memory map[string]string

func (m memory) Put(k, v string) error { m[k] = v; return nil }

func NewDisk(dir string) Store { return disk{dir} }

func NewMemory() Store { return memory{} }

var Default Store = disk{"/tmp"}

var Hook = func() error { return exec.Command("true").Run() }

func Each[T any](xs []T, f func(T)) {
	for _, x := range xs {
		f(x)
	}
}

func PutAll[S Store](s S) error { return s.Put("a", "b") }

func Run(f func() error) error { return f() }
