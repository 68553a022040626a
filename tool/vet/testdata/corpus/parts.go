// Package corpus holds executors for the checker to judge. A want comment says
// what is to be reported of the tool below it.
package corpus

import (
	"embed"
	"net"
	"os"
	"os/exec"
	_ "unsafe" // for linkname

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	Path string `json:"path"`
}

//go:embed parts.go
var assets embed.FS

var writerPolicy = &tool.Policy{Filesystem: tool.Filesystem{Write: tool.Only("/out/**")}}

var plainPolicy = tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}

var logFile, _ = os.Create("/tmp/log")

var conn net.Conn

var remover = os.Remove

var table = map[string]func(string) error{"go": func(string) error { return runTrue() }}

type shape interface{ area() int }

type square struct{ side int }

func (s square) area() int { return s.side * s.side }

type keeper interface{ keep(string) error }

type memoryKeeper map[string]bool

func (m memoryKeeper) keep(s string) error { m[s] = true; return nil }

type diskKeeper struct{}

func (diskKeeper) keep(s string) error { return os.WriteFile(s, nil, 0o600) }

type execKeeper struct{}

func (execKeeper) keep(s string) error { return exec.Command(s).Run() }

type box struct{ k keeper }

type wrapper struct{ diskKeeper }

type lazy struct{ keeper }

type saver struct{}

func (*saver) save(p string) error { return os.Remove(p) }

type localStore struct{}

func (localStore) Put(k, v string) error { return os.WriteFile(k, []byte(v), 0o600) }

type pair[K keeper] struct{ k K }

func (p pair[K]) do(s string) error { return p.k.keep(s) }

type steps struct{ run func() error }

func keepWith(k keeper, s string) error { return k.keep(s) }

func keepAll[K keeper](s string) error { var k K; return k.keep(s) }

func mapped[T any](xs []T, f func(T) T) []T {
	for i := range xs {
		xs[i] = f(xs[i])
	}
	return xs
}

func saveLocal(p string) error { return os.WriteFile(p, nil, 0o600) }

func one(p string) error { return two(p) }

func two(p string) error { return three(p) }

func three(p string) error { return exec.Command(p).Run() }

func runTrue() error { return exec.Command("true").Run() }

func recurse(n int, p string) error {
	if n == 0 {
		return os.Remove(p)
	}
	return recurse(n-1, p)
}

func makeRemover() func(string) error { return func(p string) error { return os.Remove(p) } }

//go:linkname linked runtime.fastrand64
func linked() uint64
