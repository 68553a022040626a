package gatehouse_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// reporter says what is wrong, as [testing.T.Errorf] does. The rules are
// functions of the parsed files and a reporter, so that bite_test.go can show
// them a tree that breaks every one of them.
type reporter func(format string, args ...any)

// module is the path in go.mod.
const module = "github.com/seed-3ebc6b8a/gatehouse"

// file is one Go file of the tree, whatever system it is for.
type file struct {
	path  string // relative to the root, with slashes
	dir   string // its folder, "." for the root
	test  bool
	lines int
	ast   *ast.File
	set   *token.FileSet
}

// at says where something is, as an editor wants it.
func (f *file) at(n ast.Node) string {
	p := f.set.Position(n.Pos())
	return f.path + ":" + strconv.Itoa(p.Line)
}

// imports lists the import paths of the file, each with its place.
func (f *file) imports() map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			out[p] = spec
		}
	}
	return out
}

// tree parses the whole repository once. It reads the source rather than ask
// the go command, so that the rules hold for files of other systems and for a
// tree that does not compile at the moment.
var tree = sync.OnceValues(func() ([]*file, error) {
	var files []*file
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(p, d)
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		source, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parse(set, filepath.ToSlash(p), source)
		files = append(files, f)
		return err
	})
	return files, err
})

func parse(set *token.FileSet, name string, source []byte) (*file, error) {
	parsed, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	return &file{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(string(source), "\n"), ast: parsed, set: set,
	}, err
}

// skipFolder leaves out what is not the module's own code.
func skipFolder(p string, d fs.DirEntry) error {
	if p == "." {
		return nil
	}
	if name := d.Name(); name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return fs.SkipDir
	}
	return nil
}

// parsedTree is tree for a test.
func parsedTree(t *testing.T) []*file {
	t.Helper()
	files, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files were found")
	}
	return files
}

// shipped are the files that end up in a program: neither tests nor packages
// that only help tests.
func shipped(files []*file) []*file {
	return slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.test || forTests(f.dir) })
}

// forTests reports whether a package only helps tests or development.
func forTests(dir string) bool {
	return strings.HasSuffix(dir, "test") || under(dir, "test") || under(dir, "bench")
}

// under reports whether a folder is the named one or lies below it.
func under(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

// local turns an import path of this module into its folder.
func local(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}
