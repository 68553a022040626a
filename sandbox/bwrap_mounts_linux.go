package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mounts lays out the file system: runtime, private places, declared roots,
// then what is protected inside them. Later entries cover earlier ones.
func (b *bubble) mounts() error {
	p := b.plan
	whole := slices.ContainsFunc(p.roots, func(r root) bool { return r.path == "/" })
	if whole {
		b.add("--ro-bind", "/", "/")
	} else {
		for _, path := range p.runtime {
			if err := b.runtimePath(path); err != nil {
				return err
			}
		}
	}
	b.add("--proc", "/proc", "--dev", "/dev")
	// It lists the user's keys, whatever namespace asks.
	if _, err := os.Lstat("/proc/keys"); err == nil {
		b.add("--dev-bind", "/dev/null", "/proc/keys")
	}
	size := strconv.FormatInt(p.limits.TempSize, 10)
	for _, dir := range privateDirs(p) {
		b.add("--size", size, "--perms", "0700", "--tmpfs", dir)
	}
	if !whole {
		b.add("--symlink", "../tmp", "/var/tmp")
	} else {
		b.add("--tmpfs", "/var/tmp")
	}
	if err := b.etc(whole); err != nil {
		return err
	}
	for _, path := range sortedKeys(p.spec.Files) {
		if p.inRoot(path) {
			continue
		}
		if err := b.data("--file", path, p.spec.Files[path]); err != nil {
			return err
		}
	}
	for link, target := range p.links {
		b.add("--symlink", target, link)
	}
	if err := b.declared(); err != nil {
		return err
	}
	for _, path := range sortedKeys(p.spec.Files) {
		if !p.inRoot(path) {
			continue
		}
		// A mount needs something to cover, and what would be made for it here
		// would be made on the host.
		if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
			return fmt.Errorf("%s lies in a declared root and is no file that could be covered", path)
		}
		if err := b.data("--ro-bind-data", path, p.spec.Files[path]); err != nil {
			return err
		}
	}
	b.add("--dir", p.dir, "--remount-ro", "/")
	return nil
}

// runtimePath brings one path of the system in. Links stay links and small
// files are copied: twenty mounts more would add half to the start-up time.
func (b *bubble) runtimePath(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		b.add("--symlink", target, path)
	case fi.Mode().IsRegular() && fi.Size() < 1<<20:
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		b.add("--perms", "0444", "--file", b.pass(f, true), path)
	default:
		b.add("--ro-bind", path, path)
	}
	return nil
}

// privateDirs are empty and the run's own.
func privateDirs(p *plan) []string {
	list := []string{"/tmp", "/run", "/dev/shm"}
	declared := slices.ContainsFunc(p.roots, func(r root) bool { return r.path == p.home })
	if !declared && !slices.Contains(list, p.home) {
		list = append(list, p.home)
	}
	return list
}

// etc writes the few files that name users and hosts. The host's own would
// tell who else lives here.
func (b *bubble) etc(whole bool) error {
	if whole {
		return nil
	}
	user := lookupEnv(b.plan.env, "USER")
	if user == "" || strings.ContainsAny(user, ":\n/") || user == "root" {
		user = "sandbox"
	}
	files := map[string]string{
		"/etc/passwd": fmt.Sprintf("root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n%s:x:%d:%d::%s:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
			user, b.id.uid, b.id.gid, b.plan.home),
		"/etc/group":         fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", user, b.id.gid),
		"/etc/hosts":         "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
	for _, path := range sortedKeys(files) {
		if err := b.data("--file", path, files[path]); err != nil {
			return err
		}
	}
	return nil
}

// declared binds the roots, pins the directories above protected entries and
// binds those read-only over themselves.
func (b *bubble) declared() error {
	var st *stage
	if b.id.drop {
		var err error
		if st, err = newStage(b.plan, b.id); err != nil {
			return err
		}
	}
	type bind struct {
		path  string
		write bool
		dir   bool
		inner bool // inside a root, opened relative to where that was staged
	}
	var binds []bind
	for _, r := range b.plan.roots {
		if r.path != "/" {
			binds = append(binds, bind{path: r.path, write: r.write, dir: r.dir})
		}
	}
	for _, pin := range b.plan.pins {
		binds = append(binds, bind{path: pin, write: true, dir: true, inner: true})
	}
	for _, s := range b.plan.sealed {
		if s.link == "" {
			binds = append(binds, bind{path: s.path, dir: s.mode.IsDir(), inner: true})
		}
	}
	slices.SortStableFunc(binds, func(x, y bind) int { return strings.Compare(x.path, y.path) })
	staged := map[string]string{}
	for _, d := range binds {
		if b.plan.spec.Overlay.active() && d.path == b.plan.overlayRoot() {
			if err := b.overlay(st); err != nil {
				return err
			}
			continue
		}
		path := d.path
		if st != nil && d.inner {
			path = stagedPath(staged, path)
		}
		f, err := openRoot(path)
		if err != nil {
			return err
		}
		if st != nil && !d.inner {
			at, err := st.place(int(f.Fd()), d.dir)
			_ = f.Close()
			if err != nil {
				return fmt.Errorf("stage %s: %w", d.path, err)
			}
			staged[d.path] = at
			if f, err = openRoot(at); err != nil {
				return err
			}
		}
		op := "--ro-bind-fd"
		if d.write {
			op = "--bind-fd"
		}
		b.add(op, b.pass(f, true), d.path)
	}
	return b.sockets(st)
}

// overlay prepares the three directories and binds the merged one.
func (b *bubble) overlay(st *stage) error {
	lower, layer := b.plan.overlayRoot(), b.plan.layer
	target := filepath.Join(layer, "merged")
	if st != nil {
		at := map[string]string{}
		for _, dir := range []string{lower, layer} {
			f, err := openRoot(dir)
			if err != nil {
				return err
			}
			at[dir], err = st.place(int(f.Fd()), true)
			_ = f.Close()
			if err != nil {
				return err
			}
		}
		lower, layer = at[lower], at[layer]
		target = filepath.Join(st.dir, "merged")
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
	}
	if strings.ContainsAny(lower+layer, ",:\\") {
		return errors.New("overlay: a comma, colon or backslash in the path")
	}
	b.over = []string{lower, layer, target}
	b.add("--bind", target, b.plan.overlayRoot())
	return nil
}

// stagedPath finds where a path below a staged root is now.
func stagedPath(staged map[string]string, path string) string {
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if at, ok := staged[dir]; ok {
			return at + strings.TrimPrefix(path, dir)
		}
	}
	return path
}

// sockets binds the named ones, wherever they are, into their own places.
func (b *bubble) sockets(st *stage) error {
	if !b.plan.unixInside() {
		return nil // none can be made inside, so none can be reached
	}
	for _, path := range otherSockets(b.plan) {
		b.add("--ro-bind", "/dev/null", path)
	}
	for _, path := range b.plan.spec.UnixSockets {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		f, err := openRoot(real)
		if err != nil {
			return err
		}
		if st != nil {
			at, err := st.place(int(f.Fd()), false)
			_ = f.Close()
			if err != nil {
				return err
			}
			if f, err = openRoot(at); err != nil {
				return err
			}
		}
		b.add("--ro-bind-fd", b.pass(f, true), path)
	}
	return nil
}

// otherSockets lists sockets that lie in declared roots without being named;
// they are covered.
func otherSockets(p *plan) []string {
	var list []string
	for _, r := range p.roots {
		_ = filepath.WalkDir(r.path, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type()&os.ModeSocket != 0 && !slices.Contains(p.spec.UnixSockets, path) {
				list = append(list, path)
			}
			return nil
		})
	}
	return list
}
