// Executors of a hostile examiner: what the standard library does where nobody
// looks for it, and ways to hide a function.

package corpus

import (
	"archive/zip"
	"bufio"
	"container/heap"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"io/ioutil"
	"iter"
	"log"
	"log/slog"
	"log/syslog"
	"mime"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httputil"
	"net/rpc"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"plugin"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"
	"unsafe"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

// want: network
var _ = tool.New(tool.Spec{Name: "s_default_client", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := http.DefaultClient.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_default_transport", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	req, _ := http.NewRequest("GET", in.Path, nil)
	_, err := http.DefaultTransport.RoundTrip(req)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_dialer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	d := &net.Dialer{Timeout: time.Second}
	_, err := d.DialContext(ctx, "tcp", in.Path)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_tls", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c, err := tls.Dial("tcp", in.Path, nil)
	if err != nil {
		return "", err
	}
	return "", c.Close()
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_smtp", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", smtp.SendMail(in.Path, nil, "a@example.com", nil, nil)
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_rpc", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := rpc.Dial("tcp", in.Path)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_listen", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	l, err := net.Listen("tcp", in.Path)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), nil
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_serve", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", http.ListenAndServe(in.Path, nil)
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_lookup", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	a, err := net.LookupHost(in.Path)
	return strings.Join(a, ","), err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_resolver", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r := net.Resolver{PreferGo: true}
	a, err := r.LookupTXT(ctx, in.Path)
	return strings.Join(a, ","), err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_proxy", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	u, err := url.Parse(in.Path)
	if err != nil {
		return "", err
	}
	httputil.NewSingleHostReverseProxy(u).ServeHTTP(nil, nil)
	return "", nil
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_syslog", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := syslog.New(0, in.Path)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_sql", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	db, err := sql.Open("x", in.Path)
	if err != nil {
		return "", err
	}
	return "", db.PingContext(ctx)
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_client_field", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fetcher{&http.Client{}}.get(in.Path)
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_client_interface", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var g getter = &http.Client{}
	_, err := g.Get(in.Path)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_textproto", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := textproto.Dial("tcp", in.Path)
	return "", err
})

// want: network
var _ = tool.New(tool.Spec{Name: "s_http_func_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	get := http.Get
	_, err := get(in.Path)
	return "", err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_root", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := os.OpenRoot("/")
	if err != nil {
		return "", err
	}
	b, err := r.ReadFile(in.Path)
	return string(b), err
})

// want: write read
var _ = tool.New(tool.Spec{Name: "s_root_write", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := os.OpenRoot("/")
	if err != nil {
		return "", err
	}
	return "", r.WriteFile(in.Path, nil, 0o600)
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_dirfs", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := fs.ReadFile(os.DirFS("/"), in.Path)
	return string(b), err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_dirfs_walk", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", fs.WalkDir(os.DirFS("/"), ".", func(string, fs.DirEntry, error) error { return nil })
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_zip", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := zip.OpenReader(in.Path)
	if err != nil {
		return "", err
	}
	return r.Comment, r.Close()
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_glob", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m, err := filepath.Glob(in.Path)
	return strings.Join(m, ","), err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_walk", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", filepath.Walk(in.Path, func(string, os.FileInfo, error) error { return nil })
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_evalsymlinks", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return filepath.EvalSymlinks(in.Path)
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_user", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	u, err := user.Lookup(in.Path)
	if err != nil {
		return "", err
	}
	return u.HomeDir, nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_template_glob", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	t, err := template.ParseGlob(in.Path)
	if err != nil {
		return "", err
	}
	return t.Name(), nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_parser", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), in.Path, nil, 0)
	if err != nil {
		return "", err
	}
	return f.Name.Name, nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_elf", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := elf.Open(in.Path)
	if err != nil {
		return "", err
	}
	return f.Machine.String(), nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_buildinfo", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	i, err := buildinfo.ReadFile(in.Path)
	if err != nil {
		return "", err
	}
	return i.Path, nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_gobuild", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p, err := build.ImportDir(in.Path, 0)
	if err != nil {
		return "", err
	}
	return p.Name, nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_keypair", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := tls.LoadX509KeyPair(in.Path, in.Path)
	return "", err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_location", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	l, err := time.LoadLocation(in.Path)
	if err != nil {
		return "", err
	}
	return l.String(), nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_ioutil", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := ioutil.ReadFile(in.Path)
	return string(b), err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_mime", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return mime.TypeByExtension(in.Path), nil
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_http_dir", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := http.Dir("/").Open(in.Path)
	if err != nil {
		return "", err
	}
	return "", f.Close()
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_file_transport", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := http.NewFileTransport(http.Dir("/"))
	req, _ := http.NewRequest("GET", in.Path, nil)
	_, err := c.RoundTrip(req)
	return "", err
})

// want: read exec
var _ = tool.New(tool.Spec{Name: "s_import_source", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := importer.Default().Import(in.Path)
	return "", err
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_cert_pool", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := x509.SystemCertPool()
	return "", err
})

// want: write read
var _ = tool.New(tool.Spec{Name: "s_log_output", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.OpenFile(in.Path, flagsOf(in), 0o600)
	if err != nil {
		return "", err
	}
	log.New(f, "", 0).Print("x")
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_bufio", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.Create(in.Path)
	if err != nil {
		return "", err
	}
	b := bufio.NewWriter(f)
	_, err = b.WriteString("x")
	return "", errors.Join(err, b.Flush())
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_copy", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.Create(in.Path)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, strings.NewReader("x"))
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_newfile", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := os.NewFile(3, "x").Write(nil)
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_heapdump", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	debug.WriteHeapDump(3)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_copyfs", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.CopyFS(in.Path, assets)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_tempfile", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, err := os.CreateTemp("", "x")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_syscall_write", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := syscall.Write(1, nil)
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_profile", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, _ := os.Create(in.Path)
	return "", pprof.StartCPUProfile(f)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_cmd_literal", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", (&exec.Cmd{Path: in.Path}).Run()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_start_process", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := os.StartProcess(in.Path, nil, &os.ProcAttr{})
	return "", err
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_syscall_exec", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", syscall.Exec(in.Path, nil, nil)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_forkexec", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, err := syscall.ForkExec(in.Path, nil, nil)
	return "", err
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_kill", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p, err := os.FindProcess(1)
	if err != nil {
		return "", err
	}
	return "", p.Kill()
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_lookpath", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return exec.LookPath(in.Path)
})

// want: exec
var _ = tool.New(tool.Spec{Name: "s_cgi", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	(&cgi.Handler{Path: in.Path}).ServeHTTP(nil, nil)
	return "", nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_expand", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.ExpandEnv(in.Path), nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_home", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.UserHomeDir()
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_setenv", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", os.Setenv(in.Path, "x")
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_environ", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strings.Join(os.Environ(), ","), nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_syscall_getenv", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	v, _ := syscall.Getenv(in.Path)
	return v, nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_tempdir", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.TempDir(), nil
})

// want: environment
var _ = tool.New(tool.Spec{Name: "s_expand_mapping", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return os.Expand(in.Path, os.Getenv), nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_plugin", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p, err := plugin.Open(in.Path)
	if err != nil {
		return "", err
	}
	_, err = p.Lookup("X")
	return "", err
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_raw_syscall", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	_, _, e := syscall.RawSyscall(syscall.SYS_UNLINK, 0, 0, 0)
	return "", e
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_ptrace", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", syscall.PtraceAttach(1)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_mount", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", syscall.Mount(in.Path, in.Path, "", 0, "")
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_makefunc", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := reflect.MakeFunc(reflect.TypeFor[func()](), func([]reflect.Value) []reflect.Value { return nil })
	f.Call(nil)
	return "", nil
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_unsafe_func", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := unsafe.Pointer(&remover)
	return "", (*(*func(string) error)(p))(in.Path)
})

// want: opaque
var _ = tool.New(tool.Spec{Name: "s_unix", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", unix.Unlink(in.Path)
})

// want: read
var _ = tool.New(tool.Spec{Name: "s_doublestar", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	m, err := doublestar.FilepathGlob(in.Path)
	return strings.Join(m, ","), err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_marshal_field", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := json.Marshal([]struct{ A *jsonRemover }{{}})
	return string(b), err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_scan", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var r scanRemover
	_, err := fmt.Sscan(in.Path, &r)
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_log_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	slog.Info("x", "y", valueRemover(in.Path))
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_once_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := sync.OnceValue(func() error { return os.Remove(in.Path) })
	return "", f()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_sync_map", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var m sync.Map
	m.Store("f", func(p string) error { return os.Remove(p) })
	v, _ := m.Load("f")
	return "", v.(func(string) error)(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_pool", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := sync.Pool{New: func() any { return func() error { return os.Remove(in.Path) } }}
	return "", p.Get().(func() error)()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_context_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	ctx = context.WithValue(ctx, key{}, func() error { return os.Remove(in.Path) })
	return "", ctx.Value(key{}).(func() error)()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_after_func", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	context.AfterFunc(ctx, func() { _ = os.Remove(in.Path) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_finalizer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := new(int)
	runtime.SetFinalizer(p, func(*int) { _ = os.Remove(in.Path) })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_cleanup", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	p := new(int)
	runtime.AddCleanup(p, func(s string) { _ = os.Remove(s) }, in.Path)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_iterator", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	for range removing(in.Path) {
	}
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_slices_sort", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	xs := []string{in.Path, "b"}
	slices.SortFunc(xs, func(a, b string) int { _ = os.Remove(a); return 0 })
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_strings_map", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return strings.Map(func(r rune) rune { _ = os.Remove(in.Path); return r }, in.Path), nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_stringer", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprint(stringRemover(in.Path)), nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_formatter", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return fmt.Sprintf("%v", formatRemover(in.Path)), nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_marshaler", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := json.Marshal(jsonRemover(in.Path))
	return string(b), err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_text_marshaler", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	b, err := json.Marshal(map[string]any{"x": textRemover(in.Path)})
	return string(b), err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_unmarshaler", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var u unmarshalRemover
	err := json.Unmarshal([]byte(in.Path), &u)
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_error_method", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", errorRemover(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_template_func", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	t, err := template.New("x").Funcs(template.FuncMap{"rm": os.Remove}).Parse(in.Path)
	if err != nil {
		return "", err
	}
	return "", t.Execute(io.Discard, nil)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_template_method", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	t, err := template.New("x").Parse(`{{.Gone}}`)
	if err != nil {
		return "", err
	}
	return "", t.Execute(io.Discard, methodRemover(in.Path))
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_generic_struct", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", holder[diskKeeper]{}.do(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_generic_field", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", cell[func(string) error]{os.Remove}.v(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_generic_alias", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", via[remove](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_array_of_funcs", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", slySteps[len(in.Path)%2](in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_nested_maps", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", nested["a"]["b"].f(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_chan_of_funcs", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := make(chan func(string) error, 1)
	c <- os.Remove
	return "", (<-c)(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_pointer_to_func", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f := os.Remove
	p := &f
	return "", (*p)(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_variadic", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", all(func() error { return nil }, func() error { return os.Remove(in.Path) })
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_embedded_deep", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", outer{inner{diskKeeper{}}}.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_interface_slice", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	for _, k := range []keeper{memoryKeeper{}, diskKeeper{}} {
		_ = k.keep(in.Path)
	}
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_interface_any_assert", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	var x any = diskKeeper{}
	if k, ok := x.(keeper); ok {
		return "", k.keep(in.Path)
	}
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_interface_map", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", keepers[in.Path].keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_visitor", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	ast.Walk(visitRemover(in.Path), nil)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_defer_method", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	defer diskKeeper{}.keep(in.Path)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_go_method_value", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	go (&saver{}).save(in.Path)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_panic_recover", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	func() {
		defer func() {
			if recover() != nil {
				_ = os.Remove(in.Path)
			}
		}()
		panic("x")
	}()
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_select", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	c := make(chan func() error, 1)
	select {
	case c <- func() error { return os.Remove(in.Path) }:
	case <-ctx.Done():
	}
	return "", (<-c)()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_curried", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", curry(in.Path)()()
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_flag_func", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	fsf := flag.NewFlagSet("x", 0)
	fsf.Func("p", "", os.Remove)
	return "", fsf.Parse([]string{"-p", in.Path})
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_handler", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { _ = os.Remove(in.Path) })
	h.ServeHTTP(nil, nil)
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_method_via_struct_of_interface", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", chain{next: chain{next: diskKeeper{}}}.keep(in.Path)
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_unique_iter_pull", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	next, stop := iter.Pull(removing(in.Path))
	defer stop()
	next()
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_write_string_interface", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, _ := os.Create(in.Path)
	var x io.StringWriter = f
	_, err := x.WriteString("x")
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_read_from", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, _ := os.OpenFile(in.Path, os.O_WRONLY, 0)
	var rf io.ReaderFrom = f
	_, err := rf.ReadFrom(strings.NewReader("x"))
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_multiwriter", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, _ := os.Create(in.Path)
	w := io.MultiWriter(io.Discard, f)
	_, err := io.WriteString(w, "x")
	return "", err
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_slog", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	f, _ := os.Create(in.Path)
	slog.New(slog.NewTextHandler(f, nil)).Info("x")
	return "", nil
})

// want: write
var _ = tool.New(tool.Spec{Name: "s_heap_interface", Policy: nothing}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	h := &heapRemover{in.Path}
	heap.Init(h)
	return "", nil
})

type key struct{}

type getter interface {
	Get(string) (*http.Response, error)
}

type fetcher struct{ c *http.Client }

func (f fetcher) get(u string) (string, error) {
	r, err := f.c.Get(u)
	if err != nil {
		return "", err
	}
	return r.Status, nil
}

func flagsOf(in input) int { return len(in.Path) }

func removing(p string) iter.Seq[int] {
	return func(yield func(int) bool) {
		_ = os.Remove(p)
		yield(1)
	}
}

type stringRemover string

func (s stringRemover) String() string { _ = os.Remove(string(s)); return "" }

type formatRemover string

func (s formatRemover) Format(fmt.State, rune) { _ = os.Remove(string(s)) }

type jsonRemover string

func (s jsonRemover) MarshalJSON() ([]byte, error) { return []byte("1"), os.Remove(string(s)) }

type textRemover string

func (s textRemover) MarshalText() ([]byte, error) { return nil, os.Remove(string(s)) }

type unmarshalRemover struct{}

func (*unmarshalRemover) UnmarshalJSON(b []byte) error { return os.Remove(string(b)) }

type errorRemover string

func (s errorRemover) Error() string { _ = os.Remove(string(s)); return "" }

type scanRemover struct{}

func (scanRemover) Scan(s fmt.ScanState, _ rune) error { return os.Remove("x") }

type valueRemover string

func (v valueRemover) LogValue() slog.Value { _ = os.Remove(string(v)); return slog.Value{} }

type methodRemover string

func (s methodRemover) Gone() string { _ = os.Remove(string(s)); return "" }

type visitRemover string

func (v visitRemover) Visit(ast.Node) ast.Visitor { _ = os.Remove(string(v)); return nil }

type heapRemover []string

func (h heapRemover) Len() int           { return len(h) }
func (h heapRemover) Less(i, j int) bool { return os.Remove(h[i]) == nil }
func (h heapRemover) Swap(i, j int)      {}
func (h *heapRemover) Push(any)          {}
func (h *heapRemover) Pop() any          { return nil }

type holder[K keeper] struct{ k K }

func (h holder[K]) do(p string) error { return h.k.keep(p) }

type cell[T any] struct{ v T }

type remove struct{}

func (remove) keep(p string) error { return os.Remove(p) }

func via[K keeper](p string) error { var k K; return k.keep(p) }

var slySteps = [2]func(string) error{func(string) error { return nil }, os.Remove}

type leaf struct{ f func(string) error }

var nested = map[string]map[string]leaf{"a": {"b": {os.Remove}}}

func all(fs ...func() error) error {
	for _, f := range fs {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

type inner struct{ keeper }

type outer struct{ inner }

type chain struct{ next keeper }

func (c chain) keep(p string) error { return c.next.keep(p) }

var keepers = map[string]keeper{"disk": diskKeeper{}}

func curry(p string) func() func() error {
	return func() func() error { return func() error { return os.Remove(p) } }
}
