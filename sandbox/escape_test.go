//go:build linux

package sandbox_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// attempt is one way out. It is run without a sandbox first and must succeed
// there; then it is run confined and must fail, unless the back-end is known
// not to hold it, which the documentation then says.
type attempt struct {
	name string
	how  string // the mechanism
	sh   string // run by /bin/sh
	code string // or: an attack in this test binary
	// escaped looks at the host afterwards; without it, success is the word
	// ESCAPED or the secret in the output.
	escaped func(h *host, out string) bool
	spec    func(s *sandbox.Spec)
	root    bool // succeeds unconfined for root only
	same    bool // needs a victim of the same user, outside too
	setup   func(h *host)
	// leaks names the back-ends that do not hold it.
	leaks []sandbox.Backend
}

const secret = "the-secret-3f9a"

// host is a small world around a workspace: things to steal, to break, to
// reach. Everything is fresh for each attempt.
type host struct {
	t                        testing.TB
	dir, ws, out, home, priv string
	victim                   *exec.Cmd
	env                      map[string]string
	got                      chan string // what the services outside received
	closers                  []func()
	inherit                  *os.File
	before                   map[string]string
}

// escapeUser is who the attempts are made as when they are not made as root.
const escapeUser = 54321

func newHost(t testing.TB, owner int) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh-escape-")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: dir, ws: dir + "/ws", out: dir + "/out", home: dir + "/home", priv: dir + "/private", got: make(chan string, 64)}
	h.closers = append(h.closers, func() { _ = os.RemoveAll(dir) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(dir, 0o755))
	files := map[string]string{
		"private/secret.txt": secret, "private/deep/er/file": secret, "home/.ssh/id_rsa": secret, "home/.aws/credentials": secret,
		"home/.bashrc": "# mine\n", "home/notes": secret, "out/file": "original\n", "out/dir/inner": "original\n",
		"ws/readme": "hello\n", "ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/config": "[core]\n\tbare = false\n",
		"ws/.git/hooks/pre-commit": "#!/bin/sh\n# original\n", "ws/.git/objects/x": "x", "ws/.git/refs/x": "x",
		"ws/.mcp.json": "{}\n", "ws/sub/.git/hooks/post-merge": "#!/bin/sh\n# original\n", "ws/sub/.git/config": "[core]\n",
		"ws/.claude/settings.json": "{}\n", "out/prog": "#!/bin/sh\necho ESCAPED\n",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(content), 0o644))
	}
	must(os.Chmod(dir+"/out/prog", 0o755))
	must(os.Mkdir(dir+"/out/empty", 0o755))
	if owner != 0 && os.Getuid() == 0 {
		must(filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error { return os.Lchown(p, owner, owner) }))
	}
	h.env = map[string]string{
		"H": dir, "WS": h.ws, "OUT": h.out, "PRIV": h.priv, "SELF": selfPath(t), "TOKEN": "t-" + filepath.Base(dir),
		"HOME": h.home, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	h.before = h.snapshot()
	return h
}

// selfPath is a copy of this test binary that every user can execute.
func selfPath(t testing.TB) string {
	t.Helper()
	path, err := selfCopy()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var selfCopy = sync.OnceValues(func() (string, error) {
	exe, err := os.Executable()
	if err != nil || os.Getuid() != 0 {
		return exe, err
	}
	dir, err := os.MkdirTemp("", "gh-self-")
	if err != nil {
		return "", err
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	b, err := os.ReadFile(exe)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sandbox.test")
	return path, errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, b, 0o755))
})

func (h *host) close() {
	for _, f := range slices.Backward(h.closers) {
		f()
	}
}

// watched are what must look the same after a confined run.
func (h *host) snapshot() map[string]string {
	m := map[string]string{}
	for _, top := range []string{h.out, h.home, h.priv, h.ws + "/.git", h.ws + "/sub/.git"} {
		_ = filepath.Walk(top, func(p string, fi os.FileInfo, err error) error {
			if err != nil {
				return nil
			}
			content := ""
			if fi.Mode().IsRegular() {
				b, _ := os.ReadFile(p)
				content = string(b)
			}
			st := fi.Sys().(*syscall.Stat_t)
			x := make([]byte, 256)
			n, _ := unix.Llistxattr(p, x)
			m[p] = fmt.Sprintf("%v %d:%d %q %d %q", fi.Mode(), st.Uid, st.Gid, content, mtime(fi), x[:max(n, 0)])
			return nil
		})
	}
	for _, f := range []string{".mcp.json", ".claude/settings.json"} {
		b, _ := os.ReadFile(filepath.Join(h.ws, f))
		m[filepath.Join(h.ws, f)] = string(b)
	}
	return m
}

// mtime of files only: a directory's changes when a quarantined entry leaves.
func mtime(fi os.FileInfo) int64 {
	if fi.IsDir() {
		return 0
	}
	return fi.ModTime().UnixNano()
}

// changed reports whether anything outside, or protected, is not as before.
func changed(h *host, _ string) bool {
	after := h.snapshot()
	if len(after) != len(h.before) {
		return true
	}
	for k, v := range h.before {
		if after[k] != v {
			return true
		}
	}
	return false
}

// appeared reports whether a path exists.
func appeared(rel string) func(*host, string) bool {
	return func(h *host, _ string) bool {
		_, err := os.Lstat(filepath.Join(h.dir, rel))
		return err == nil
	}
}

func said(_ *host, out string) bool {
	return strings.Contains(out, "ESCAPED") || strings.Contains(out, secret)
}

// received reports whether a service outside heard something.
func received(h *host, out string) bool {
	if said(h, out) {
		return true
	}
	select {
	case <-h.got:
		return true
	case <-time.After(50 * time.Millisecond):
		return false
	}
}

// withVictim starts a process to be tampered with.
func withVictim(h *host) { startVictim(h, "victim") }

func startVictim(h *host, kind string) {
	h.t.Helper()
	h.victim = exec.Command(h.env["SELF"], "attack", kind)
	h.victim.Env = []string{"VICTIM_SECRET=" + secret}
	h.victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a group of its own, to be aimed at
	if os.Getuid() == 0 && h.env["OWNER"] != "" {
		id, _ := strconv.Atoi(h.env["OWNER"])
		h.victim.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
	}
	h.victim.Dir = "/"
	out, err := h.victim.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.victim.Start(); err != nil {
		h.t.Fatal(err)
	}
	line := make([]byte, 128)
	n, _ := out.Read(line)
	h.env["VICTIM"] = strconv.Itoa(h.victim.Process.Pid)
	h.env["ADDR"] = strings.TrimSpace(string(line[:n]))
	died := make(chan struct{})
	go func() { _ = h.victim.Wait(); close(died) }()
	h.closers = append(h.closers, func() {
		_ = h.victim.Process.Kill()
		<-died
		victimObjects(h.victim.Process.Pid)
	})
}

// victimHurt reports whether the victim is dead or stopped.
func victimHurt(h *host, _ string) bool {
	for range 20 {
		b, err := os.ReadFile("/proc/" + h.env["VICTIM"] + "/stat")
		if err != nil {
			return true
		}
		rest := string(b[bytes.LastIndexByte(b, ')')+2:])
		if strings.ContainsAny(rest[:1], "ZXTt") {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (h *host) spec(b sandbox.Backend) sandbox.Spec {
	s := sandbox.Spec{
		Dir: h.ws, Write: []string{h.ws}, Backend: b, Launcher: shippedLauncher(h.t), Env: sandbox.Env{Pass: []string{}, Set: h.env},
		Limits: sandbox.Limits{Wall: 30 * time.Second}, Quarantine: h.dir + "/quarantine",
	}
	if b != sandbox.Bubblewrap {
		s.Without = sandbox.ProtectedPaths
	}
	return s
}

func (a attempt) command(h *host) []string {
	if a.code != "" {
		return append([]string{h.env["SELF"], "attack"}, strings.Fields(a.code)...)
	}
	return []string{"/bin/sh", "-c", a.sh}
}

func (a attempt) judge(h *host, out string) bool {
	if a.escaped == nil {
		return said(h, out)
	}
	return a.escaped(h, out)
}

// free runs the attempt without a sandbox and reports whether it succeeded.
func (a attempt) free(t testing.TB, owner int) bool {
	h := newHost(t, owner)
	defer h.close()
	if owner != 0 {
		h.env["OWNER"] = strconv.Itoa(owner)
	}
	if a.setup != nil {
		a.setup(h)
	}
	argv := a.command(h)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = h.ws
	for k, v := range h.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if h.inherit != nil {
		cmd.ExtraFiles = []*os.File{h.inherit}
	}
	out, _ := runBounded(cmd)
	return a.judge(h, out)
}

// succeedsFree tries an attempt without a sandbox, several times if need be:
// some race with the machine's other work, and one success is the proof.
func (a attempt) succeedsFree(t testing.TB, owner int) bool {
	for range 5 {
		if a.free(t, owner) {
			return true
		}
	}
	return false
}

// proven are the attempts that were seen to succeed, by name and user. What one
// back-end is tried with need not be proven again for the next.
var proven sync.Map

func provenFree(t testing.TB, a attempt, owner int) bool {
	key := a.name + " " + strconv.Itoa(owner)
	if _, ok := proven.Load(key); ok {
		return true
	}
	if !a.succeedsFree(t, owner) {
		return false
	}
	proven.Store(key, true)
	return true
}

// runBounded runs a command and does not wait for what it left behind.
func runBounded(cmd *exec.Cmd) (string, error) {
	f, err := os.CreateTemp("", "gh-out-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Run()
	b, _ := os.ReadFile(f.Name())
	return string(b), err
}

// confined runs the attempt in a sandbox and reports whether it got out.
func (a attempt) confined(t testing.TB, b sandbox.Backend, owner int) bool {
	h := newHost(t, owner)
	defer h.close()
	if owner != 0 {
		h.env["OWNER"] = strconv.Itoa(owner)
	}
	if a.setup != nil {
		a.setup(h)
	}
	s := h.spec(b)
	s.Command = a.command(h)
	if a.spec != nil {
		a.spec(&s)
	}
	r, err := sandbox.Run(t.Context(), s)
	if err != nil {
		t.Errorf("%s: %v", a.name, err)
		return false
	}
	return a.judge(h, string(r.Stdout)+string(r.Stderr))
}

// only picks attempts while working on them.
var only = flag.String("only", "", "make only the escape attempts whose names match")

// TestEscapes makes every attempt against every back-end of this host.
func TestEscapes(t *testing.T) {
	notRaced(t, "the attempts are made by confined processes, which it does not see")
	for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.Podman, sandbox.Docker} {
		t.Run(string(b), func(t *testing.T) {
			if b == sandbox.Podman || b == sandbox.Docker {
				needBackend(t, b)
			}
			if b == sandbox.Firejail {
				if os.Getuid() == 0 && os.Getenv("GH_KNOWN_USER") == "" {
					asKnownUser(t, "^TestEscapes$/^firejail$", false)
					return
				}
				needBackend(t, b)
			}
			runEscapes(t, b)
		})
	}
}

func runEscapes(t *testing.T, b sandbox.Backend) {
	owner := 0
	if b != sandbox.Bubblewrap && os.Getuid() == 0 {
		owner = escapeUser // nothing can map root's files without namespaces
	}
	tried, mechanisms := 0, map[string]bool{}
	names := map[string]bool{}
	// Firejail looks once a second whether its command has ended, and engines take
	// as long to start one; meanwhile others can be tried.
	at := make(chan struct{}, map[sandbox.Backend]int{sandbox.Bubblewrap: 3, sandbox.Landlock: 3, sandbox.Firejail: 8, sandbox.Podman: 6, sandbox.Docker: 6}[b])
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, a := range attempts() {
		if names[a.name] {
			t.Fatalf("two attempts are called %s", a.name)
		}
		names[a.name] = true
		if !regexp.MustCompile(*only).MatchString(a.name) {
			continue
		}
		if a.root && os.Getuid() != 0 || a.same && owner != 0 || a.how == "egress" && b != sandbox.Bubblewrap {
			continue
		}
		at <- struct{}{}
		if a.how == "exhaustion" {
			all.Wait() // what is counted is counted for all of a user's
		}
		all.Go(func() {
			defer func() { <-at }()
			if !provenFree(t, a, owner) {
				t.Errorf("%s: does not succeed even without a sandbox, so it proves nothing", a.name)
				return
			}
			mu.Lock()
			tried++
			mechanisms[a.how] = true
			mu.Unlock()
			out := a.confined(t, b, owner)
			switch known := slices.Contains(a.leaks, b); {
			case out && !known:
				t.Errorf("%s: ESCAPED", a.name)
			case !out && known:
				t.Errorf("%s: is held after all; take it off the list", a.name)
			}
		})
		if a.how == "exhaustion" {
			all.Wait()
		}
	}
	all.Wait()
	t.Logf("%d attempts over %d mechanisms as user %d", tried, len(mechanisms), os.Getuid())
	if !testing.Short() && *only == "" && (tried < 150 || len(mechanisms) < 40) {
		t.Errorf("only %d attempts over %d mechanisms", tried, len(mechanisms))
	}
}

// TestAttack37ProtectedPaths: hooks, settings and start-up files inside a
// writable root, at any depth, in any case, present or not, by every way that
// was thought of. That each works without a sandbox TestEscapes shows.
func TestAttack37ProtectedPaths(t *testing.T) {
	list := protectedAttempts()
	for _, a := range append(moreAttempts(), thirdAttempts()...) {
		if strings.HasPrefix(a.how, "protected") {
			list = append(list, a)
		}
	}
	for _, a := range list {
		if a.confined(t, sandbox.Bubblewrap, 0) {
			t.Errorf("%s: ESCAPED", a.name)
		}
	}
}

// TestAttack38HostSockets: sockets of the host that lie in a declared root, in
// no root at all, or nowhere in the file system.
func TestAttack38HostSockets(t *testing.T) {
	for _, a := range reachAttempts() {
		if a.how != "unix socket" && a.how != "abstract socket" {
			continue
		}
		for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock} {
			owner := 0
			if b == sandbox.Landlock && os.Getuid() == 0 {
				owner = escapeUser
			}
			if a.confined(t, b, owner) {
				t.Errorf("%s: %s: ESCAPED", b, a.name)
			}
		}
	}
}

// TestAttack42NothingOutlives: children that detach, ignore signals, restart or
// fork on are dead when the call returns, and no descriptor of the gate's is
// open in them.
func TestAttack42NothingOutlives(t *testing.T) {
	list := append(processAttempts(), readAttempts()...)
	for _, a := range list {
		if a.how == "outlive" && a.confined(t, sandbox.Bubblewrap, 0) || a.how == "descriptor" && a.confined(t, sandbox.Bubblewrap, 0) {
			t.Errorf("%s: ESCAPED", a.name)
		}
	}
}

// TestEscapesAsUser makes the same attempts from an ordinary user's process.
func TestEscapesAsUser(t *testing.T) {
	notRaced(t, "the attempts are made by confined processes, which it does not see")
	if os.Getuid() != 0 {
		t.Skip("already an ordinary user")
	}
	asKnownUser(t, "^TestEscapes$", true)
}
