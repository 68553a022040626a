package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

func isWasm(path string) bool { return strings.HasSuffix(path, ".wasm") }

// wasmGuarantees hold by construction: a module has no calls but the few it is
// given, none of which reaches a socket, a process or an undeclared file.
const wasmGuarantees = WriteRoots | ReadRoots | ReadAbsent | ProtectedPaths | Metadata | NoNetwork | UnixSockets | Processes | ProcessesHidden |
	IPC | Privileges | Syscalls | Environment | Descriptors | TreeDead | DiesWithGate | TerminalSafe | MemoryLimit | ProcessLimit | NoPrograms

// startWasm runs a module inside this process. Declared roots are mounted at
// their own paths; the module sees nothing else.
func startWasm(p *plan, st *streams) (*job, error) {
	if !isWasm(p.path) {
		return nil, errors.New("not a .wasm module")
	}
	if missing := p.need &^ wasmGuarantees; missing != 0 || p.ownView() {
		return nil, &missingError{missing}
	}
	module, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	cfg, closers, err := wasmConfig(p, st)
	if err != nil {
		return nil, err
	}
	j, err := newJob(Wasm, p, st)
	if err != nil {
		return nil, err
	}
	j.guarantees = wasmGuarantees
	if err := j.before(); err != nil {
		for _, c := range closers {
			_ = c.Close()
		}
		j.cleanup()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	j.stop = cancel
	j.inside = func() (int, error) {
		defer cancel()
		defer func() {
			for _, c := range closers {
				_ = c.Close()
			}
		}()
		return runWasm(ctx, module, cfg, p.limits)
	}
	return j, nil
}

// wasmCache keeps compiled modules: compiling one takes seconds, running it
// milliseconds. They are keyed by content.
var wasmCache = sync.OnceValue(wazero.NewCompilationCache)

func runWasm(ctx context.Context, module []byte, cfg wazero.ModuleConfig, l Limits) (int, error) {
	rc := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithCompilationCache(wasmCache())
	if l.Memory > 0 {
		rc = rc.WithMemoryLimitPages(uint32(min(max(l.Memory>>16, 1), 1<<16)))
	}
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	defer rt.Close(context.WithoutCancel(ctx))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return 0, err
	}
	_, err := rt.InstantiateWithConfig(ctx, module, cfg)
	var exit *sys.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && ctx.Err() == nil:
		return int(exit.ExitCode()), nil
	case ctx.Err() != nil:
		return 128 + 9, nil
	}
	return 0, fmt.Errorf("module: %w", err)
}

func wasmConfig(p *plan, st *streams) (wazero.ModuleConfig, []io.Closer, error) {
	mounts := wazero.NewFSConfig()
	var closers []io.Closer
	for _, r := range p.roots {
		if !r.dir || r.path == p.path {
			continue
		}
		rt, err := os.OpenRoot(r.path)
		if err != nil {
			return nil, nil, err
		}
		closers = append(closers, rt)
		var f wsys.FS = &rooted{FS: sysfs.DirFS(r.path), root: rt, guard: p.guard, top: r.path}
		if !r.write {
			f = &sysfs.ReadFS{FS: f}
		}
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(f, r.path)
	}
	cfg := wazero.NewModuleConfig().WithArgs(p.spec.Command...).WithFSConfig(mounts).WithName("").
		WithStdin(st.child[0]).WithStdout(st.child[1]).WithStderr(st.child[len(st.child)-1]).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep()
	for _, kv := range p.env {
		k, v, _ := strings.Cut(kv, "=")
		cfg = cfg.WithEnv(k, v)
	}
	cfg = cfg.WithEnv("PWD", p.dir)
	return cfg, closers, nil
}

// rooted keeps every path below a directory, links included, which the plain
// directory mount does not: it follows a link to wherever it leads.
type rooted struct {
	wsys.FS
	root  *os.Root
	guard *guard
	top   string
}

// inside reports an error unless name, or the place where it would be made,
// is reached without leaving the root.
func (r *rooted) inside(name string, follow bool) wsys.Errno {
	if name == "" || name == "." {
		return 0
	}
	look := r.root.Lstat
	if follow {
		look = r.root.Stat
	}
	if _, err := look(name); err == nil {
		return 0
	} else if !errors.Is(err, fs.ErrNotExist) {
		return wsys.EPERM
	}
	// A dangling link is not a free name.
	if _, err := r.root.Lstat(name); err == nil {
		return wsys.EPERM
	}
	dir := path.Dir(name)
	if dir == "." {
		return 0
	}
	if _, err := r.root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return wsys.ENOENT
	} else if err != nil {
		return wsys.EPERM
	}
	return 0
}

// changeable is inside, for names that are not protected.
func (r *rooted) changeable(name string, follow bool) wsys.Errno {
	comps := strings.Split(fold(path.Join(strings.Trim(r.top, "/"), name)), "/")
	for i := range comps {
		if r.guard.match(comps[:i+1]) {
			return wsys.EPERM
		}
	}
	// A directory that holds something protected stays where it is.
	if slices.ContainsFunc(r.guard.suffixes, func(s []string) bool { return len(s) > 1 && comps[len(comps)-1] == s[0] }) {
		if fi, err := r.root.Lstat(name); err == nil && fi.IsDir() {
			return wsys.EPERM
		}
	}
	return r.inside(name, follow)
}

func (r *rooted) OpenFile(name string, flag wsys.Oflag, perm fs.FileMode) (wsys.File, wsys.Errno) {
	check := r.inside
	if flag&(wsys.O_RDWR|wsys.O_WRONLY|wsys.O_CREAT|wsys.O_TRUNC|wsys.O_APPEND) != 0 {
		check = r.changeable
	}
	if e := check(name, true); e != 0 {
		return nil, e
	}
	return r.FS.OpenFile(name, flag, perm&0o777)
}

func (r *rooted) Lstat(name string) (sys.Stat_t, wsys.Errno) {
	if e := r.inside(name, false); e != 0 {
		return sys.Stat_t{}, e
	}
	return r.FS.Lstat(name)
}

func (r *rooted) Stat(name string) (sys.Stat_t, wsys.Errno) {
	if e := r.inside(name, true); e != 0 {
		return sys.Stat_t{}, e
	}
	return r.FS.Stat(name)
}

func (r *rooted) Mkdir(name string, perm fs.FileMode) wsys.Errno {
	if e := r.changeable(name, false); e != 0 {
		return e
	}
	return r.FS.Mkdir(name, perm&0o777)
}

func (r *rooted) Chmod(name string, perm fs.FileMode) wsys.Errno {
	if e := r.changeable(name, true); e != 0 {
		return e
	}
	return r.FS.Chmod(name, perm&0o777)
}

func (r *rooted) Rename(from, to string) wsys.Errno {
	if e := r.changeable(from, false); e != 0 {
		return e
	}
	if e := r.changeable(to, false); e != 0 {
		return e
	}
	return r.FS.Rename(from, to)
}

func (r *rooted) Rmdir(name string) wsys.Errno {
	if e := r.changeable(name, false); e != 0 {
		return e
	}
	return r.FS.Rmdir(name)
}

func (r *rooted) Unlink(name string) wsys.Errno {
	if e := r.changeable(name, false); e != 0 {
		return e
	}
	return r.FS.Unlink(name)
}

// Links are not made: whoever reads the tree later would follow them.
func (r *rooted) Link(string, string) wsys.Errno    { return wsys.EPERM }
func (r *rooted) Symlink(string, string) wsys.Errno { return wsys.EPERM }

func (r *rooted) Readlink(name string) (string, wsys.Errno) {
	if e := r.inside(name, false); e != 0 {
		return "", e
	}
	return r.FS.Readlink(name)
}

func (r *rooted) Utimens(name string, atim, mtim int64) wsys.Errno {
	if e := r.changeable(name, true); e != 0 {
		return e
	}
	return r.FS.Utimens(name, atim, mtim)
}
