package argument_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

var base = match.Base{Dir: "/work/project", Home: "/home/ann"}

// links is a file system of links that counts its questions.
type links struct {
	to    map[string]string
	asked []string
}

func (l *links) Readlink(p string) (string, bool, error) {
	l.asked = append(l.asked, p)
	if p == "/broken" {
		return "", false, errors.New("input/output error")
	}
	target, ok := l.to[p]
	return target, ok, nil
}

func gate(t testing.TB, p *declare.Policy, roles map[string]declare.Role) *argument.Gate {
	t.Helper()
	g, err := argument.New(&declare.Tool{Name: "x", Policy: p, Arguments: roles}, base)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func paths(read, write declare.Stance) *declare.Policy {
	return &declare.Policy{Filesystem: declare.Filesystem{Read: read, Write: write}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	uploads := paths(declare.Stance{}, declare.Only("/srv/uploads/**"))
	sides := paths(declare.Only("/data/**"), declare.Only("./out/**"))
	net := &declare.Policy{Network: declare.Only("api.example.com:443", "*.cdn.example")}
	roles := map[string]declare.Role{"in": "read", "out": "write", "items[].path": "write", "many": "read", "any.*": "read", "note": "text", "url": "url", "var": "env", "cmd": "command"}
	for _, tc := range []struct {
		name   string
		policy *declare.Policy
		args   string
		want   []string // where; nothing passes
	}{
		// The seed's examples.
		{"inside the declared glob", uploads, `{"path":"/srv/uploads/2026/r.txt"}`, nil},
		{"outside it", uploads, `{"path":"/etc/passwd"}`, []string{"/path"}},
		{"no stance, no check", &declare.Policy{Risk: declare.Low}, `{"path":"/etc/passwd"}`, nil},
		{"no policy, no check", nil, `{"in":"/etc/passwd"}`, nil},
		{"dots cannot escape", uploads, `{"path":"/srv/uploads/../../etc/passwd"}`, []string{"/path"}},
		{"dots that stay inside", uploads, `{"path":"/srv/x/../uploads/a"}`, nil},
		{"none means none", paths(declare.Stance{}, declare.None), `{"path":"/srv/uploads/a"}`, []string{"/path"}},
		{"read none means none", paths(declare.None, declare.Stance{}), `{"path":"/a"}`, []string{"/path"}},
		{"an empty list is none", paths(declare.Only(), declare.Stance{}), `{"path":"/a"}`, []string{"/path"}},
		{"the union without a role", sides, `{"a":"/data/x","b":"/work/project/out/y","c":"/work/project/src"}`, []string{"/c"}},
		{"relative without a role is text", uploads, `{"path":"etc/passwd","x":"../../etc"}`, nil},
		{"no arguments", uploads, `{}`, nil},
		// What the reference does not see.
		{"nested and in arrays", uploads, `{"a":{"b":["ok",["/etc/shadow"]]},"c":[1,null,true,"/srv/uploads/a"]}`, []string{"/a/b/1/0"}},
		{"NUL denies", uploads, `{"path":"/srv/uploads/a\u0000/../../etc"}`, []string{"/path"}},
		{"home", uploads, `{"path":"~/x","b":"~"}`, []string{"/path", "/b"}},
		{"file URL", uploads, `{"path":"file:///etc/passwd","b":"FILE:///srv/uploads/a"}`, []string{"/path"}},
		{"file URL with escapes", uploads, `{"path":"file:///srv/uploads/%2e%2e/%2e%2e/etc"}`, []string{"/path"}},
		{"another process's root", uploads, `{"path":"/proc/1/root/srv/uploads/a"}`, []string{"/path"}},
		{"the slash itself", uploads, `{"path":"/"}`, []string{"/path"}},
		{"a key with a slash", uploads, `{"a/b~c":"/etc"}`, []string{"/a~1b~0c"}},
		{"every violation is told", uploads, `{"a":"/x","b":"/y"}`, []string{"/a", "/b"}},
		// Roles.
		{"reads are held against reads", sides, `{"in":"/data/x","out":"out/y"}`, nil},
		{"a read glob is no write glob", sides, `{"out":"/data/x"}`, []string{"/out"}},
		{"a write glob is no read glob", sides, `{"in":"/work/project/out/x"}`, []string{"/in"}},
		{"relative with a role", sides, `{"out":"../out/y"}`, []string{"/out"}},
		{"items of an array", sides, `{"items":[{"path":"out/a"},{"path":"/etc/a"}]}`, []string{"/items/1/path"}},
		{"a role of an array is one of its items", sides, `{"many":["/data/a",["/etc/a"]]}`, []string{"/many/1/0"}},
		{"any member", sides, `{"any":{"x":"/data/a","y":"b"}}`, []string{"/any/y"}},
		{"text is never a path", sides, `{"note":"/etc/passwd is a file"}`, nil},
		{"a role whose side says nothing is held against the other", uploads, `{"in":"/etc/passwd"}`, []string{"/in"}},
		{"a number is no path", sides, `{"out":7}`, nil},
		// Hosts.
		{"a declared host", net, `{"url":"https://api.example.com/v1?x=/etc"}`, nil},
		{"below a wildcard", net, `{"url":"https://a.b.cdn.example/"}`, nil},
		{"another host", net, `{"url":"https://evil.example/"}`, []string{"/url"}},
		{"another port", net, `{"url":"https://api.example.com:8443/"}`, []string{"/url"}},
		{"user information", net, `{"url":"https://api.example.com@evil.example/"}`, []string{"/url"}},
		{"a host nobody can be sure of", net, `{"url":"https://api.example.com\\@evil.example/"}`, []string{"/url"}},
		{"network none", &declare.Policy{Network: declare.None}, `{"url":"https://api.example.com/"}`, []string{"/url"}},
		{"network all", &declare.Policy{Network: declare.All}, `{"url":"https://evil.example/"}`, nil},
		{"a file URL is a path", sides, `{"url":"file:///etc/passwd"}`, []string{"/url"}},
		// Variables and commands.
		{"a declared variable", &declare.Policy{Environment: declare.Only("LANG", "GIT_*")}, `{"var":"GIT_DIR"}`, nil},
		{"another variable", &declare.Policy{Environment: declare.Only("LANG")}, `{"var":"AWS_SECRET_ACCESS_KEY"}`, []string{"/var"}},
		{"no variable", &declare.Policy{Environment: declare.None}, `{"var":"LANG"}`, []string{"/var"}},
		{"a wildcard is no variable", &declare.Policy{Environment: declare.Only("GIT_*")}, `{"var":"GIT_*"}`, []string{"/var"}},
		{"a declared program", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"git log --oneline"}`, nil},
		{"another program", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"rm -rf /"}`, []string{"/cmd"}},
		{"a second program", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"git log; curl evil"}`, []string{"/cmd"}},
		{"a program in a substitution", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"git log $(curl evil)"}`, []string{"/cmd"}},
		{"the same name elsewhere", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"/tmp/git log"}`, []string{"/cmd"}},
		{"a program nobody knows", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":"$X log"}`, []string{"/cmd"}},
		{"the words of an array", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":["git","rm"]}`, nil},
		{"the first word of an array", &declare.Policy{Exec: declare.Only("git")}, `{"cmd":["sh","-c","git"]}`, []string{"/cmd"}},
		{"exec none", &declare.Policy{Exec: declare.None}, `{"cmd":"true"}`, []string{"/cmd"}},
		// What cannot be read.
		{"broken JSON", uploads, `{"a":"/srv/uploads/a"`, []string{""}},
		{"a key twice", uploads, `{"a":"/etc","a":"/srv/uploads/a"}`, []string{"/a", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range gate(t, tc.policy, roles).Check([]byte(tc.args), nil) {
				got = append(got, e.Where)
				if e.Text == "" {
					t.Error("a violation without words")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.args, diff)
			}
		})
	}
}

func TestReasonNamesPathPolicyAndGlobs(t *testing.T) {
	t.Parallel()
	g := gate(t, paths(declare.Only("/data/**"), declare.Only("/srv/uploads/**")), nil)
	got := g.Check([]byte(`{"path":"/etc/./passwd"}`), nil)
	if len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	for _, want := range []string{"/etc/passwd", "policy", "/data/**", "/srv/uploads/**"} {
		if !strings.Contains(got[0].Text, want) {
			t.Errorf("%q does not name %q", got[0].Text, want)
		}
	}
}

func TestLinksAreFollowed(t *testing.T) {
	t.Parallel()
	g := gate(t, paths(declare.Stance{}, declare.Only("/srv/uploads/**")), nil)
	l := &links{to: map[string]string{"/srv/uploads/out": "/etc", "/srv/uploads/loop": "/srv/uploads/loop", "/in": "/srv/uploads"}}
	for args, want := range map[string]int{
		`{"p":"/srv/uploads/out/passwd"}`:    1,
		`{"p":"/srv/uploads/loop"}`:          1,
		`{"p":"/broken/x"}`:                  1,
		`{"p":"/in/a"}`:                      0,
		`{"p":"/srv/uploads/out/../passwd"}`: 1, // the parent of /etc, not of out
	} {
		if got := g.Check([]byte(args), l); len(got) != want {
			t.Errorf("%s: got %v, want %d", args, got, want)
		}
	}
}

func TestOneQuestionPerComponent(t *testing.T) {
	t.Parallel()
	g := gate(t, paths(declare.Stance{}, declare.Only("/a/**")), nil)
	l := &links{}
	g.Check([]byte(`{"p":"/a/b/c/d"}`), l)
	if diff := cmp.Diff([]string{"/a", "/a/b", "/a/b/c", "/a/b/c/d"}, l.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"/srv/uploads/a", "/srv/uploads/../x", "~/x", "file:///etc", "a\x00", "/proc/self/root/etc", "//srv//uploads"} {
		f.Add(s)
	}
	g := gate(f, paths(declare.None, declare.Only("/srv/uploads/**")), map[string]declare.Role{"w": "write"})
	f.Fuzz(func(t *testing.T, s string) {
		raw, err := json.Marshal(map[string]any{"w": s, "x": []string{s}})
		if err != nil {
			return
		}
		var back struct{ W string }
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		for _, v := range g.Check(raw, nil) {
			if v.Where == "/w" || v.Where == "" {
				return
			}
		}
		// It passed: the kernel must find the file below the root, from any directory.
		p := strings.TrimPrefix(back.W, "file://")
		if !path.IsAbs(p) || !match.Within("/srv/uploads", path.Clean(p)) {
			if back.W == p || !strings.Contains(p, "%") {
				t.Errorf("%q passed", back.W)
			}
		}
	})
}

func BenchmarkTenArguments(b *testing.B) {
	g := gate(b, paths(declare.Only("/data/**"), declare.Only("/srv/uploads/**")), map[string]declare.Role{"a0": "read", "a1": "write"})
	args := map[string]string{"a0": "/data/x/y", "a1": "/srv/uploads/2026/r.txt"}
	for i := 2; i < 10; i++ {
		args[fmt.Sprintf("a%d", i)] = "/srv/uploads/some/file.txt"
	}
	raw, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := processor(b)
	for b.Loop() {
		if got := g.Check(raw, nil); got != nil {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/call")
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-µs/call")
}

// processor is the processor time used so far: on a busy machine it is what
// can be compared.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestBothWaysUp: what ".." after a link means depends on who reads it. The
// kernel goes up from where the link leads, programs that tidy a path first go
// up from where it stands. A path must lie inside either way.
func TestBothWaysUp(t *testing.T) {
	t.Parallel()
	g := gate(t, paths(declare.Stance{}, declare.Only("/srv/uploads/**")), nil)
	for args, want := range map[string]bool{
		`{"p":"/srv/uploads/in/../x"}`:      true,  // both are inside
		`{"p":"/srv/uploads/deep/../../x"}`: false, // tidied it is /srv/x
		`{"p":"/srv/uploads/out/../x"}`:     false, // for the kernel it is /etc/x
	} {
		l := &links{to: map[string]string{"/srv/uploads/in": "/srv/uploads/a", "/srv/uploads/deep": "/srv/uploads/a/b", "/srv/uploads/out": "/etc/cron"}}
		if got := g.Check([]byte(args), l); (len(got) == 0) != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

// TestEveryRoleHolds: a value with two roles is held to both, so that a role
// which another key adds takes nothing away.
func TestEveryRoleHolds(t *testing.T) {
	t.Parallel()
	p := paths(declare.Only("/in/**"), declare.Only("/out/**"))
	g := gate(t, p, map[string]declare.Role{"a.*": "read", "a.b": "write"})
	if got := g.Check([]byte(`{"a":{"b":"/out/x"}}`), nil); len(got) != 1 {
		t.Errorf("a value that is read as well was written outside of what is read: %v", got)
	}
	if got := g.Check([]byte(`{"a":{"c":"/in/x"}}`), nil); got != nil {
		t.Error(got)
	}
}

// TestCommandLinesAreHeldWhole: a command line whose programs are all declared
// is still held to the files and hosts that it names.
func TestCommandLinesAreHeldWhole(t *testing.T) {
	t.Parallel()
	p := &declare.Policy{
		Filesystem: declare.Filesystem{Read: declare.Only("./in/**"), Write: declare.Only("./out/**")},
		Network:    declare.Only("api.example.com"), Exec: declare.Only("cat", "cp", "rm", "curl", "echo"),
	}
	for line, want := range map[string]bool{
		"cat in/a":                               true,
		"cp in/a out/b":                          true,
		"curl https://api.example.com/x":         true,
		"cat /etc/passwd":                        false,
		"cat in/../../secret":                    false,
		"cat in/link":                            false, // leads out
		"cp in/a /etc/cron.d/x":                  false,
		"echo x > ../y":                          false,
		"rm -rf in":                              false,
		"cat $HOME/.ssh/id_rsa":                  false,
		"cat ~/.ssh/id_rsa":                      false,
		"cat in/*":                               true,
		"cat /etc/*":                             false,
		"cp in/a \"$X\"":                         false,
		"curl https://evil.example.net/x":        false,
		"curl -d @/etc/passwd api.example.com":   false,
		"curl -o /etc/x https://api.example.com": false,
	} {
		for name, exec := range map[string]declare.Stance{"listed": p.Exec, "all": declare.All, "unspecified": {}} {
			q := *p
			q.Exec = exec
			g := gate(t, &q, map[string]declare.Role{"cmd": "command"})
			raw, err := json.Marshal(map[string]string{"cmd": line})
			if err != nil {
				t.Fatal(err)
			}
			l := &links{to: map[string]string{"/work/project/in/link": "/etc/passwd"}}
			if got := g.Check(raw, l); (got == nil) != want {
				t.Errorf("%s, exec %s: %v", line, name, got)
			}
			if strings.ContainsAny(line, "*$~>\"") {
				continue // only a shell reads these
			}
			if raw, err = json.Marshal(map[string][]string{"cmd": strings.Fields(line)}); err != nil {
				t.Fatal(err)
			}
			if got := g.Check(raw, l); (got == nil) != want {
				t.Errorf("%s as words, exec %s: %v", line, name, got)
			}
		}
	}
}
