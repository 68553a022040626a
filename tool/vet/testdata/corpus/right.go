// Executors that do what their policies declare, or less.

package corpus

import (
	"bytes"
	"context"
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
	"text/template"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/helper"
	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/testdata/corpus/policies"
)

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
