package facts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// world is a machine of a few files and links.
type world struct {
	links map[string]string
	ids   map[string]string
}

func (w *world) Readlink(p string) (string, bool, error) {
	target, ok := w.links[p]
	return target, ok, nil
}
func (w *world) Identify(p string) string            { return w.ids[p] }
func (w *world) Read() []string                      { return nil }
func (w *world) Unsaved([]string, bool) []facts.Work { return nil }
func (w *world) RefFiles(string) []string            { return nil }
func (w *world) UnsavedIn(string) []facts.Work       { return nil }
func (w *world) Program(word, _ string) shell.Program {
	return shell.Program{State: shell.ProgramTrusted, Path: "/usr/bin/" + word}
}
func (w *world) Path(string) shell.PathInfo                   { return shell.PathInfo{} }
func (w *world) Repository(string) shell.Repository           { return shell.Repository{Known: true} }
func (w *world) Names(string) ([]string, bool)                { return nil, true }
func (w *world) Below(string) ([]facts.Entry, bool)           { return nil, true }
func (w *world) Script(string, string, string) (string, bool) { return "", false }

var options = &facts.Options{
	Home: "/home/ann",
	Own: facts.Own{
		Paths: []string{"/home/ann/.local/share/gatehouse"}, Listeners: []string{"127.0.0.1:7878"}, ProjectFiles: []string{".gatehouse.toml"}, PID: 4711,
	},
}

func extract(t *testing.T, w facts.World, op, args string) *facts.Facts {
	t.Helper()
	c := &call.Call{Kind: call.External, Surface: "test", Operation: op, Args: []byte(args), Dir: "/work", Principal: call.Principal{Agent: "a", Session: "s"}}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	return facts.Extract(c, w, options)
}

func needs(f *facts.Facts) []string {
	out := []string{}
	for _, n := range f.Needs {
		out = append(out, n.String())
	}
	return out
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	w := &world{links: map[string]string{"/work/link": "/etc", "/work/out": "/home/ann/.ssh"}}
	tests := []struct {
		name, op, args string
		want           []string
	}{
		{"read", "Read", `{"file_path":"/work/a.go"}`, []string{"fs.read:./a.go"}},
		{"read, relative", "read_file", `{"path":"a/../b.go"}`, []string{"fs.read:./b.go"}},
		{"read, home", "Read", `{"file_path":"~/x"}`, []string{"fs.read:/home/ann/x"}},
		{"read, file URL", "Read", `{"file_path":"file:///work/a"}`, []string{"fs.read:./a"}},
		{"read through a link", "Read", `{"file_path":"link/passwd"}`, []string{"fs.read:/etc/passwd", "secrets.access:/etc/passwd"}},
		{"climbing out", "Read", `{"file_path":"../x"}`, []string{"fs.read:/x"}},
		{"secret by name", "Read", `{"file_path":".env"}`, []string{"fs.read:./.env", "secrets.access:./.env"}},
		{"example of a secret", "Read", `{"file_path":".env.example"}`, []string{"fs.read:./.env.example"}},
		{"secret through a link", "Read", `{"file_path":"out/id_ed25519"}`, []string{"fs.read:/home/ann/.ssh/id_ed25519", "secrets.access:/home/ann/.ssh/id_ed25519"}},
		{"write", "Write", `{"file_path":"a","content":"x"}`, []string{"fs.write:./a"}},
		{"edit", "Edit", `{"file_path":"a","old_string":"x","new_string":"y"}`, []string{"fs.write:./a"}},
		{"search without a path", "Grep", `{"pattern":"x"}`, []string{"fs.read:."}},
		{"fetch", "WebFetch", `{"url":"https://example.com/x"}`, []string{"net.egress:example.com:443"}},
		{"fetch, metadata", "WebFetch", `{"url":"http://169.254.169.254/latest"}`, []string{"secrets.access:169.254.169.254:80", "net.egress:169.254.169.254:80"}},
		{"fetch, odd spelling", "WebFetch", `{"url":"http://2130706433:80/"}`, []string{"net.egress:127.0.0.1:80"}},
		{"notes", "TodoWrite", `{"todos":[]}`, []string{}},
		{"command that reads", "Bash", `{"command":"cat .env"}`, []string{"fs.read:./.env", "secrets.access:./.env"}},
		{"command that writes", "Bash", `{"command":"echo hi > out.txt"}`, []string{"fs.write:./out.txt"}},
	}
	for _, tt := range tests {
		f := extract(t, w, tt.op, tt.args)
		got := needs(f)
		// A need that two parts of the analysis found is one need.
		seen, unique := map[string]bool{}, []string{}
		for _, n := range got {
			if !seen[n] {
				seen[n] = true
				unique = append(unique, n)
			}
		}
		if diff := cmp.Diff(tt.want, unique); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestWhatCannotBeResolvedIsUnknown(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"file_path":"a\u0000b"}`, `{"file_path":"~bob/x"}`, `{"file_path":"/proc/self/fd/3"}`} {
		f := extract(t, &world{}, "Read", args)
		if f.Class != "unknown" || len(f.Needs) == 0 || f.Needs[0].Scope != "" {
			t.Errorf("%s: class %q, needs %v; want unknown and the widest need", args, f.Class, needs(f))
		}
	}
	if f := extract(t, &world{}, "mystery_tool", `{"code":"1+1"}`); f.Class != "unknown" || !f.TakesCode {
		t.Errorf("an unknown tool with code: class %q, takes code %v", f.Class, f.TakesCode)
	}
}

// ATTACKS row 4: whatever resolves to the gate itself is noticed.
func TestSelf(t *testing.T) {
	t.Parallel()
	w := &world{links: map[string]string{"/work/innocent": "/home/ann/.local/share/gatehouse"}}
	reaches := []struct{ op, args string }{
		{"Read", `{"file_path":"~/.local/share/gatehouse/keys/mac"}`},
		{"Read", `{"file_path":"/home/ann/.local/share/../share/gatehouse/gatehouse.db"}`},
		{"Read", `{"file_path":"innocent/keys"}`},
		{"Write", `{"file_path":"/home/ann/.local/share/gatehouse/policy.toml","content":""}`},
		{"Bash", `{"command":"rm -rf ~/.local"}`},
		{"Write", `{"file_path":"sub/.gatehouse.toml","content":"version = 1"}`},
		{"Bash", `{"command":"rm .gatehouse.toml"}`},
		{"Bash", `{"command":"cd innocent && ls"}`},
		{"Bash", `{"command":"nc 127.0.0.1 7878"}`},
		{"Bash", `{"command":"kill -9 4711"}`},
		{"Bash", `{"command":"sqlite3 ~/.local/share/gatehouse/gatehouse.db"}`},
		{"Bash", `{"command":"curl http://localhost:7878/v1/approvals"}`},
		{"WebFetch", `{"url":"http://127.0.0.1:7878/"}`},
		{"WebFetch", `{"url":"http://[::1]:7878/"}`},
		{"WebFetch", `{"url":"http://0x7f.1:7878/"}`},
		{"WebFetch", `{"url":"http://0:7878/"}`},
		{"mystery", `{"x":{"y":["see /home/ann/.local/share/gatehouse/keys"]}}`},
	}
	for _, r := range reaches {
		if f := extract(t, w, r.op, r.args); len(f.Self) == 0 {
			t.Errorf("%s %s reaches the gate and was not noticed; needs %v", r.op, r.args, needs(f))
		}
	}
	if f := extract(t, w, "Bash", `{"command":"cd -P innocent/.. && cat gatehouse.db"}`); f.Class != "unknown" {
		t.Errorf("going up from behind a link has the class %s, want unknown", f.Class)
	}
	for _, r := range []struct{ op, args string }{
		{"Bash", `{"command":"nc 127.0.0.1 8080"}`},
		{"Bash", `{"command":"kill 4712"}`},
		{"Bash", `{"command":"cd sub && ls"}`},
		{"Read", `{"file_path":"/home/ann/.local/share/other"}`},
		{"Grep", `{"pattern":"x","path":"/home/ann"}`},
		{"WebFetch", `{"url":"http://example.com:7878/"}`},
		{"Bash", `{"command":"ls /home/ann"}`},
	} {
		if f := extract(t, w, r.op, r.args); len(f.Self) != 0 {
			t.Errorf("%s %s: noticed %v", r.op, r.args, f.Self)
		}
	}
}

// ATTACKS row 12: a file that changed makes another world.
func TestWorldDigest(t *testing.T) {
	t.Parallel()
	before := &world{ids: map[string]string{"/work": "dir 1", "/usr/bin/cat": "file 1", "/work/a": "file 2"}}
	call := func(w *world) *facts.Facts { return extract(t, w, "Read", `{"file_path":"a"}`) }
	base := call(before)
	if again := call(before); again.World != base.World {
		t.Error("the same world has two digests")
	}
	for path, id := range map[string]string{"/work": "dir 9", "/work/a": "file 9"} {
		changed := &world{ids: map[string]string{"/work": "dir 1", "/work/a": "file 2"}}
		changed.ids[path] = id
		if call(changed).World == base.World {
			t.Errorf("%s was swapped and the world digest is the same", path)
		}
	}
	linked := &world{ids: before.ids, links: map[string]string{"/work/a": "/etc/passwd"}}
	if call(linked).World == base.World {
		t.Error("a link was put in place and the world digest is the same")
	}
}

func TestContentIsScanned(t *testing.T) {
	t.Parallel()
	f := extract(t, nil, "mystery", `{"text":"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq1\n-----END RSA PRIVATE KEY-----"}`)
	if len(f.Findings) == 0 {
		t.Fatal("a private key was not found")
	}
	if where := f.Findings[0].Evidence.Where; !strings.HasPrefix(where, "/text[") {
		t.Errorf("found at %q, want a span of /text", where)
	}
	quiet := extract(t, nil, "Bash", `{"command":"echo 'rm -rf /'"}`)
	for _, found := range quiet.Findings {
		if found.Severity == facts.Critical || found.Severity == facts.High {
			t.Errorf("a harmless command has the finding %+v", found)
		}
	}
}

func TestImplied(t *testing.T) {
	t.Parallel()
	paths, err := match.CompileSet(match.Base{Dir: "/"}, "/**/attachments/**")
	if err != nil {
		t.Fatal(err)
	}
	field, err := match.CompileOp("attachment*")
	if err != nil {
		t.Fatal(err)
	}
	opts := &facts.Options{Implied: []facts.Implied{{Capability: "data.attachment", Paths: paths, Fields: []match.OpGlob{field}}}}
	for _, args := range []string{`{"file_path":"/mail/attachments/1.pdf"}`, `{"file_path":"/x","attachment_id":"7"}`} {
		c := &call.Call{Kind: call.External, Operation: "Read", Args: []byte(args)}
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(needs(facts.Extract(c, nil, opts)), " "); !strings.Contains(got, "data.attachment:") {
			t.Errorf("%s needs %s", args, got)
		}
	}
}
