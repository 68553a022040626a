package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/confine"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Env is the access a tool has. Everything in it is held against the policy
// first; where the policy takes no stance, nothing is to be had.
type Env struct {
	tool *declare.Tool
	// said is the policy as it was declared; tool's has None where nothing was.
	said Policy
	gate *argument.Gate
	base match.Base

	// inv is the invocation the tool runs in; nil outside of one. What it
	// calls may draw from budget.
	inv    *Invocation
	budget string

	mu       sync.Mutex
	refusals []string
}

// ErrBeyond is the error of an access that the tool did not declare.
var ErrBeyond = errors.New("the tool did not declare this")

// newEnv binds a declaration to a workspace.
func newEnv(t *declare.Tool, base match.Base) (*Env, error) {
	bound := *t
	if bound.Policy == nil {
		bound.Policy = &Policy{}
	}
	// A handle refuses where nothing was said: the executor asked for it.
	said := *bound.Policy
	p := said
	for _, s := range []*Stance{&p.Filesystem.Read, &p.Filesystem.Write, &p.Network, &p.Environment, &p.Exec} {
		if !s.Declared() {
			*s = None
		}
	}
	bound.Policy = &p
	g, err := argument.New(&bound, base)
	if err != nil {
		return nil, err
	}
	return &Env{tool: &bound, said: said, gate: g, base: base}, nil
}

// refuse notes an access that goes beyond the declaration.
func (e *Env) refuse(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusals = append(e.refusals, err.Error())
	return fmt.Errorf("%w: %w", ErrBeyond, err)
}

// Refusals returns what the tool tried and was refused, in order.
func (e *Env) Refusals() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.refusals...)
}

// diskLinks reads the links of the machine.
type diskLinks struct{}

// Readlink says what is behind a path.
func (diskLinks) Readlink(p string) (string, bool, error) {
	fi, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", false, nil
	case err != nil:
		return "", false, err
	case fi.Mode()&fs.ModeSymlink == 0:
		return "", false, nil
	}
	target, err := os.Readlink(p)
	return target, err == nil, err
}

// within finds the real path of a name and opens the deepest directory above
// it that the globs name, so that what is opened is what was judged: a link
// that is put in the way afterwards is not followed out of it.
// Making has that directory made where it is not there yet.
func (e *Env) within(role Role, name string, making bool) (*os.Root, string, error) {
	real, err := e.gate.CheckPath(role, name, diskLinks{})
	if err != nil {
		return nil, "", e.refuse(err)
	}
	stance := e.tool.Policy.Filesystem.Read
	if role == declare.RoleWrite {
		stance = e.tool.Policy.Filesystem.Write
	}
	set, err := match.CompileSet(e.base, stance.Items()...)
	if err != nil {
		return nil, "", err
	}
	glob, ok := set.Match(real)
	if !ok {
		return nil, "", e.refuse(fmt.Errorf("%s lies outside", real))
	}
	dir := glob.Root()
	if one, exact := glob.Exact(); exact {
		dir = filepath.Dir(one)
	}
	open := os.OpenRoot
	if making {
		open = makeRoot
	}
	root, err := open(dir)
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(dir, real)
	if err != nil {
		root.Close()
		return nil, "", err
	}
	return root, rel, nil
}

// makeRoot opens a directory that may not be there yet. It is made beneath the
// one that is, so that no link that is put in the way leads elsewhere.
func makeRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
		return root, err
	}
	above, err := makeRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := above.Mkdir(filepath.Base(dir), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return above.OpenRoot(filepath.Base(dir))
}

// ReadFile reads a file within the declared read globs. A relative name is
// relative to the workspace.
func (e *Env) ReadFile(name string) ([]byte, error) {
	root, rel, err := e.within(declare.RoleRead, name, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(rel)
}

// ReadDir lists a directory within the declared read globs.
func (e *Env) ReadDir(name string) ([]fs.DirEntry, error) {
	root, rel, err := e.within(declare.RoleRead, name, false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return fs.ReadDir(root.FS(), filepath.ToSlash(rel))
}

// WriteFile writes a file within the declared write globs, creating the
// directories above it.
func (e *Env) WriteFile(name string, data []byte) error {
	root, rel, err := e.within(declare.RoleWrite, name, true)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := filepath.Dir(rel); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return root.WriteFile(rel, data, 0o644)
}

// Remove removes a file or an empty directory within the declared write globs.
func (e *Env) Remove(name string) error {
	root, rel, err := e.within(declare.RoleWrite, name, false)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Remove(rel)
}

// Getenv returns a declared variable.
func (e *Env) Getenv(name string) (string, error) {
	if err := e.gate.CheckVariable(name); err != nil {
		return "", e.refuse(err)
	}
	return os.Getenv(name), nil
}

// HTTP returns a client that reaches the declared hosts and no other, on every
// hop of a redirect. A host is resolved once and the address that was judged
// is the one that is dialled: a private, loopback or metadata address is
// refused unless the policy names the address itself.
func (e *Env) HTTP() *http.Client {
	dialer := net.Dialer{Timeout: 30 * time.Second}
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			checked, err := e.resolve(ctx, addr)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, checked)
		},
	}
	return &http.Client{Transport: judged{e, transport}}
}

// judged holds every request against the policy before it is sent.
type judged struct {
	env  *Env
	next http.RoundTripper
}

// RoundTrip sends a request to a declared host.
func (j judged) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := j.env.gate.CheckHost(r.URL.String()); err != nil {
		return nil, j.env.refuse(err)
	}
	return j.next.RoundTrip(r)
}

// resolve looks a host up and judges where it leads.
func (e *Env) resolve(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	for _, ip := range ips {
		class := match.ClassOf(ip.Unmap())
		literal := net.JoinHostPort(ip.Unmap().String(), port)
		if class == match.ClassPublic || e.tool.Policy.Network.Mode() == declare.ModeListed && e.gate.CheckHost(literal) == nil {
			return literal, nil
		}
	}
	return "", e.refuse(fmt.Errorf("%s leads to no address that the policy allows", host))
}

// Result is what a process did.
type Result struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr,omitzero"`
}

// Run starts a declared program confined to the policy, waits for it and
// everything it started, and refuses where no sandbox is to be had.
func (e *Env) Run(ctx context.Context, program string, args ...string) (*Result, error) {
	return e.Pipe(ctx, nil, program, args...)
}

// Pipe is Run with something on standard input.
func (e *Env) Pipe(ctx context.Context, input []byte, program string, args ...string) (*Result, error) {
	if err := e.gate.CheckProgram(program); err != nil {
		return nil, e.refuse(err)
	}
	p := *e.tool.Policy
	p.Environment = e.said.Environment // where nothing was said a program gets what it needs to start
	access := confine.FromTool(&p)
	spec, err := access.Spec(confine.Place{Dir: e.base.Dir, Home: e.base.Home, Program: program, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	spec.Command, spec.Dir = append([]string{program}, args...), e.base.Dir
	spec.Limits, spec.Stdin = sandbox.DefaultLimits(), bytes.NewReader(input)
	res, err := sandbox.Run(ctx, spec)
	if err != nil {
		return nil, err
	}
	for _, r := range res.Refusals {
		_ = e.refuse(fmt.Errorf("%s %s", r.Kind, r.Subject))
	}
	if res.StartErr != "" {
		return nil, errors.New(res.StartErr)
	}
	return &Result{ExitCode: res.ExitCode, Stdout: string(res.Stdout), Stderr: string(res.Stderr)}, nil
}
