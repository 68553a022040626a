//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// moreAttempts are ways that were thought of later.
func moreAttempts() []attempt {
	var list []attempt
	add := func(a ...attempt) { list = append(list, a...) }

	add(call("namespace", "user by the newer clone", "clone3"),
		steal("namespace", "enter a process's", `nsenter -t $VICTIM -m cat "$PRIV/secret.txt"`).with(withVictim).asRoot(),
		call("mount", "the newer calls to the end", "fsmount").asRoot(),
		call("truncate", "by an open that only reads", "opentrunc $OUT/file").judged(changed),
		call("descriptor", "climb from an inherited directory", "dirfd tmp/../$PRIV/secret.txt").with(leakRoot),
		call("signal", "by owning a descriptor", "sigio $VICTIM").with(withVictim).judged(victimHurt),
		call("signal", "to a process group", "killgroup $VICTIM").with(withVictim).judged(victimHurt),
		call("process memory", "of the starter", "parentmem"),
		steal("execution", "undeclared binary", `"$OUT/elf" ESCAPED`).with(binaryOutside),
		steal("execution", "through the loader", `/lib64/ld-linux-x86-64.so.2 "$OUT/elf" ESCAPED`).with(binaryOutside),
		call("terminal injection", "write to a terminal outside", "openw $PTS").with(terminalOutside),
		call("protected", "exchange the repository", "exchange .git sub").judged(changed).leaking(sandbox.Landlock, sandbox.Firejail),
		attempt{how: "protected and absent", name: "protected and absent/settings in another case", escaped: appeared("ws/.cLaUdE/settings.json"), sh: `mkdir .cLaUdE; echo '{"hooks":1}' > .cLaUdE/settings.json`},
		attempt{how: "protected and absent", name: "protected and absent/repository renamed into place", escaped: appeared("ws/n/.git/hooks/pre-commit"), sh: `mkdir -p n/g/hooks; echo evil > n/g/hooks/pre-commit; chmod +x n/g/hooks/pre-commit; mv n/g n/.git`},
		attempt{how: "outlive", name: "outlive/a thread that acts later", code: "late $OUT/late", escaped: appeared("out/late")},
	)
	for _, what := range []string{"swapon", "swapoff", "acct", "quotactl"} {
		add(call("privileged calls", what, "privileged "+what).asRoot())
	}
	for _, file := range []string{"coredump_filter", "timerslack_ns", "clear_refs"} {
		add(call("process settings", file, "openw /proc/$VICTIM/"+file).with(withVictim))
	}
	for _, path := range []string{"/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/drop_caches"} {
		if unix.Access(path, unix.W_OK) == nil && openable(path) {
			add(call("proc settings", filepath.Base(path), "openw "+path).asRoot())
		}
	}
	for name, args := range map[string][3]int{
		"crypto": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "sctp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP},
		"dccp": {unix.AF_INET, 6, unix.IPPROTO_DCCP}, "udp-lite": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
		"ping": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, "ping, version 6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6},
		"phone": {unix.AF_PPPOX, unix.SOCK_STREAM, 0}, "can": {unix.AF_CAN, unix.SOCK_RAW, 1}, "tipc": {unix.AF_TIPC, unix.SOCK_RDM, 0},
		"smc": {unix.AF_SMC, unix.SOCK_STREAM, 0}, "rds": {unix.AF_RDS, unix.SOCK_SEQPACKET, 0}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 1},
	} {
		// Kernels differ in what they were built with.
		if fd, err := unix.Socket(args[0], args[1], args[2]); err == nil {
			_ = unix.Close(fd)
			add(call("other families", name, fmt.Sprintf("socket %d %d %d", args[0], args[1], args[2])))
		}
	}
	for _, name := range []string{
		"LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "PYTHONSTARTUP", "PYTHONPATH", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND",
		"GIT_DIR", "GIT_EXTERNAL_DIFF", "GLIBC_TUNABLES", "PROMPT_COMMAND", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "GATEHOUSE_HOME",
	} {
		add(steal("start-up variables", name, `test -n "$`+name+`" && echo ESCAPED`).with(leakEnv(name, "/nonexistent")))
	}
	add(steal("start-up variables", "exported function", `grep -q BASH_FUNC /proc/$$/environ && echo ESCAPED`).with(leakEnv("BASH_FUNC_ls%%", "() { echo; }")))
	add(readOnlyAttempts()...)
	return append(list, exhaustAttempts()...)
}

// exhaustAttempts fill what a machine shares.
func exhaustAttempts() []attempt {
	small := func(f func(*sandbox.Limits)) func(*sandbox.Spec) { return func(s *sandbox.Spec) { f(&s.Limits) } }
	return []attempt{
		call("exhaustion", "a sparse file", "sparse 1099511627776").limited(small(func(l *sandbox.Limits) { l.FileSize = 1 << 30 })).judged(contains("DONE sparse")),
		call("exhaustion", "shared memory files", "shmfill 32").limited(small(func(l *sandbox.Limits) { l.TempSize = 8 << 20 })).judged(contains("DONE shmfill")),
		steal("exhaustion", "temporary files", `dd if=/dev/zero of="${TMPDIR:-/tmp}/$TOKEN" bs=1M count=32 && echo ESCAPED; rm -f "${TMPDIR:-/tmp}/$TOKEN"`).
			limited(small(func(l *sandbox.Limits) { l.TempSize = 8 << 20 })).leaking(sandbox.Landlock, sandbox.Firejail),
	}
}

// readOnlyAttempts change a root that may only be read.
func readOnlyAttempts() []attempt {
	ro := func(a attempt) attempt {
		a.how, a.name = "read-only root", "read-only root/"+a.name
		a.setup = func(h *host) {
			h.env["BEFORE"] = look(h.ws + "/readme")
		}
		if a.escaped == nil {
			a.escaped = func(h *host, _ string) bool {
				_, err := os.Lstat(h.ws + "/new")
				return err == nil || look(h.ws+"/readme") != h.env["BEFORE"]
			}
		}
		a.spec = func(s *sandbox.Spec) { s.Read, s.Write = s.Write, nil }
		return a
	}
	list := []attempt{
		ro(attempt{name: "write", sh: `echo evil > readme`}), ro(attempt{name: "append", sh: `echo evil >> readme`}),
		ro(attempt{name: "truncate", sh: `truncate -s 0 readme`}), ro(attempt{name: "open that truncates", code: "opentrunc readme"}),
		ro(attempt{name: "delete", sh: `rm -f readme`}), ro(attempt{name: "rename", sh: `mv readme new`}), ro(attempt{name: "make", sh: `mkdir new`}),
		ro(attempt{name: "link", sh: `ln readme new`}), ro(attempt{name: "mode", sh: `chmod 777 readme`}), ro(attempt{name: "times", sh: `touch -d 2001-01-01 readme`}),
		ro(attempt{name: "attribute", code: "setxattr readme"}),
		ro(attempt{name: "mode by descriptor", code: "byfd mode readme"}).leaking(sandbox.Landlock, sandbox.Firejail),
		ro(attempt{name: "times by descriptor", code: "byfd times readme"}),
		ro(attempt{name: "times of an open file", code: "byfd open-times readme"}).leaking(sandbox.Landlock, sandbox.Firejail),
		ro(attempt{name: "attribute by descriptor", code: "byfd attribute readme"}),
		ro(attempt{name: "owner by descriptor", code: "byfd owner readme"}).asRoot(),
	}
	if flagsWork() {
		list = append(list, ro(attempt{name: "flags by descriptor", code: "byfd flags readme", escaped: said}))
	}
	return list
}

// look writes down everything about a file that a change would show in.
func look(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return "gone"
	}
	b, _ := os.ReadFile(path)
	st := fi.Sys().(*syscall.Stat_t)
	x := make([]byte, 256)
	n, _ := unix.Llistxattr(path, x)
	return fmt.Sprintf("%v %d %d %d %q %q", fi.Mode(), st.Uid, fi.ModTime().UnixNano(), st.Nlink, b, strings.Trim(string(x[:max(n, 0)]), "\x00"))
}

// flagsWork says whether the file system of the attempts keeps such flags.
func flagsWork() bool {
	f, err := os.CreateTemp("", "gh-flags-")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	defer f.Close()
	flags := uint32(0x40)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags)))
	return errno == 0
}

func openable(path string) bool {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// leakRoot opens the host's root so that every child would inherit it.
func leakRoot(h *host) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.inherit = os.NewFile(uintptr(fd), "root")
	h.closers = append(h.closers, func() { _ = h.inherit.Close() })
}

// binaryOutside puts a program where nothing is declared.
func binaryOutside(h *host) {
	b, err := os.ReadFile("/bin/echo")
	if err == nil {
		err = os.WriteFile(h.out+"/elf", b, 0o755)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// terminalOutside opens a terminal on the host that somebody else uses.
func terminalOutside(h *host) {
	master, slave, err := pty.Open()
	if err != nil {
		h.t.Fatal(err)
	}
	_ = os.Chmod(slave.Name(), 0o666)
	h.env["PTS"] = slave.Name()
	h.closers = append(h.closers, func() { _ = slave.Close(); _ = master.Close() })
}
