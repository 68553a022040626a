//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// thirdAttempts were thought of by going through what the kernel offers once
// more: newer calls, magic links, devices, what a repository can hold, and every
// way to say one thing to the proxy and mean another.
func thirdAttempts() []attempt {
	var list []attempt
	add := func(a ...attempt) { list = append(list, a...) }
	victim := func(how, name, code string) { add(call(how, name, code+" $VICTIM").with(withVictim)) }
	add(
		call("magic link", "openat2", "openat2 $PRIV/secret.txt"),
		call("magic link", "openat2 in a root", "openat2root $PRIV/secret.txt"),
		call("magic link", "above a path descriptor", "fdclimb ../private/secret.txt"),
		steal("magic link", "a thread's root", `cat "/proc/thread-self/root$PRIV/secret.txt"`),
		steal("magic link", "a thread's directory", `cat /proc/$$/task/$$/cwd/../private/secret.txt`),
		call("memory file", "execute", "memfdexec $PRIV/secret.txt"),
		call("execution", "by descriptor", "execat $OUT/elf").with(binaryOutside),
		steal("execution", "as a script's interpreter", `printf '#!%s ESCAPED\n' "$OUT/elf" > s; chmod +x s; ./s`).with(binaryOutside),
		call("copy in the kernel", "copy a range", "copyrange $PRIV/secret.txt"),
		call("copy in the kernel", "splice", "splicefile $PRIV/secret.txt"),
		call("make", "a nameless file, named", "tmpfile $OUT").judged(changed),
		call("metadata", "access list", "acl $OUT/file"),
		call("change root", "here", "chroothere").asRoot(),
		call("second filter", "with a listener", "listener"),
		call("terminal injection", "line discipline", "discipline"),
		call("privilege", "real-time scheduling", "realtime").asRoot(),
		call("file events", "fanotify", "fanotify $PRIV").asRoot(),
		steal("keyring", "see a key's name", `grep -q "gh-$TOKEN" /proc/keys && echo ESCAPED`).with(sessionKey),
		steal("core dump", "limit", `[ "$(ulimit -H -c)" != 0 ] && echo ESCAPED`),
		attempt{how: "outlive", name: "outlive/a sibling", code: "sibling $WS/late", escaped: later("ws/late")},
		attempt{how: "rename", name: "rename/the writable root itself", sh: `mv "$WS" "$H/moved"`, escaped: appeared("moved"), root: true},
		call("namespace", "enter by process descriptor", "setnspid $VICTIM").with(withVictim).asRoot(),
	)
	victim("process memory", "locks of its threads", "robust")
	add(call("process memory", "advice", "madvise $VICTIM").with(withVictim).asRoot())
	victim("process memory", "move pages", "movepages")
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		add(leaveBehind(dir))
	}
	for _, path := range []string{
		"/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/loop-control", "/dev/kmsg", "/dev/mem", "/dev/vhost-net", "/dev/vhost-vsock", "/dev/uinput",
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper",
		"/sys/kernel/mm/transparent_hugepage/enabled",
	} {
		if openable(path) {
			add(call("device or setting", filepath.Base(path), "openw "+path).asRoot())
		}
	}
	for _, path := range append(disks(), "/proc/kcore", "/proc/1/environ", "/proc/1/root/etc/shadow", "/proc/1/cwd/etc/shadow", "/sys/kernel/debug/sleep_time") {
		if f, err := os.Open(path); err == nil {
			if _, err := f.Read(make([]byte, 1)); err == nil {
				add(call("machine files", strings.TrimPrefix(path, "/"), "openr "+path).asRoot())
			}
			_ = f.Close()
		}
	}
	add(repositoryAttempts()...)
	return append(list, rawAttempts()...)
}

// sessionKey puts a key where whatever is started from here has it too.
func sessionKey(h *host) {
	id, err := unix.AddKey("user", "gh-"+h.env["TOKEN"], []byte(secret), unix.KEY_SPEC_USER_KEYRING)
	if err == nil {
		h.closers = append(h.closers, func() { _, _ = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0) })
	}
}

// later waits for what may come after everything is over. What came before that
// came while the back-end still waited.
func later(rel string) func(*host, string) bool {
	return func(h *host, out string) bool {
		if appeared(rel)(h, out) {
			return false
		}
		time.Sleep(600 * time.Millisecond)
		return appeared(rel)(h, out)
	}
}

// leaveBehind leaves a file where everybody looks.
func leaveBehind(dir string) attempt {
	name := func(h *host) string { return dir + "/gh-" + h.env["TOKEN"] }
	return attempt{
		how: "shared places", name: "shared places/" + strings.TrimPrefix(dir, "/"), sh: `echo x > ` + dir + `/gh-$TOKEN`, root: dir == "/run",
		escaped: func(h *host, _ string) bool {
			_, err := os.Lstat(name(h))
			_ = os.Remove(name(h))
			return err == nil
		},
	}
}

// disks are the machine's block devices.
func disks() []string {
	var list []string
	entries, _ := os.ReadDir("/sys/block")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "loop") && len(list) < 2 {
			list = append(list, "/dev/"+e.Name())
		}
	}
	return list
}

// repositoryAttempts plant what runs later under names that do not look it.
func repositoryAttempts() []attempt {
	plant := func(name, path, script string) attempt {
		return attempt{
			how: "protected and absent", name: "protected and absent/" + name, sh: script,
			escaped: func(h *host, _ string) bool {
				b, err := os.ReadFile(filepath.Join(h.ws, path)) // through links, as its reader would
				return err == nil && bytes.Contains(b, []byte("evil"))
			},
		}
	}
	return []attempt{
		plant("settings behind a link", ".claude/settings.json", `mkdir d; echo evil > d/settings.json; rm -rf .claude; ln -s d .claude`),
		plant("tasks behind a link", ".vscode/tasks.json", `mkdir d; echo evil > d/tasks.json; ln -s d .vscode`),
		plant("a configuration directory behind a link", ".config/git/config", `mkdir -p d/git; echo evil > d/git/config; ln -s d .config`),
		plant("deep, behind a link", "sub/n/.gemini/settings.json", `mkdir -p sub/n d; echo evil > d/settings.json; ln -s ../../d sub/n/.gemini`),
		plant("behind two links", ".cursor/hooks.json", `mkdir d; echo evil > d/hooks.json; ln -s d e; ln -s e .cursor`),
		plant("a hard link to the name", ".envrc", `echo evil > f; ln f .envrc`),
		plant("a link to a file", ".netrc", `echo evil > f; ln -s f .netrc`),
		plant("a submodule's hook", ".git/modules/m/hooks/pre-commit", `mkdir -p .git/modules/m/objects .git/modules/m/refs .git/modules/m/hooks; echo x > .git/modules/m/HEAD; echo evil > .git/modules/m/hooks/pre-commit`),
		plant("a worktree's settings", ".git/worktrees/w/config.worktree", `mkdir -p .git/worktrees/w; echo ref > .git/worktrees/w/HEAD; echo ../.. > .git/worktrees/w/commondir; echo evil > .git/worktrees/w/config.worktree`),
		plant("a bare repository", "sub/bare/config", `mkdir -p sub/bare/objects sub/bare/refs; echo x > sub/bare/HEAD; echo evil > sub/bare/config`),
		plant("another common directory", ".git/commondir", `echo ../evil > .git/commondir`),
		plant("hooks of another agent", ".windsurf/hooks.json", `mkdir .windsurf; echo evil > .windsurf/hooks.json`),
		plant("hooks of a forge's agent", ".github/hooks/x.json", `mkdir -p .github/hooks; echo evil > .github/hooks/x.json`),
		plant("a renamed directory", ".vscode/tasks.json", `mkdir d; echo evil > d/tasks.json; mv d .vscode`),
	}
}

// rawAttempts say something to the proxy that could be read in two ways. The
// declared host is a server of the test's that notes when it is addressed as
// another; the other is the listener.
func rawAttempts() []attempt {
	var list []attempt
	var names []string
	for name := range rawWords {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var at *host
		a := attempt{how: "egress", name: "egress/two readings: " + name, code: "rawproxy " + name, escaped: received}
		a.setup = func(h *host) { services(h); at = h }
		a.spec = func(s *sandbox.Spec) {
			port := s.Env.Set["TCP"]
			good := netip.MustParseAddr("192.88.99.7")
			s.Net = sandbox.Net{
				Mode: sandbox.NetHosts, Allow: []string{"good.test:" + port},
				Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
					if name == "good.test" {
						return []netip.Addr{good}, nil
					}
					return []netip.Addr{netip.MustParseAddr("192.88.99.66")}, nil
				},
				Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
					if to.Addr() == good && to.Port() != 0 {
						ours, theirs := net.Pipe()
						go declaredServer(theirs, at.got)
						return ours, nil
					}
					var d net.Dialer
					return d.DialContext(ctx, "tcp", "127.0.0.1:"+port)
				},
			}
		}
		list = append(list, a)
	}
	return list
}

// declaredServer answers requests until the other end goes, and notes when it is
// spoken to as somebody else.
func declaredServer(c net.Conn, got chan<- string) {
	defer c.Close()
	var seen []byte
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		seen = append(seen, buf[:n]...)
		if bytes.Contains(seen, []byte("evil.test")) {
			select {
			case got <- "addressed as another":
			default:
			}
		}
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("\r\n\r\n")) {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		}
	}
}
