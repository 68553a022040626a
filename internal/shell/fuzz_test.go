package shell_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// FuzzAnalyze holds laws that every text must obey.
func FuzzAnalyze(f *testing.F) {
	for i, r := range readRows(f, filepath.Join("testdata", "corpus.jsonl")) {
		if i%4 == 0 {
			f.Add(r.Cmd)
		}
	}
	f.Fuzz(func(t *testing.T, cmd string) {
		a := shell.Analyze(cmd, shell.Options{})
		checkShape(t, cmd, a)
		_, err := syntax.NewParser().Parse(strings.NewReader(cmd), "")
		if (err != nil || len(cmd) > shell.MaxBytes) && (a.Class == shell.ClassSafe || a.Complete) {
			t.Fatalf("does not parse (%v) and is %s, complete %v", err, a.Class, a.Complete)
		}
		if again := shell.Analyze(cmd, shell.Options{}); again.Class != a.Class || again.Words() != a.Words() {
			t.Fatalf("two analyses differ: %s %q, %s %q", a.Class, a.Words(), again.Class, again.Words())
		}
		if err != nil || len(cmd) > shell.MaxBytes/2 || strings.HasSuffix(cmd, "\\") {
			return
		}
		for _, more := range []string{"ls", "rm x"} {
			both := cmd + "\n" + more
			if _, err := syntax.NewParser().Parse(strings.NewReader(both), ""); err != nil {
				continue
			}
			if b := shell.Analyze(both, shell.Options{}); b.Class < a.Class {
				t.Fatalf("%q is %s, and with %q only %s", cmd, a.Class, more, b.Class)
			}
		}
		if b := shell.Analyze("ls\n"+cmd, shell.Options{}); b.Class < a.Class {
			t.Fatalf("%q is %s, and behind ls only %s", cmd, a.Class, b.Class)
		}
	})
}

// checkShape checks what every result must be like.
func checkShape(t *testing.T, cmd string, a *shell.Analysis) {
	t.Helper()
	worst := shell.ClassSafe
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		if e.Span.Start < 0 || e.Span.End < e.Span.Start || e.Span.End > len(cmd) {
			t.Fatalf("span %v of %q in %d bytes", e.Span, e.Why, len(cmd))
		}
		if e.Class < shell.ClassSafe || e.Class > shell.ClassDestructive || e.Why == "" {
			t.Fatalf("effect %+v of %s", e, c.Program)
		}
		worst = max(worst, e.Class)
		return true
	})
	if !a.Complete {
		worst = max(worst, shell.ClassUnknown)
	}
	if a.Class < worst {
		t.Fatalf("class %s, but an effect is %s", a.Class, worst)
	}
	if a.Words() == "" {
		t.Fatal("no words")
	}
}

// FuzzWorld is FuzzAnalyze with a machine: what it knows may only make a
// command worse or better known, never break the shape.
func FuzzWorld(f *testing.F) {
	f.Add("cd a && git status > b")
	f.Add("cat ~/x; ls ../../etc")
	f.Add("npm run build; make -C x y")
	w := fakeWorld{settings: map[string][]shell.Setting{"/w": nil}, scripts: map[string]string{"npm build": "rm -rf dist"}}
	f.Fuzz(func(t *testing.T, cmd string) {
		opts := shell.Options{Cwd: "/w", Home: "/home/u", Workspace: []string{"/w"}, World: w}
		a := shell.Analyze(cmd, opts)
		checkShape(t, cmd, a)
	})
}

// FuzzLanguages feeds the small readers of sed, awk, SQL and code.
func FuzzLanguages(f *testing.F) {
	for _, s := range []string{
		"s/a/b/w x", "1,5p;w /tmp/x", "/[/]/d", "y/ab/cd/;e id", "a\\\ntext\nw x", "{p;p}", "s,a[,]b,c,e",
		"{print > \"x\"}", "BEGIN{system(\"id\")}", "/a\\/b/{print $1 | \"sh\"}", "$1 > 2", "{x = 1 / 2 / 3}",
		"select 1; drop table x", "-- c\ndelete from t", "/* */ select 'a;b'", "\\! id", ".shell id", "with x as (delete from t) select 1",
		"import os; os.system('rm x')", "`rm x`",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\x00'") || len(text) > shell.MaxBytes/2 {
			return
		}
		for _, prefix := range []string{"sed '", "awk '", "psql -c '", "python3 -c '", "sqlite3 a '"} {
			cmd := prefix + text + "'"
			checkShape(t, cmd, shell.Analyze(cmd, shell.Options{}))
		}
	})
}
