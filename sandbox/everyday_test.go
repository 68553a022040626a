//go:build linux

package sandbox_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// system finds a program where a confined run finds it.
func system(t *testing.T, program string) string {
	t.Helper()
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/usr/local/go/bin", "/bin"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			return filepath.Join(dir, program)
		}
	}
	needtest.Missing(t, program+" is not installed")
	return ""
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func passes(t *testing.T, s sandbox.Spec, want string) {
	t.Helper()
	r := run(t, s)
	if r.ExitCode != 0 || !strings.Contains(string(r.Stdout), want) {
		t.Fatalf("exit %d\nstdout: %s\nstderr: %s\nrefused: %+v", r.ExitCode, r.Stdout, r.Stderr, r.Refusals)
	}
	if len(r.Quarantined) > 0 {
		t.Errorf("quarantined %+v", r.Quarantined)
	}
}

func TestEverydayGit(t *testing.T) {
	system(t, "git")
	dir := work(t)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.email", "a@b.test"}, {"config", "user.name", "A"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	put(t, dir, map[string]string{"f": "one\n"})
	passes(t, script(dir, `set -e
git add . && git commit -qm one && git checkout -qb topic && echo two >> f && git commit -qam two
git mv f g && git commit -qm moved && git checkout -q main && git merge -q topic && git stash list
git tag v1 && git log --oneline && git diff HEAD~1 --stat && git gc -q && git fsck && git status --short && git worktree list && echo done`), "done")
}

func TestEverydayGo(t *testing.T) {
	notRaced(t, "minutes of compiling in a confined process")
	goTool := system(t, "go")
	dir := work(t)
	out, err := exec.Command(goTool, "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Fields(string(out))
	put(t, dir, map[string]string{
		"go.mod":      "module x.test/y\n\ngo 1.26\n\nrequire github.com/google/go-cmp v0.7.0\n",
		"main.go":     "package main\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/google/go-cmp/cmp\"\n)\n\nfunc main() { fmt.Println(\"equal\", cmp.Equal(1, 1)) }\n",
		"x_test.go":   "package main\n\nimport (\n\t\"net/http/httptest\"\n\t\"testing\"\n)\n\nfunc TestServer(t *testing.T) { s := httptest.NewServer(nil); s.Close(); t.TempDir() }\n",
		"go.sum":      "",
		"build/.keep": "",
	})
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"go.sum": string(sums)})
	s := script(dir, goTool+` build -o build/y . && ./build/y && `+goTool+` vet ./... && `+goTool+` test ./...`)
	s.Read = []string{dir, env[0], env[1]}
	s.Env.Set = map[string]string{
		"GOCACHE": dir + "/build/cache", "GOMODCACHE": env[1], "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GONOSUMDB": "*", "GOFLAGS": "",
	}
	passes(t, s, "equal true")
}

func TestEverydayPython(t *testing.T) {
	py := system(t, "python3")
	dir := work(t)
	put(t, dir, map[string]string{"p.py": `
import json, multiprocessing.pool, os, sqlite3, subprocess, tempfile, threading
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, "x"), "w").write("x")
db = sqlite3.connect("db.sqlite"); db.execute("create table t(x)"); db.commit()
print(subprocess.run(["sh", "-c", "echo sub"], capture_output=True, text=True).stdout.strip())
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
import socket
a, b = socket.socketpair(); a.send(b"x"); print(json.dumps({"got": b.recv(1).decode()}))
`})
	s := script(dir, py+" p.py")
	passes(t, s, `{"got": "x"}`)
}

func TestEverydayMake(t *testing.T) {
	system(t, "make")
	system(t, "gcc")
	dir := work(t)
	put(t, dir, map[string]string{
		"Makefile": "all: prog\n\t./prog\nprog: a.o b.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -c -o $@ $<\n",
		"a.c":      "#include <stdio.h>\nint f(void);\nint main(void) { printf(\"made %d\\n\", f()); return 0; }\n",
		"b.c":      "int f(void) { return 42; }\n",
	})
	passes(t, script(dir, "make -j2"), "made 42")
}

func TestEverydayPipeline(t *testing.T) {
	passes(t, script(work(t), `set -e
t=$(mktemp -d); seq 1 1000 > $t/a; sort -R $t/a | sort -n > $t/b; cmp $t/a $t/b
tar -C $t -czf out.tgz . && mkdir x && tar -xzf out.tgz -C x && diff -r $t x
echo hi | tee /dev/stderr | sed s/hi/ho/ > f; cat <<END | grep -c . 
one
two
END
cp -p f g; ln -s f h; mv g i; touch -d 2020-01-01 i; chmod 700 i; find . -name 'i' -newermt 2019-01-01; nproc; date; df . >/dev/null; echo end`), "end")
}

// registry serves one package the way npm asks for it.
func registry(t *testing.T) (url, integrity string) {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	for name, content := range map[string]string{
		"package/package.json": `{"name":"tiny","version":"1.0.0","main":"index.js"}`,
		"package/index.js":     `module.exports = () => "from the registry"`,
	} {
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		_, _ = tw.Write([]byte(content))
	}
	_ = tw.Close()
	_ = gz.Close()
	sum := sha512.Sum512(buf.Bytes())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(buf.Bytes()) }))
	t.Cleanup(s.Close)
	return s.URL, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestEverydayNpm(t *testing.T) {
	npm := system(t, "npm")
	system(t, "node")
	url, integrity := registry(t)
	dir := work(t)
	put(t, dir, map[string]string{
		"package.json": `{"name":"x","version":"1.0.0","dependencies":{"tiny":"1.0.0"}}`,
		"package-lock.json": fmt.Sprintf(`{"name":"x","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
"":{"name":"x","version":"1.0.0","dependencies":{"tiny":"1.0.0"}},
"node_modules/tiny":{"version":"1.0.0","resolved":"%s/tiny.tgz","integrity":"%s"}}}`, url, integrity),
		"run.js": `console.log(require("tiny")())`,
	})
	s := script(dir, npm+" ci --no-audit --no-fund --registry "+url+" && node run.js")
	s.Net = sandbox.Net{Mode: sandbox.NetHosts, Allow: []string{strings.TrimPrefix(url, "http://")}}
	passes(t, s, "from the registry")
	s.Net.Allow = []string{"127.0.0.1:1"}
	_ = os.RemoveAll(dir + "/node_modules")
	r := run(t, s)
	if r.ExitCode == 0 {
		t.Error("npm reached a registry that was not declared")
	}
	for _, f := range r.Refusals {
		if f.Kind == sandbox.RefusedHost && strings.Contains(url, f.Subject) {
			return
		}
	}
	t.Errorf("the refused host is not a fact: %+v", r.Refusals)
}
