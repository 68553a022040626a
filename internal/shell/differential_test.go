package shell_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// The differential test runs commands in the real bash, with programs that
// only note that they were started, and compares what was started and written
// with what the analysis said. The analysis must name everything, or say that
// it does not know.

// stubs are programs that note their name and do nothing.
var stubs = []string{
	"ls", "cat", "grep", "wc", "head", "sort", "touch", "rm", "cp", "mv", "git", "mkdir", "curl", "python3", "make", "sed", "npm", "date", "id", "unlisted",
}

// wrappers are the real ones: they decide what runs.
var wrappers = []string{"env", "xargs", "timeout", "nice", "nohup", "bash", "sh", "find", "setsid", "stdbuf"}

// sample are fixed commands, mostly of the kind that fools readers.
var sample = []string{
	"ls; rm x", "r''m x", "r\\m x", "$'\\x72m' x", "{rm,x}", "x=rm; $x y", "a=r b=m; $a$b x", "rm\\\n x", "\"r\"'m' x", "eval 'rm x'", "eval \"r\"\"m x\"",
	"bash -c 'rm x'", "bash -c \"bash -c 'rm x'\"", "sh -ec 'rm x'", "env rm x", "env A=b rm x", "env -u A rm x", "env -S 'rm x'", "timeout 5 rm x", "nice -n 1 rm x",
	"nohup rm x", "setsid rm x", "stdbuf -o0 rm x", "echo x | xargs rm", "echo x | xargs -n1 rm", "echo x | xargs -I{} rm {}", "find . -name a.txt -exec rm {} \\;", "find . -name a.txt -exec rm {} +",
	"find . -name a.txt -execdir rm {} \\;", "find . -exec sh -c 'rm x' \\; -quit", "echo $(rm x)", "echo `rm x`", "cat <(rm x)", "echo > >(rm x)", "cat <<E\n$(rm x)\nE\n",
	"cat <<'E'\n$(rm x)\nE\n", "bash <<'E'\nrm x\nE\n", "bash <<< 'rm x'", "echo 'rm x' | bash", "printf 'rm x' | sh", "f() { rm x; }; f", "f() { \"$@\"; }; f rm x", "ls() { rm x; }; ls",
	"trap 'rm x' EXIT", "[[ -n $(rm x) ]]", "echo $(( $(rm x) 1 ))", "echo ${x:-$(rm x)}", "echo ${x:=$(rm x)}", "a[$(rm x)0]=1", "x=$(rm x)", "coproc rm x; wait", "time rm x", "! rm x",
	"(rm x)", "{ rm x; }", "if rm x; then ls; fi", "while rm x; do break; done", "until ! rm x; do break; done", "for i in $(rm x); do :; done", "for i in rm; do $i x; done", "case $(rm x) in *) ls;; esac",
	"command rm x", "builtin eval rm x", "exec rm x", "command -v rm", "type rm", "printf -v 'a[$(rm x)0]' y", "test -v 'a[$(rm x)0]'", "[ -v 'a[$(rm x)0]' ]", "[[ 'a[$(rm x)0]' -eq 0 ]]", "unset 'a[$(rm x)0]'",
	"read 'a[$(rm x)0]' <<< y", "declare 'a[$(rm x)0]=1'", "let 'a[$(rm x)0]=1'", "(( a[$(rm x)0] ))", "x='a[$(rm x)0]'; echo $((x))", "x='$(rm x)'; echo ${x@P}", "x='a[$(rm x)0]'; echo ${!x}", "compgen -C 'rm x' y",
	"IFS=_; c=rm_x; $c", "c='rm x'; $c", "set -- rm x; \"$@\"", "set -- rm x; $1 $2", "a=(rm x); \"${a[@]}\"", "x=y; x+=m; ls", "shopt -s expand_aliases\nalias ls='rm x'\nls", "hash -p \"$PWD/../../bin/rm\" ls; ls",
	"PATH=$PATH:.; ls", "PS4='$(rm x)'; set -x; ls", "BASH_ENV=/dev/null bash -c ls", "mapfile -C 'rm x' -c 1 a <<< y", "echo rm x", "echo 'rm x'", "grep 'rm x' a.txt", "ls # rm x", "ls \\; rm x", "ls '&&' rm x", "cat <<E\nrm x\nE\n",
	"echo hi > out", "echo hi >> out", "echo hi >| out", "echo hi &> out", "echo hi >& out", "echo hi &>> out", ": > out", "> out", "ls > out 2>&1", "ls 2> out", "ls 3> out", "cat <> out", "exec 3> out; ls", "{ ls; } > out", "(ls) > out", "for i in 1; do ls; done > out",
	"ls > /dev/null", "ls 2>&1", "ls >&2", "cd sub && echo x > out", "cd sub; echo x > ../out", "d=sub; echo x > $d/out", "for f in p q; do echo x > $f; done", "f() { echo x > out; }; f", "bash -c 'echo x > out'", "echo x | tee_missing > out",
	"echo $'a\\nb' > out", "echo x > 'o ut'", "echo x > o\"u\"t", "echo x > {out}", "x=out; echo y > $x", "x=o; x+=ut; echo y > $x", "echo x > $(echo out)", "ls || echo x > out", "ls && echo x > out", "! ls > out", "ls | cat > out",
	"while read l; do echo $l > out; done <<< x", "case a in a) echo x > out;; esac", "if ls; then echo x > out; fi", "select i in a; do echo x > out; break; done <<< 1", "ls ${x:-$(echo y > out)}", "true; false || echo y > out", "echo x > out & wait",
	"date; id", "ls $(date)", "ls $(unlisted)", "unlisted", "./nosuch", "curl | sh", "make; npm run x", "python3 -c 1", "git status | grep x", "timeout 1 bash -c 'nice env A=1 xargs touch' <<< y", "find . -name '*.txt' | xargs wc | sort | head",
}

func TestDifferential(t *testing.T) {
	t.Parallel()
	bash := needtest.OneOf(t, "bash")
	n := 150
	if testing.Short() {
		n = 40
	}
	seed := uint64(1)
	if s := os.Getenv("GATEHOUSE_DIFF"); s != "" {
		// A longer run: "count:seed".
		if _, err := fmt.Sscanf(s, "%d:%d", &n, &seed); err != nil {
			t.Fatalf("GATEHOUSE_DIFF=%s: %v", s, err)
		}
	}
	cmds := slices.Clone(sample)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	for range n {
		cmds = append(cmds, g.script(0))
	}
	results := runAll(t, bash, cmds)
	started, written, safe := 0, 0, 0
	for i, cmd := range cmds {
		a := shell.Analyze(cmd, shell.Options{})
		check(t, cmd, a, results[i])
		started += len(results[i].started)
		written += len(results[i].written)
		if a.Class == shell.ClassSafe {
			safe++
		}
	}
	t.Logf("%d commands, %d called safe; %d programs started, %d files written", len(cmds), safe, started, written)
	if started < len(cmds)/2 || written < 20 {
		t.Errorf("only %d programs started and %d files written: the harness does not work", started, written)
	}
}

// result is what really happened.
type result struct {
	started []string
	written []string
}

// check holds the analysis to what happened.
func check(t *testing.T, cmd string, a *shell.Analysis, r result) {
	t.Helper()
	// The analysis may say that it does not know; then it is not safe, and
	// what it did not name is covered.
	open := !a.Complete
	named := map[string]bool{}
	writes := map[string]bool{}
	a.Effects(func(_ *shell.Command, e *shell.Effect) bool {
		switch {
		case e.Kind == shell.KindUnknown || e.Kind == shell.KindExecute || e.Class == shell.ClassUnknown && !e.Path.Known:
			open = true
		case e.Kind == shell.KindWrite:
			writes[e.Path.Value] = true
		}
		return true
	})
	for _, c := range a.Commands {
		named[c.Program] = true
	}
	if open && a.Class == shell.ClassSafe {
		t.Errorf("%q: safe, although something is not known", cmd)
	}
	for _, p := range r.started {
		if !named[p] && !open {
			t.Errorf("%q started %s, which the analysis does not name (%s)", cmd, p, a.Class)
		}
		if a.Class == shell.ClassSafe && !named[p] {
			t.Errorf("%q is called safe and started %s", cmd, p)
		}
	}
	for _, f := range r.written {
		if !writes[f] && !open {
			t.Errorf("%q wrote %s, which the analysis does not name (%s)\n%s", cmd, f, a.Class, explain(a))
		}
		if a.Class == shell.ClassSafe {
			t.Errorf("%q is called safe and wrote %s", cmd, f)
		}
	}
}

// runAll runs every command in a directory of its own, all in one sandbox if
// there is one: no network, nothing writable but the test's directory.
func runAll(t *testing.T, bash string, cmds []string) []result {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	must(t, os.MkdirAll(bin, 0o755))
	for _, s := range stubs {
		text := "#!/bin/sh\necho \"${0##*/}\" >> \"$DIFF_LOG\"\n"
		must(t, os.WriteFile(filepath.Join(bin, s), []byte(text), 0o755))
	}
	for _, w := range wrappers {
		if real, err := exec.LookPath(w); err == nil {
			must(t, os.Symlink(real, filepath.Join(bin, w)))
		}
	}
	var driver bytes.Buffer
	fmt.Fprintf(&driver, "export PATH=%s HOME=%s/home\n", bin, dir)
	for i, cmd := range cmds {
		work := filepath.Join(dir, "w", fmt.Sprint(i))
		must(t, os.MkdirAll(filepath.Join(work, "sub"), 0o755))
		must(t, os.WriteFile(filepath.Join(work, "a.txt"), nil, 0o644))
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("c%d", i)), []byte(cmd), 0o644))
		fmt.Fprintf(&driver, "(cd %s && DIFF_LOG=%s/l%d timeout -s KILL 10 bash --noprofile --norc %s/c%d) < /dev/null > /dev/null 2>&1\n", work, dir, i, dir, i)
	}
	must(t, os.WriteFile(filepath.Join(dir, "driver"), driver.Bytes(), 0o644))
	args := []string{bash, "--noprofile", "--norc", filepath.Join(dir, "driver")}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		jail := []string{bwrap, "--ro-bind", "/", "/", "--bind", dir, dir, "--dev", "/dev", "--unshare-net", "--unshare-pid", "--die-with-parent"}
		if exec.Command(bwrap, append(jail[1:], "/bin/true")...).Run() == nil {
			args = append(jail, args...)
		} else {
			t.Log("bwrap does not work here: the commands run without a sandbox")
		}
	}
	_ = exec.Command(args[0], args[1:]...).Run() // the commands may fail; that says nothing
	results := make([]result, len(cmds))
	for i := range cmds {
		results[i] = collect(t, dir, i)
	}
	return results
}

func collect(t *testing.T, dir string, i int) result {
	t.Helper()
	var r result
	if log, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("l%d", i))); err == nil {
		for line := range strings.Lines(string(log)) {
			if name := strings.TrimSpace(line); !slices.Contains(r.started, name) {
				r.started = append(r.started, name)
			}
		}
	}
	work := filepath.Join(dir, "w", fmt.Sprint(i))
	must(t, filepath.WalkDir(work, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(work, p)
		if err != nil || rel == "a.txt" {
			return err
		}
		r.written = append(r.written, rel)
		return nil
	}))
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// generator makes scripts from a grammar: harmless by construction, because
// only stubs and wrappers are on the path.
type generator struct{ *rand.Rand }

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) script(depth int) string {
	parts := make([]string, 1+g.IntN(3))
	for i := range parts {
		parts[i] = g.stmt(depth)
	}
	return strings.Join(parts, g.pick("; ", " && ", " || ", "\n", " | "))
}

func (g generator) stmt(depth int) string {
	if depth > 2 {
		return g.simple(depth)
	}
	inner := func() string { return g.script(depth + 1) }
	switch g.IntN(16) {
	case 0:
		return "if " + inner() + "\nthen " + inner() + "\nfi"
	case 1:
		return "for v in " + g.word(depth) + " " + g.word(depth) + "; do " + inner() + "\ndone"
	case 2:
		return "(" + inner() + ")"
	case 3:
		return "{ " + inner() + "\n}"
	case 4:
		return "f() { " + inner() + "\n}; f"
	case 5:
		return "v=" + g.word(depth)
	case 6:
		return "case " + g.word(depth) + " in *) " + inner() + "\n;; esac"
	case 7:
		return "bash -c " + quote(inner())
	case 8:
		return "eval " + quote(inner())
	case 9:
		return "bash <<'EOF'\n" + inner() + "\nEOF\n"
	case 10:
		return "! " + g.simple(depth)
	case 11:
		return g.simple(depth) + " | xargs " + g.name()
	}
	return g.simple(depth)
}

func (g generator) simple(depth int) string {
	var b strings.Builder
	if g.IntN(6) == 0 {
		b.WriteString(g.pick("env ", "timeout 5 ", "nice ", "command ", "env A=1 ", "time ", "builtin eval "))
	}
	b.WriteString(g.name())
	for range g.IntN(3) {
		b.WriteString(" " + g.word(depth))
	}
	switch g.IntN(5) {
	case 0:
		b.WriteString(g.pick(" > ", " >> ", " 2> ", " &> ", " >| ") + g.pick("out", "sub/out", "'o p'", "$v", "$(echo q)", "/dev/null"))
	case 1:
		b.WriteString(" 2>&1")
	}
	return b.String()
}

// name is a program in one of its spellings.
func (g generator) name() string {
	n := stubs[g.IntN(len(stubs))]
	switch g.IntN(8) {
	case 0:
		return n[:1] + "''" + n[1:]
	case 1:
		return "\\" + n
	case 2:
		return "\"" + n + "\""
	case 3:
		return fmt.Sprintf("$'\\x%02x%s'", n[0], n[1:])
	case 4:
		return "$v"
	case 5:
		return "{" + n + ",a.txt}"
	}
	return n
}

func (g generator) word(depth int) string {
	switch g.IntN(9) {
	case 0:
		return "$v"
	case 1:
		return "\"$v\""
	case 2:
		if depth < 3 {
			return "$(" + g.script(depth+1) + "\n)"
		}
	case 3:
		return "'" + g.pick("rm x", "a;b", "$(rm x)", "> out") + "'"
	case 4:
		return g.pick("*.txt", "{a,b}.txt", "~", "a\\ b")
	case 5:
		return stubs[g.IntN(len(stubs))]
	case 6:
		return "$((1+1))"
	}
	return g.pick("a.txt", "-n", "sub", "x", "--", "-rf", "status", "1")
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
