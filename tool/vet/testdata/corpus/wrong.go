// Executors that plainly do more than their policies declare.

package corpus

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/template"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

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
