//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func kernelAttempts() []attempt {
	var list []attempt
	root := func(how, name, script string) { list = append(list, steal(how, name, script).asRoot()) }
	code := func(how, name, c string) { list = append(list, call(how, name, c)) }
	rootCode := func(how, name, c string) { list = append(list, call(how, name, c).asRoot()) }

	root("mount", "bind", `mkdir m; mount --bind "$PRIV" m && cat m/secret.txt; umount m`)
	root("mount", "new file system", `mkdir m; mount -t tmpfs x m && echo ESCAPED; umount m`)
	root("mount", "proc again", `mkdir m; mount -t proc x m && echo ESCAPED; umount m`)
	root("mount", "remount", `mkdir m; mount -t tmpfs -o ro x m && mount -o remount,rw m && echo ESCAPED; umount m`)
	root("mount", "unmount", `mkdir m; mount -t tmpfs x m; umount m && echo ESCAPED`)
	rootCode("mount", "tree copy", "opentree $PRIV")
	rootCode("mount", "new interface", "fsopen")
	rootCode("mount", "attributes", "mountsetattr")
	rootCode("change root", "chroot", "chroot $PRIV")
	rootCode("change root", "pivot", "pivot")
	code("namespace", "user by unshare", "unshare user")
	code("namespace", "user by clone", "clone user")
	rootCode("namespace", "mount", "unshare mnt")
	rootCode("namespace", "network", "unshare net")
	rootCode("namespace", "host name", "unshare uts")
	rootCode("namespace", "shared objects", "unshare ipc")
	rootCode("namespace", "control group", "unshare cgroup")
	rootCode("namespace", "enter", "setns")
	code("namespace", "user and mount", "clone usermnt")
	if b, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err != nil || strings.TrimSpace(string(b)) == "1" {
		code("terminal injection", "type into a terminal", "tiocsti")
	} else {
		rootCode("terminal injection", "type into a terminal", "tiocsti")
	}
	code("io_uring", "setup", "sys io_uring_setup")
	rootCode("bpf", "map", "sys bpf")
	code("performance events", "open", "sys perf")
	code("userfaultfd", "open", "sys userfaultfd")
	rootCode("fanotify", "init", "sys fanotify")
	code("keyring", "add", "sys add_key")
	code("keyring", "ask", "sys keyctl")
	code("keyring", "request", "sys request_key")
	rootCode("kernel log", "read", "sys syslog")
	rootCode("clock", "set", "sys clock")
	rootCode("clock", "adjust", "sys adjtimex")
	rootCode("host name", "set", "sys sethostname")
	rootCode("host name", "set domain", "sys setdomainname")
	code("personality", "read implies execute", "sys personality")
	code("new calls", "list mounts", "sys listmount")
	code("foreign calls", "32-bit", "int80")

	for _, f := range []string{"kernel/core_pattern", "vm/overcommit_memory", "kernel/hostname", "fs/suid_dumpable"} {
		rootCode("proc settings", f, "openw /proc/sys/"+f)
	}
	rootCode("proc memory", "kernel messages", "openr /proc/kmsg")
	rootCode("control groups", "release agent", "openw /sys/fs/cgroup/memory/release_agent")
	rootCode("control groups", "move out", "openw /sys/fs/cgroup/pids/cgroup.procs")
	rootCode("control groups", "make one", "mkdir /sys/fs/cgroup/pids/gh-escape")
	rootCode("system files", "uevent helper", "openw /sys/kernel/mm/transparent_hugepage/enabled")
	for _, d := range []string{"kmsg", "kvm", "fuse", "loop-control", "tty1", "vsock", "cpu_dma_latency"} {
		if _, err := os.Stat("/dev/" + d); err == nil {
			rootCode("devices", d, "openrw /dev/"+d)
		}
	}
	return list
}

func processAttempts() []attempt {
	var list []attempt
	v := func(how, name, c string) { list = append(list, call(how, name, c).with(withVictim)) }
	hurt := func(how, name, c string) {
		list = append(list, call(how, name, c).with(withVictim).judged(victimHurt))
	}
	v("ptrace", "attach", "ptrace $VICTIM")
	v("ptrace", "seize", "seize $VICTIM")
	v("process memory", "read", "vmread $VICTIM $ADDR")
	v("process memory", "write", "vmwrite $VICTIM $ADDR")
	v("process memory", "through proc", "procmem $VICTIM $ADDR")
	v("process memory", "write through proc", "procmemw $VICTIM $ADDR")
	v("process descriptors", "take", "getfd $VICTIM")
	v("process descriptors", "compare", "kcmp $VICTIM")
	v("process files", "environment", "cat /proc/$VICTIM/environ")
	v("process files", "maps", "grep /proc/$VICTIM/maps r")
	v("process files", "descriptors", "readlink /proc/$VICTIM/fd/0")
	v("process files", "root", "ls /proc/$VICTIM/root/")
	v("process files", "working directory", "ls /proc/$VICTIM/cwd/")
	v("process files", "command line", "grep /proc/$VICTIM/cmdline victim")
	v("process files", "list", "pids $VICTIM")
	hurt("signal", "kill", "kill $VICTIM KILL")
	hurt("signal", "stop", "kill $VICTIM STOP")
	hurt("signal", "term", "kill $VICTIM TERM")
	hurt("signal", "queue", "sigqueue $VICTIM")
	hurt("signal", "by descriptor", "pidfdkill $VICTIM")
	hurt("signal", "by thread", "tgkill $VICTIM")
	hurt("signal", "shell", "sh kill -9 $VICTIM")
	limits := call("process settings", "limits", "prlimit $VICTIM").with(withVictim)
	limits.same = true
	list = append(list, limits)
	v("process settings", "priority", "setpriority $VICTIM")
	v("process settings", "affinity", "affinity $VICTIM")
	v("process settings", "scheduler", "scheduler $VICTIM")
	v("process settings", "out-of-memory score", "openw /proc/$VICTIM/oom_score_adj")
	v("shared memory", "attach by number", "shm $VICTIM")
	v("message queue", "receive", "msgq $VICTIM")
	v("semaphore", "read", "sem $VICTIM")
	v("shared memory", "posix", "openr /dev/shm/gh-$VICTIM")
	v("message queue", "posix", "mqopen /gh-$VICTIM")

	list = append(list,
		outlive("background", `sleep 600 0.$MARK & sleep 0.1`),
		outlive("new session", `setsid sleep 600 0.$MARK >/dev/null 2>&1 & sleep 0.1`),
		outlive("double fork", `(setsid sh -c 'sleep 600 0.$MARK & exit 0' >/dev/null 2>&1 &) ; sleep 0.1`),
		outlive("ignored signals", `(trap '' TERM HUP INT; setsid sleep 600 0.$MARK >/dev/null 2>&1 </dev/null &) ; sleep 0.1`),
		outlive("restart on death", `(while :; do setsid sleep 600 0.$MARK; done >/dev/null 2>&1 </dev/null &) ; sleep 0.1`),
		attempt{
			how: "outlive", name: "outlive/fork chain", code: "forkchain $TOKEN",
			escaped: func(h *host, _ string) bool { return running(h.env["TOKEN"]) },
		},
		call("privilege", "set-id program", "suidexec").with(suidProgram).asRoot(),
		call("privilege", "become root again", "setuid0").asRoot(),
		call("privilege", "raise a capability", "capset").asRoot(),
		call("privilege", "ambient capability", "ambient").asRoot(),
		call("privilege", "read a file of root's", "rootfile").with(rootFile).asRoot(),
		call("privilege", "bind a low port", "lowport").asRoot().limited(func(s *sandbox.Spec) {}),
	)
	return list
}

// outlive leaves a process behind and looks whether it is still there after
// the run has returned.
func outlive(name, script string) attempt {
	return attempt{
		how: "outlive", name: "outlive/" + name, sh: script,
		setup: func(h *host) {
			h.env["MARK"] = fmt.Sprint(time.Now().UnixNano())
		},
		escaped: func(h *host, _ string) bool { return running("0." + h.env["MARK"]) },
	}
}

// running looks for a live process with a mark in its command line, and ends
// what it finds.
func running(mark string) bool {
	found := false
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		cmdline, err := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if err != nil || !strings.Contains(string(cmdline), mark) || d.Name() == fmt.Sprint(os.Getpid()) {
			continue
		}
		found = true
		endProcess(d.Name())
	}
	return found
}
