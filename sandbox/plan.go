package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plan is a Spec after the host was looked at: every path canonical, the
// program found, the environment built. Back-ends translate it.
type plan struct {
	spec     *Spec
	need     Guarantee
	limits   Limits
	path     string
	dir      string
	home     string
	env      []string
	stripped []string

	roots   []root // declared, merged, parents first
	pins    []string
	sealed  []finding // protected entries that exist
	guard   *guard
	runtime []string          // what a dynamic program needs
	links   map[string]string // the program's own link, where it is outside
	layer   string            // where an overlay keeps its changes
	port    uint16            // loopback port of the proxy inside
}

// proxyPort is where the proxy listens inside. The namespace is the run's own,
// so nothing else can be there yet.
const proxyPort = 3128

func newPlan(s *Spec) (*plan, error) {
	if err := s.Verify(); err != nil {
		return nil, err
	}
	p := &plan{spec: s, need: needed(s), limits: s.Limits.withDefaults()}
	dir := s.Dir
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		dir = wd
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if p.dir, err = filepath.Abs(real); err != nil {
		return nil, err
	}
	p.env, p.stripped = s.Env.build(os.Environ())
	p.home = lookupEnv(p.env, "HOME")
	if p.home == "" || !filepath.IsAbs(p.home) || hasMeta(p.home) {
		p.home = "/home/sandbox"
	}
	p.home = filepath.Clean(p.home)
	if p.home == "/" || slices.ContainsFunc(unwritable, func(b string) bool { return within(p.home, b) }) {
		p.home = "/home/sandbox"
	}
	if lookupEnv(p.env, "HOME") != "" {
		p.env = setEnv(p.env, "HOME", p.home)
	}
	// The host's temporary directory is not there inside.
	if lookupEnv(p.env, "TMPDIR") != "" {
		p.env = setEnv(p.env, "TMPDIR", "/tmp")
	}
	if err := p.declare(); err != nil {
		return nil, err
	}
	if err := p.protect(); err != nil {
		return nil, err
	}
	if s.Net.Mode != NetNone {
		p.port = proxyPort
		p.proxyEnv()
	}
	return p, p.findProgram()
}

func (p *plan) declare() error {
	s := p.spec
	writes, err := writeRoots(s.Write, p.dir)
	if err != nil {
		return err
	}
	private, err := writeRoots(s.Private, p.dir)
	if err != nil {
		return err
	}
	for _, r := range private {
		r.private = true
		writes = append(writes, r)
	}
	if s.Overlay.active() {
		real, err := filepath.EvalSymlinks(s.Overlay.Root)
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		writes = append(writes, root{path: real, write: true, dir: true})
		if p.layer, err = makeLayer(s.Overlay.Layer, real); err != nil {
			return err
		}
	}
	reads := s.Read
	if len(reads) == 0 {
		if within(homeOfUser(), p.dir) {
			return fmt.Errorf("working directory %s holds the whole home directory: declare what may be read", p.dir)
		}
		reads = []string{p.dir}
	}
	more, err := readRoots(reads, p.dir)
	if err != nil {
		return err
	}
	p.roots = mergeRoots(append(writes, more...))
	return nil
}

// makeLayer prepares the directory of an overlay. It must be new or empty, and
// neither inside the root nor around it.
func makeLayer(layer, top string) (string, error) {
	if err := os.MkdirAll(layer, 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(layer)
	if err != nil {
		return "", err
	}
	if within(real, top) || within(top, real) {
		return "", fmt.Errorf("overlay: the layer %s and the root %s contain each other", real, top)
	}
	dirs := []string{real}
	for _, d := range []string{"upper", "work", "merged"} {
		dir := filepath.Join(real, d)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", fmt.Errorf("overlay: the layer is in use: %w", err)
		}
		dirs = append(dirs, dir)
	}
	// Started as root, the command runs as the owner of the root, and so does
	// the overlay.
	if err := giveTo(top, dirs); err != nil {
		return "", err
	}
	// The merged view takes its mode from the upper directory.
	return real, os.Chmod(filepath.Join(real, "upper"), 0o755)
}

// userEnv is the environment of a helper that looks its user up.
func userEnv() []string { return []string{"PATH=/usr/bin:/bin", "HOME=" + homeOfUser()} }

// homeOfUser is the real home, whatever the environment of the run says.
func homeOfUser() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "/root"
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		return real
	}
	return home
}

// protect finds what exists now and must stay. In an overlay nothing reaches
// the root itself, and package changes asks per protected file later.
func (p *plan) protect() error {
	g, err := newGuard(p.spec, p.dir)
	if err != nil {
		return err
	}
	p.guard = g
	pins := map[string]bool{}
	for _, r := range p.roots {
		if !r.write || p.spec.Overlay.active() && r.path == p.overlayRoot() {
			continue
		}
		g := g.in(r)
		if !r.dir {
			comps := strings.Split(strings.Trim(fold(r.path), "/"), "/")
			if g.match(comps) || slices.Contains(g.paths, r.path) {
				return fmt.Errorf("write %q: a protected name; lift it with Unprotected to declare it", r.path)
			}
			continue
		}
		for _, path := range g.paths {
			if within(r.path, path) {
				return fmt.Errorf("write %q: lies in the protected path %s", r.path, path)
			}
		}
		// A root that is itself a protected name, or lies inside one, was
		// declared on purpose but by the wrong means.
		comps := strings.Split(strings.Trim(fold(r.path), "/"), "/")
		for i := range comps {
			if g.match(comps[:i+1]) {
				return fmt.Errorf("write %q: lies in a protected path; lift it with Unprotected to declare it", r.path)
			}
		}
		err := g.scan(r.path, func(f finding) error {
			p.sealed = append(p.sealed, f)
			for _, a := range ancestors(r.path, f.path) {
				pins[a] = true
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("looking for protected paths: %w", err)
		}
	}
	for a := range pins {
		p.pins = append(p.pins, a)
	}
	slices.Sort(p.pins)
	return nil
}

// unixInside says whether sockets of that family can be made inside.
func (p *plan) unixInside() bool { return len(p.spec.UnixSockets) > 0 || p.spec.Channel != nil }

// channel is the path to listen on inside, "" for none.
func (p *plan) channel() string {
	if p.spec.Channel == nil {
		return ""
	}
	return p.spec.Channel.Path
}

// ownView says whether the Spec asks for a file system of its own.
func (p *plan) ownView() bool {
	return p.spec.Overlay.active() || len(p.spec.Files) > 0 || p.spec.Channel != nil
}

// inRoot says whether a path lies in what was declared.
func (p *plan) inRoot(path string) bool {
	return slices.ContainsFunc(p.roots, func(r root) bool { return within(path, r.path) })
}

func (p *plan) overlayRoot() string {
	real, err := filepath.EvalSymlinks(p.spec.Overlay.Root)
	if err != nil {
		return p.spec.Overlay.Root
	}
	return real
}

// proxyEnv points programs at the proxy in all the ways they look for it.
func (p *plan) proxyEnv() {
	url := fmt.Sprintf("http://127.0.0.1:%d", p.port)
	for _, k := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "npm_config_proxy", "npm_config_https_proxy"} {
		p.env = setEnv(p.env, k, url)
	}
	socks := fmt.Sprintf("socks5h://127.0.0.1:%d", p.port)
	for _, k := range []string{"ALL_PROXY", "all_proxy"} {
		p.env = setEnv(p.env, k, socks)
	}
	// Nothing is reachable without it, the host's loopback included.
	for _, k := range []string{"NO_PROXY", "no_proxy"} {
		p.env = setEnv(p.env, k, "")
	}
	// Node's own fetch looks at the variables only when told to.
	p.env = setEnv(p.env, "NODE_USE_ENV_PROXY", "1")
	slices.Sort(p.env)
}

// runtimePaths are what a dynamic program needs: libraries, interpreters, and
// the files of /etc that hold neither names nor secrets of this machine.
var runtimePaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	"/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/os-release",
	"/etc/ssl/openssl.cnf",
}

func (p *plan) findProgram() error {
	for _, path := range runtimePaths {
		if _, err := os.Lstat(path); err == nil {
			p.runtime = append(p.runtime, path)
		}
	}
	name := p.spec.Command[0]
	if strings.HasSuffix(name, ".wasm") {
		path, err := filepath.Abs(filepath.Join(p.dir, name))
		if filepath.IsAbs(name) {
			path = name
		}
		p.path = path
		return err
	}
	found, err := lookProgram(name, p.dir, lookupEnv(p.env, "PATH"))
	if err != nil {
		return err
	}
	p.path = found
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return err
	}
	if !p.visible(found) && found != real {
		p.links = map[string]string{found: real}
	}
	if !p.visible(real) {
		p.roots = mergeRoots(append(p.roots, root{path: real}))
	}
	return nil
}

// lookProgram finds a program as the command's own PATH would. Relative
// entries of PATH are skipped: they mean the working directory, which is what
// an attacker writes to.
func lookProgram(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue
		}
		f := filepath.Join(d, name)
		if executable(f) == nil {
			return f, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func executable(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if fi.IsDir() || fi.Mode()&0o111 == 0 {
		return &exec.Error{Name: path, Err: errors.New("not executable")}
	}
	return nil
}

// visible reports whether a path is inside the runtime or a declared root.
func (p *plan) visible(path string) bool {
	for _, r := range p.roots {
		if within(path, r.path) {
			return true
		}
	}
	return slices.ContainsFunc(p.runtime, func(r string) bool { return within(path, r) })
}
