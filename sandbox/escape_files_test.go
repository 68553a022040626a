//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func attempts() []attempt {
	var all []attempt
	for _, list := range [][]attempt{
		writeAttempts(), readAttempts(), protectedAttempts(), kernelAttempts(), processAttempts(), reachAttempts(), resourceAttempts(), moreAttempts(), thirdAttempts(), fourthAttempts(),
	} {
		all = append(all, list...)
	}
	return all
}

// sh makes attempts that are judged by the state of the host.
func sh(how, name, script string) attempt {
	return attempt{how: how, name: how + "/" + name, sh: script, escaped: changed}
}

// steal makes attempts that are judged by what they print.
func steal(how, name, script string) attempt {
	return attempt{how: how, name: how + "/" + name, sh: script}
}

// call makes attempts of this binary, judged by what they print.
func call(how, name, code string) attempt {
	return attempt{how: how, name: how + "/" + name, code: code}
}

func (a attempt) asRoot() attempt { a.root = true; return a }

func (a attempt) judged(f func(*host, string) bool) attempt { a.escaped = f; return a }

func (a attempt) with(f func(*host)) attempt { a.setup = f; return a }

func (a attempt) limited(f func(*sandbox.Spec)) attempt { a.spec = f; return a }

func (a attempt) leaking(b ...sandbox.Backend) attempt { a.leaks = b; return a }

func writeAttempts() []attempt {
	return []attempt{
		sh("write", "redirect", `echo x > "$OUT/new"`),
		sh("write", "home", `echo x > "$HOME/new"`),
		sh("write", "home dotfile", `echo evil >> "$HOME/.bashrc"`),
		sh("write", "tee", `echo x | tee "$OUT/dir/new"`),
		sh("write", "dd", `dd if=/dev/zero of="$OUT/new" bs=1 count=1`),
		sh("write", "install", `install -m 755 readme "$OUT/new"`),
		sh("write", "sed in place", `sed -i s/original/evil/ "$OUT/file"`),
		steal("write", "system directory", `echo x > /usr/local/bin/$TOKEN && test -f /usr/local/bin/$TOKEN && echo ESCAPED; rm -f /usr/local/bin/$TOKEN`).asRoot(),
		steal("write", "etc", `echo x > /etc/$TOKEN && echo ESCAPED; rm -f /etc/$TOKEN`).asRoot(),
		steal("write", "cron", `d=/etc/cron.d; mkdir -p $d; echo x > $d/$TOKEN && echo ESCAPED; rm -f $d/$TOKEN`).asRoot(),
		steal("write", "var", `echo x > /var/lib/$TOKEN && echo ESCAPED; rm -f /var/lib/$TOKEN`).asRoot(),
		sh("append", "existing", `echo evil >> "$OUT/file"`),
		sh("append", "without truncating", `printf E | dd of="$OUT/file" conv=notrunc`),
		sh("truncate", "to zero", `: > "$OUT/file"`),
		sh("truncate", "by call", `truncate -s 1 "$OUT/file"`),
		sh("truncate", "allocate", `fallocate -l 4096 "$OUT/file"`),
		sh("delete", "file", `rm -f "$OUT/file"`),
		sh("delete", "directory", `rmdir "$OUT/empty"`),
		sh("delete", "tree", `rm -rf "$OUT/dir"`),
		sh("delete", "by find", `find "$OUT" -name inner -delete`),
		sh("rename", "inside out", `mv readme "$OUT/new"`),
		sh("rename", "outside in", `mv "$OUT/file" ./taken`),
		sh("rename", "outside", `mv "$OUT/file" "$OUT/other"`),
		sh("rename", "over", `cp readme r2; mv -f r2 "$OUT/file"`),
		call("rename", "exchange", "exchange readme $OUT/file").judged(changed),
		sh("hard link", "write through", `ln "$OUT/file" ./link && echo evil >> ./link`),
		sh("hard link", "outwards", `ln readme "$OUT/new"`),
		steal("hard link", "read through", `ln "$PRIV/secret.txt" ./l && cat ./l`),
		call("hard link", "of a descriptor", "linkfd $PRIV/secret.txt stolen"),
		sh("symbolic link", "write through", `ln -s "$OUT/file" ./link && echo evil >> ./link`),
		sh("symbolic link", "directory", `ln -s "$OUT" ./d && echo x > ./d/new`),
		sh("symbolic link", "chain", `ln -s "$OUT" a; ln -s a b; ln -s b c; echo x > c/new`),
		sh("symbolic link", "made outside", `ln -s /etc/passwd "$OUT/new"`),
		sh("symbolic link", "through proc", `ln -s /proc/self/root"$OUT" d; echo x > d/new`),
		sh("make", "directory", `mkdir "$OUT/new"`),
		sh("make", "pipe", `mkfifo "$OUT/new"`),
		call("make", "socket file", "bindunix $OUT/new").judged(changed),
		steal("make", "device", `mknod ./log c 1 11 && echo ESCAPED; rm -f ./log`).asRoot(),
		sh("metadata", "mode", `chmod 777 "$OUT/file"`),
		sh("metadata", "mode of a secret", `chmod 644 "$PRIV/secret.txt"; chmod 600 "$PRIV/secret.txt"`),
		sh("metadata", "owner", `chown 12345 "$OUT/file"`).asRoot(),
		sh("metadata", "times", `touch -d 2001-01-01 "$OUT/file"`),
		sh("metadata", "times of a link", `touch -h -d 2001-01-01 "$OUT/file"`),
		call("metadata", "attribute", "setxattr $OUT/file").judged(changed),
		call("metadata", "mode by open path", "fchmodat2 $OUT/file").judged(changed),
		call("metadata", "times by call", "utimensat $OUT/file").judged(changed),
		sh("traversal", "dots", `echo x > ../out/new`),
		sh("traversal", "own directory", `echo x > /proc/self/cwd/../out/new`),
		sh("traversal", "own root", `echo x > "/proc/self/root$OUT/new"`),
		sh("traversal", "change directory", `cd "$OUT" && echo x > new`),
		call("traversal", "climb by descriptor", "climb $OUT").judged(changed),
		steal("execution", "undeclared program", `"$OUT/prog"`),
		steal("execution", "by interpreter", `sh "$OUT/prog"`),
		call("timing", "link swapped under a write", "swaprace $OUT").judged(changed),
	}
}

func readAttempts() []attempt {
	return []attempt{
		steal("read", "cat", `cat "$PRIV/secret.txt"`),
		steal("read", "copy", `cp "$PRIV/secret.txt" ./c; cat ./c`),
		steal("read", "archive", `tar -cf - -C "$PRIV" . | tar -xOf - ./secret.txt`),
		steal("read", "shell read", `read x < "$PRIV/secret.txt"; echo $x`),
		steal("read", "nested", `cat "$PRIV/deep/er/file"`),
		steal("read", "ssh key", `cat "$HOME/.ssh/id_rsa"`),
		steal("read", "cloud credentials", `cat "$HOME/.aws/credentials"`),
		steal("read", "home file", `cat "$HOME/notes"`),
		steal("read", "shadow", `grep -q root /etc/shadow && echo ESCAPED`).asRoot(),
		steal("read", "by link", `ln -s "$PRIV/secret.txt" l; cat l`),
		steal("read", "by relative path", `cat ../private/secret.txt`),
		steal("read", "own root", `cat "/proc/self/root$PRIV/secret.txt"`),
		steal("read", "grep", `grep -r . "$PRIV"`),
		call("read", "map", "mmap $PRIV/secret.txt"),
		call("read", "reopen a path descriptor", "reopen $PRIV/secret.txt"),
		call("read", "send file", "sendfile $PRIV/secret.txt"),
		call("file handle", "open by handle", "handle $PRIV/secret.txt").asRoot(),
		steal("list", "ls", `ls "$PRIV" | grep -q secret && echo ESCAPED`),
		steal("list", "find", `find "$PRIV" -name 'secret*' | grep -q secret && echo ESCAPED`),
		steal("list", "glob", `cd "$PRIV" && echo * | grep -q secret && echo ESCAPED`),
		steal("list", "home", `ls -a "$HOME" | grep -q ssh && echo ESCAPED`),
		steal("existence", "stat", `stat "$PRIV/secret.txt" >/dev/null && echo ESCAPED`).leaking(sandbox.Landlock, sandbox.Firejail),
		steal("existence", "test", `test -e "$H/home/.ssh/id_rsa" && echo ESCAPED`).leaking(sandbox.Landlock, sandbox.Firejail),
		steal("existence", "of the host's own files", `test -e /etc/shadow && echo ESCAPED`).leaking(sandbox.Landlock, sandbox.Firejail),
		call("existence", "watch", "inotify $PRIV").leaking(sandbox.Landlock, sandbox.Firejail),
		steal("environment", "undeclared variable", `echo "$LEAKED"`).with(leakEnv("LEAKED", secret)).limited(noLeak("LEAKED")),
		steal("environment", "loader variable", `test -n "$LD_LIBRARY_PATH" && echo ESCAPED`).with(leakEnv("LD_LIBRARY_PATH", "/nowhere")),
		steal("environment", "shell start-up", `test -n "$BASH_ENV" && echo ESCAPED`).with(leakEnv("BASH_ENV", "/nowhere")),
		steal("environment", "interpreter options", `test -n "$NODE_OPTIONS$PYTHONSTARTUP$PERL5OPT" && echo ESCAPED`).with(leakEnv("NODE_OPTIONS", "--no-warnings")),
		steal("environment", "git configuration", `test -n "$GIT_CONFIG_COUNT" && echo ESCAPED`).with(leakEnv("GIT_CONFIG_COUNT", "0")),
		steal("environment", "agent socket", `test -n "$SSH_AUTH_SOCK" && echo ESCAPED`).with(leakEnv("SSH_AUTH_SOCK", "/nowhere")),
		steal("descriptor", "read an inherited file", `cat <&3`).with(leakFile),
		steal("descriptor", "through proc", `cat /proc/self/fd/3`).with(leakFile),
		steal("descriptor", "through dev", `cat /dev/fd/3`).with(leakFile),
		call("descriptor", "any above two", "anyfd").with(leakFile),
	}
}

func leakEnv(name, value string) func(*host) {
	return func(h *host) { h.env[name] = value }
}

// noLeak takes a variable out of the declared ones and into the gate's own.
func noLeak(name string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) {
		_ = os.Setenv(name, s.Env.Set[name])
		delete(s.Env.Set, name)
	}
}

// leakFile opens a secret in this process in such a way that every child
// would inherit it.
func leakFile(h *host) {
	fd, err := unix.Open(h.priv+"/secret.txt", unix.O_RDONLY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.inherit = os.NewFile(uintptr(fd), "leak")
	h.closers = append(h.closers, func() { _ = h.inherit.Close() })
}

func protectedAttempts() []attempt {
	ll, fj := sandbox.Landlock, sandbox.Firejail
	list := []attempt{
		sh("protected", "append to a hook", `echo evil >> .git/hooks/pre-commit`).leaking(ll),
		sh("protected", "replace a hook", `echo evil > h; mv -f h .git/hooks/pre-commit`).leaking(ll),
		sh("protected", "new hook", `echo evil > .git/hooks/post-checkout`).leaking(ll),
		sh("protected", "delete hooks", `rm -rf .git/hooks`).leaking(ll),
		sh("protected", "swap hooks directory", `mkdir e; echo evil > e/pre-commit; mv .git/hooks h2 && mv e .git/hooks`).leaking(ll),
		sh("protected", "swap the repository", `mv .git g2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit`).leaking(ll, fj),
		sh("protected", "configuration", `echo '[core] fsmonitor = evil' >> .git/config`).leaking(ll),
		sh("protected", "configuration by rename", `cp .git/config c; echo '[core] pager = evil' >> c; mv -f c .git/config`).leaking(ll),
		sh("protected", "nested repository", `echo evil >> sub/.git/hooks/post-merge`).leaking(ll),
		sh("protected", "rename its parent", `mv sub sub2; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/post-merge`).leaking(ll, fj),
		sh("protected", "agent settings", `echo '{"hooks":1}' > .claude/settings.json`).leaking(ll),
		sh("protected", "server list", `echo '{"x":1}' > .mcp.json`).leaking(ll),
		sh("protected", "link over", `ln -sf /tmp/x .mcp.json`).leaking(ll),
		sh("protected", "hook mode", `chmod 777 .git/hooks/pre-commit`),
		sh("protected", "hook times", `touch -d 2001-01-01 .git/hooks/pre-commit`).leaking(ll),
		sh("protected", "hard link to a hook", `ln .git/hooks/pre-commit l && echo evil >> l`).leaking(ll),
	}
	absent := map[string]string{
		"repository in a new directory": "new/deep/.git/hooks/pre-commit", "shell start-up": ".bashrc", "profile": "a/.profile", "z shell": ".zshenv",
		"agent commands": ".claude/commands/x.md", "gate": ".gatehouse/policy.toml", "other agent": ".codex/config.toml",
		"third agent": ".gemini/settings.json", "editor tasks": ".vscode/tasks.json", "editor project": ".idea/workspace.xml",
		"directory variables": ".envrc", "ssh": ".ssh/authorized_keys", "other case": ".GIT/hooks/pre-commit", "worktree configuration": ".git/config.worktree",
		"common directory": ".git/commondir", "submodules": ".gitmodules", "deep server list": "x/y/z/.mcp.json", "git as a file": "n/.git",
	}
	for name, path := range absent {
		list = append(list, attempt{
			how: "protected and absent", name: "protected and absent/" + name, escaped: appeared("ws/" + path),
			sh: `mkdir -p "$(dirname ` + path + `)"; echo '[core] fsmonitor = evil' > ` + path,
		})
	}
	list = append(list,
		attempt{
			how: "protected and absent", name: "protected and absent/bare repository", escaped: appeared("ws/bare/config"),
			sh: `mkdir -p bare/objects bare/refs; echo ref > bare/HEAD; printf '[core]\n\tfsmonitor = evil\n' > bare/config`,
		},
		attempt{
			how: "protected and absent", name: "protected and absent/executable hook in a new repository", escaped: appeared("ws/n/.git/hooks/pre-commit"),
			sh: `mkdir -p n/.git/hooks; echo evil > n/.git/hooks/pre-commit; chmod +x n/.git/hooks/pre-commit`,
		},
		attempt{
			how: "protected and absent", name: "protected and absent/linked hooks", escaped: appeared("ws/n/.git/hooks"),
			sh: `mkdir -p n/.git e; echo evil > e/pre-commit; ln -s ../../e n/.git/hooks`,
		},
		attempt{
			how: "set-id", name: "set-id/chmod", escaped: setID, sh: `cp /bin/true s; chmod u+s s`,
		},
		attempt{how: "set-id", name: "set-id/group", escaped: setID, sh: `cp /bin/true s; chmod g+s s`},
		attempt{how: "set-id", name: "set-id/install", escaped: setID, sh: `install -m 4755 /bin/true s`},
		attempt{how: "set-id", name: "set-id/at creation", escaped: setID, code: "creatsuid s"},
		attempt{how: "set-id", name: "set-id/by node", escaped: setID, code: "mknodsuid s"},
		attempt{how: "set-id", name: "set-id/by descriptor", escaped: setID, code: "fchmodsuid s"},
		attempt{how: "set-id", name: "set-id/by the extended open", escaped: setID, code: "openat2suid s"},
	)
	return list
}

// setID reports whether a set-user-id or set-group-id file exists in ws.
func setID(h *host, _ string) bool {
	found := false
	_ = filepath.Walk(h.ws, func(p string, fi os.FileInfo, err error) error {
		if err == nil && fi.Mode().IsRegular() && fi.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			found = true
		}
		return nil
	})
	return found
}

func contains(parts ...string) func(*host, string) bool {
	return func(_ *host, out string) bool {
		for _, p := range parts {
			if !strings.Contains(out, p) {
				return false
			}
		}
		return true
	}
}
