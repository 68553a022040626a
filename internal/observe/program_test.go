package observe_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// t0 is a time long ago.
var t0 = time.Unix(1, 0)

// TestProgram sets PATH, so it is not parallel.
func TestProgram(t *testing.T) {
	root := tree(t, map[string]string{"bin/tool": "#!/bin/sh", "bin/text": "no program", "work/tool2": "#!/bin/sh", "work/bin/tool3": "#!/bin/sh", "bin/folder/": ""})
	for link, target := range map[string]string{"bin/linked": "../work/tool2", "bin/system": "/bin/sh", "bin/dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(root, "work")
	t.Chdir(work)
	t.Setenv("PATH", "bin:.:"+filepath.Join(root, "bin")+":/usr/bin:/bin")
	tests := []struct {
		name, word string
		want       shell.ProgramState
	}{
		{"the system's", "cat", shell.ProgramTrusted},
		{"the system's by its path", "/bin/cat", shell.ProgramTrusted},
		{"in a directory that others write", "tool", shell.ProgramWritable},
		{"by its path there", filepath.Join(root, "bin/tool"), shell.ProgramWritable},
		{"a link into such a directory", "linked", shell.ProgramWritable},
		{"a link from such a directory to the system", "system", shell.ProgramWritable},
		{"through a relative entry of PATH", "tool3", shell.ProgramMissing},
		{"in the working directory", "tool2", shell.ProgramMissing},
		{"by a relative path", "./tool2", shell.ProgramWritable},
		{"nowhere", "no-such-tool", shell.ProgramMissing},
		{"not executable", "text", shell.ProgramMissing},
		{"a directory", "folder", shell.ProgramMissing},
		{"a dangling link", "dangling", shell.ProgramMissing},
		{"nowhere by its path", "/no/such/tool", shell.ProgramMissing},
	}
	for _, tt := range tests {
		if got := observe.NewView().Program(tt.word, work); got.State != tt.want {
			t.Errorf("%s: %+v, want state %d", tt.name, got, tt.want)
		}
	}
	if got := observe.NewView().Program("./tool2", ""); got.State != shell.ProgramUnknown {
		t.Errorf("a relative path nowhere: %+v", got)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, kind, file, script string
		text                     string
		known                    bool
	}{
		{"a script", "npm", `{"scripts":{"build":"tsc"}}`, "build", "tsc", true},
		{"no such script", "npm", `{"scripts":{"build":"tsc"}}`, "test", "", false},
		{"one that runs before it", "npm", `{"scripts":{"build":"tsc","prebuild":"curl x"}}`, "build", "", false},
		{"one that runs after it", "npm", `{"scripts":{"build":"tsc","postbuild":"curl x"}}`, "build", "", false},
		{"twice", "npm", `{"scripts":{"build":"tsc","build":"curl x"}}`, "build", "", false},
		{"no JSON", "npm", `{`, "build", "", false},
		{"make", "make", "", "build", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, map[string]string{"package.json": tt.file})
			v := observe.NewView()
			text, known := v.Script(tt.kind, dir, tt.script)
			if text != tt.text || known != tt.known {
				t.Errorf("%q %v, want %q %v", text, known, tt.text, tt.known)
			}
			if read := len(v.Read()) > 0; known && !read {
				t.Error("the file is not part of the world")
			}
		})
	}
	if _, known := observe.NewView().Script("npm", t.TempDir(), "build"); known {
		t.Error("a script of no file")
	}
}

// TestIdentify: whatever changes about a file shows, and nothing else does.
func TestIdentify(t *testing.T) {
	t.Parallel()
	id := func(path string) string { return observe.NewView().Identify(path) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(file string)
		same   bool
	}{
		{"nothing", func(string) {}, true},
		{"the time", func(f string) { must(os.Chtimes(f, t0, t0)) }, true},
		{"the content", func(f string) { must(os.WriteFile(f, []byte("two"), 0o644)) }, false},
		{"the file, with the same content", func(f string) {
			must(os.WriteFile(f+".new", []byte("one"), 0o644)) // while the old one holds its inode
			must(os.Rename(f+".new", f))
		}, false},
		{"gone", func(f string) { must(os.Remove(f)) }, false},
		{"a link to the same content", func(f string) {
			must(os.Rename(f, f+".old"))
			must(os.Symlink(f+".old", f))
		}, false},
		{"a directory", func(f string) {
			must(os.Remove(f))
			must(os.Mkdir(f, 0o755))
		}, false},
	} {
		file := filepath.Join(tree(t, map[string]string{"f": "one"}), "f")
		before := id(file)
		tt.change(file)
		if same := id(file) == before; same != tt.same {
			t.Errorf("%s: same %v: %q, %q", tt.name, same, before, id(file))
		}
	}
	if got := id(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("what is not there is %q", got)
	}
}

// TestOneLook: a description never mixes two worlds.
func TestOneLook(t *testing.T) {
	t.Parallel()
	root := tree(t, repo(harmless, map[string]string{"f": "one"}))
	v := observe.NewView()
	id, r := v.Identify(filepath.Join(root, "f")), v.Repository(root)
	if err := os.WriteFile(filepath.Join(root, "f"), []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".git/config"), []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	if v.Identify(filepath.Join(root, "f")) != id || len(v.Repository(root).Settings) != len(r.Settings) {
		t.Error("one call saw two worlds")
	}
}
