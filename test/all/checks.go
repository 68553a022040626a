package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkFormat finds files that gofmt would change, without needing gofmt.
func checkFormat(_ context.Context, w *work) outcome {
	var wrong []string
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != w.root && (name == "testdata" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.root, path)
		if err != nil {
			return err
		}
		formatted, err := format.Source(source)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s: %v", rel, err))
		case !bytes.Equal(source, formatted):
			wrong = append(wrong, rel+": not formatted; run gofmt -w")
		}
		return nil
	})
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("%d files", len(wrong))
	}
	return verdict(err, strings.Join(wrong, "\n"))
}

func vet(ctx context.Context, w *work) outcome {
	return check(ctx, command{dir: w.root, args: []string{"go", "vet", "./..."}})
}

// build compiles all packages and links the commands. It fills the cache that
// the tests use.
func build(ctx context.Context, w *work) outcome {
	env := []string{"CGO_ENABLED=0"}
	o := check(ctx, command{dir: w.root, env: env, args: []string{"go", "build", "./..."}})
	var commands []string
	for _, p := range w.packages {
		if p.main && strings.HasPrefix(p.dir, "cmd/") {
			commands = append(commands, p.path)
		}
	}
	if o.failed || len(commands) == 0 {
		return o
	}
	bin, err := os.MkdirTemp("", "gatehouse-build-")
	if err != nil {
		return verdict(err, "")
	}
	defer os.RemoveAll(bin)
	o = check(ctx, command{dir: w.root, env: env, args: append([]string{"go", "build", "-o", bin + string(filepath.Separator)}, commands...)})
	o.note = fmt.Sprintf("%d commands", len(commands))
	return o
}

// others are the systems besides this one that the code must build on.
var others = []string{"darwin", "windows"}

// cross compiles all packages for other systems. What they do there is not
// tested.
func cross(ctx context.Context, w *work) outcome {
	for _, system := range others {
		env := []string{"CGO_ENABLED=0", "GOOS=" + system}
		if o := check(ctx, command{dir: w.root, env: env, args: []string{"go", "build", "./..."}}); o.failed {
			o.note = "for " + system
			return o
		}
	}
	return outcome{note: "builds on " + strings.Join(others, ", ")}
}

func staticcheck(ctx context.Context, w *work) outcome {
	return check(ctx, command{dir: w.root, args: []string{w.toolNamed("staticcheck"), "./..."}})
}

// golangci tests the plugin of golangci-lint, which is a module of its own.
func golangci(ctx context.Context, w *work) outcome {
	return check(ctx, command{dir: filepath.Join(w.root, "tool", "vet", "golangci"), env: []string{"GOWORK=off"}, args: []string{"go", "test", "./..."}})
}
