package corpus

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"
	_ "unsafe" // for linkname

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/helper"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/policies"
)

type input struct {
	Path string `json:"path"`
}

//go:embed corpus.go
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

// want:
var _ = tool.New(tool.Spec{Name: "pure", Policy: &tool.Policy{Risk: tool.Low}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strings.ToUpper(in.Path), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "pure_fmt", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprintf("%s", in.Path), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "reads", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := os.ReadFile(in.Path)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "writes", Policy: &tool.Policy{Filesystem: tool.Filesystem{Write: tool.Only("/out/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.WriteFile(in.Path, nil, 0o600)
})

// want:
var _ = tool.New(tool.Spec{Name: "runs", Policy: &tool.Policy{Exec: tool.Only("git")}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := exec.Command("git", "log").Output()
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "runs_all", Policy: &tool.Policy{Exec: tool.All}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := exec.Command(in.Path).Output()
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "fetches", Policy: &tool.Policy{Network: tool.Only("api.example.com")}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
})

// want:
var _ = tool.New(tool.Spec{Name: "fetches_all", Policy: &tool.Policy{Network: tool.All}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
})

// want:
var _ = tool.New(tool.Spec{Name: "environ", Policy: &tool.Policy{Environment: tool.Only("LANG")}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.Getenv("LANG"), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "handles", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := env.ReadFile(in.Path)
	if err != nil {
		return "", err
	}
	return string(b), env.WriteFile(in.Path, b)
})

// want:
var _ = tool.New(tool.Spec{Name: "handle_run", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := env.Run(ctx, "git", "log")
	if err != nil {
		return "", err
	}
	return r.Stdout, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "handle_http", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := env.HTTP().Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "builder", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", in.Path)
	return b.String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "buffer", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var b bytes.Buffer
	w := io.Writer(&b)
	_, err := w.Write([]byte(in.Path))
	return b.String(), err
})

// want:
var _ = tool.New(tool.Spec{Name: "stdout", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	fmt.Println(in.Path)
	_, err := os.Stdout.WriteString(in.Path)
	return "", err
})

// want:
var _ = tool.New(tool.Spec{Name: "stderr_writer", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	fmt.Fprintln(os.Stderr, in.Path)
	return "", nil
})

// want:
var _ = tool.New(tool.Spec{Name: "json", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := json.Marshal(in)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "regexp_sort", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	s := []string{in.Path}
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return regexp.QuoteMeta(s[0]), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "time_ctx", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	<-ctx.Done()
	return "", ctx.Err()
})

// want:
var _ = tool.New(tool.Spec{Name: "mutex_goroutine", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var wg sync.WaitGroup
	wg.Go(func() { _ = in.Path })
	wg.Wait()
	return "", nil
})

// want:
var _ = tool.New(tool.Spec{Name: "url_parse", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	u, err := url.Parse(in.Path)
	if err != nil {
		return "", err
	}
	return u.Host, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "net_parse", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return net.ParseIP(in.Path).String(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "new_request", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.NewRequest("GET", in.Path, nil)
	if err != nil {
		return "", err
	}
	return r.Host, nil
})

// want:
var _ = tool.New(tool.Spec{Name: "paths", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return filepath.Join(filepath.Dir(in.Path), "x"), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "embedded", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := assets.ReadFile("corpus.go")
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "embedded_fs", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := fs.ReadFile(assets, "corpus.go")
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "open_read", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.OpenFile(in.Path, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "open_write", Policy: &tool.Policy{Filesystem: tool.Filesystem{Write: tool.Only("/out/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.OpenFile(in.Path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("x")
	return "", err
})

// want:
var _ = tool.New(tool.Spec{Name: "own_interface_pure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var s shape = square{2}
	return fmt.Sprint(s.area()), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "own_interface_memory", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = memoryKeeper{}
	return "", k.keep(in.Path)
})

// want:
var _ = tool.New(tool.Spec{Name: "memory_store", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.NewMemory().Put("a", in.Path)
})

// want:
var _ = tool.New(tool.Spec{Name: "other_package_pure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return helper.Upper(in.Path), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "generic_pure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strings.Join(mapped([]string{in.Path}, strings.ToUpper), ""), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "generic_each_pure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	n := 0
	helper.Each([]string{in.Path}, func(s string) { n += len(s) })
	return fmt.Sprint(n), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "policy_variable", Policy: writerPolicy}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.WriteFile(in.Path, nil, 0o600)
})

// want:
var _ = tool.New(tool.Spec{Name: "policy_elsewhere", Policy: policies.Writer}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.WriteFile(in.Path, nil, 0o600)
})

// want:
var _ = tool.New(tool.Spec{Name: "policy_address", Policy: &plainPolicy}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := os.ReadFile(in.Path)
	return string(b), err
})

// want:
var _ = tool.New(tool.Spec{Name: "reflect_type", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return reflect.TypeOf(in).Name(), nil
})

// want:
var _ = tool.New(tool.Spec{Name: "template", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	tm, err := template.New("x").Parse(in.Path)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = tm.Execute(&b, in)
	return b.String(), err
})

// want:
//
//gatehouse:waive waived exec: the corpus says so
var _ = tool.New(tool.Spec{Name: "waived", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", exec.Command("true").Run()
})

// want: read
var _ = tool.New(tool.Spec{Name: "x_reads", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := os.ReadFile(in.Path)
	return string(b), err
})

// want: read
var _ = tool.New(tool.Spec{Name: "x_read_none", Policy: &tool.Policy{Filesystem: tool.Filesystem{Write: tool.Only("/out/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := os.ReadFile(in.Path)
	return string(b), err
})

// want: write
var _ = tool.New(tool.Spec{Name: "x_unspecified", Policy: &tool.Policy{Risk: tool.Low}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.WriteFile(in.Path, nil, 0o600)
})

// want: write
var _ = tool.New(tool.Spec{Name: "x_writes", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.Remove(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "x_exec", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**"), Write: tool.Only("/out/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", exec.Command("sh", "-c", in.Path).Run()
})

// want: network
var _ = tool.New(tool.Spec{Name: "x_net", Policy: &tool.Policy{Exec: tool.Only("git")}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c, err := net.Dial("tcp", in.Path)
	if err != nil {
		return "", err
	}
	return "", c.Close()
})

// want: network
var _ = tool.New(tool.Spec{Name: "x_http", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, nil
})

// want: network
var _ = tool.New(tool.Spec{Name: "x_client", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := &http.Client{}
	r, err := c.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "x_env", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.Getenv("SECRET"), nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "x_lookup", Policy: &tool.Policy{Exec: tool.Only("git")}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	v, _ := os.LookupEnv("SECRET")
	return v, nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "x_walk", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", filepath.WalkDir(in.Path, func(string, fs.DirEntry, error) error { return nil })
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "x_syscall", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, _, e := syscall.Syscall(syscall.SYS_GETPID, 0, 0, 0)
	return e.Error(), nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "x_rdwr", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.OpenFile(in.Path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	return "", f.Close()
})

// want: write
var _ = tool.New(tool.Spec{Name: "x_flag", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.OpenFile(in.Path, len(in.Path), 0)
	if err != nil {
		return "", err
	}
	return "", f.Close()
})

// want: exec network
var _ = tool.New(tool.Spec{Name: "x_two", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**"), Write: tool.Only("/out/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	if err := exec.Command("true").Run(); err != nil {
		return "", err
	}
	_, err := net.LookupHost(in.Path)
	return "", err
})

// want: read
var _ = tool.New(tool.Spec{Name: "x_template_files", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := template.ParseFiles(in.Path)
	return "", err
})

// want: read
var _ = tool.New(tool.Spec{Name: "x_dirfs", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := fs.ReadFile(os.DirFS(in.Path), "x")
	return string(b), err
})

// want: exec
var _ = tool.New(tool.Spec{Name: "x_process", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p, err := os.FindProcess(1)
	if err != nil {
		return "", err
	}
	return "", p.Kill()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_helper", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**")}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", saveLocal(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_deep", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", one(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_other_package", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Save(in.Path, nil)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_closure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := func() error { return os.Remove(in.Path) }
	return "", f()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_closure_var", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var f func() error
	f = func() error { return exec.Command("true").Run() }
	return "", f()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_goroutine", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	done := make(chan error)
	go func() { done <- os.Remove(in.Path) }()
	return "", <-done
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_defer", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	defer os.Remove(in.Path)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := os.Remove
	return "", f(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_table", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", table["go"](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_method_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := (&saver{}).save
	return "", f(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_method_expr", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := (*saver).save
	return "", f(&saver{}, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = diskKeeper{}
	return "", k.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface_choice", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var k keeper = memoryKeeper{}
	if in.Path != "" {
		k = diskKeeper{}
	}
	return "", k.keep(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_interface_param", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", keepWith(execKeeper{}, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_interface_field", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b := box{k: diskKeeper{}}
	return "", b.k.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_embedded_struct", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	w := wrapper{diskKeeper{}}
	return "", w.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_embedded_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	w := lazy{keeper: diskKeeper{}}
	return "", w.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_other_interface", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	s := helper.NewDisk("/x")
	return "", s.Put("a", in.Path)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_other_global", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Default.Put("a", in.Path)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_other_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Hook()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_callback", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Run(func() error { return exec.Command("true").Run() })
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_callback_value", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.Run(exec.Command("true").Run)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	helper.Each([]string{in.Path}, func(s string) { os.Remove(s) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic_constraint", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", keepAll[diskKeeper](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_generic_other", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", helper.PutAll(localStore{})
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_generic_type", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := pair[execKeeper]{}
	return "", p.do(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_io_writer", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/data/**"), Write: tool.None}}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := io.Copy(logFile, strings.NewReader(in.Path))
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_captured_file", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := fmt.Fprintln(logFile, in.Path)
	return "", err
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_once", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var o sync.Once
	var err error
	o.Do(func() { err = exec.Command("true").Run() })
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_afterfunc", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	time.AfterFunc(time.Second, func() { os.Remove(in.Path) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_recursive", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", recurse(3, in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_global_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", remover(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_struct_func", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	s := steps{run: runTrue}
	return "", s.run()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_map_closure", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m := map[string]func(string) error{"a": saveLocal}
	return "", m["a"](in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_channel", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := make(chan func() error, 1)
	c <- runTrue
	return "", (<-c)()
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_returned", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", makeRemover()(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "h_any", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var x any = diskKeeper{}
	return "", x.(keeper).keep(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_type_switch", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var x any = execKeeper{}
	switch k := x.(type) {
	case keeper:
		return "", k.keep(in.Path)
	}
	return "", nil
})

// want: opaque write
var _ = tool.New(tool.Spec{Name: "h_reflect", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	reflect.ValueOf(os.Remove).Call([]reflect.Value{reflect.ValueOf(in.Path)})
	return "", nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_reflect_method", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	reflect.ValueOf(diskKeeper{}).MethodByName("keep").Call(nil)
	return "", nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "h_linkname", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprint(linked()), nil
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_round_tripper", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var rt http.RoundTripper = http.DefaultTransport
	r, err := http.NewRequest("GET", in.Path, nil)
	if err != nil {
		return "", err
	}
	_, err = rt.RoundTrip(r)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_conn", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}, Network: tool.None, Environment: tool.None, Exec: tool.None}}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := conn.Write([]byte(in.Path))
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "h_policy_elsewhere", Policy: &policies.Nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, nil
})

// want: exec
var _ = tool.New(tool.Spec{Name: "h_policy_variable", Policy: writerPolicy}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", runTrue()
})

// want:
var _ = tool.New(tool.Spec{Name: "n_pure"}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return in.Path, nil
})

// want: exec
var _ = tool.New(tool.Spec{Name: "n_exec"}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", runTrue()
})

// want: environment
var _ = tool.New(tool.Spec{Name: "n_env"}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.Getenv("X"), nil
})
