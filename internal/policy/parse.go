package policy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// MaxFile is the largest policy file; a larger one is refused.
const MaxFile = 1 << 20

// Parse reads a policy file strictly. The name is what problems and votes
// call the file. If anything is wrong it returns [Problems] that list
// everything that is, and no file.
func Parse(name string, data []byte) (*File, error) {
	return parse(name, data, false)
}

// parse reads a file; only the files that come with the gate may define the
// profiles that are built in.
func parse(name string, data []byte, shipped bool) (*File, error) {
	f, d := decodeFile(name, data)
	if f == nil {
		return nil, d.problems.orNil()
	}
	f.name, f.at, f.shipped, f.digest = name, d.at, shipped, sha256.Sum256(data)
	if err := append(d.problems, f.check(d.failed)...).orNil(); err != nil {
		return nil, err
	}
	return f, nil
}

// decodeFile reads the bytes. Without a file the decoder's problems say why;
// with one they list what could not be read of it.
func decodeFile(name string, data []byte) (*File, decoder) {
	d := decoder{name: name, failed: make(map[string]bool)}
	if d.problems = checkBytes(name, data); d.problems != nil {
		return nil, d
	}
	tree := make(map[string]any)
	err := toml.Unmarshal(data, &tree)
	if err != nil {
		d.problems = Problems{syntaxProblem(name, err)}
		return nil, d
	}
	if d.at, err = indexPositions(data); err != nil {
		d.problems = Problems{{File: name, Message: err.Error()}}
		return nil, d
	}
	f := new(File)
	d.value("", tree, reflect.ValueOf(f).Elem())
	return f, d
}

// checkBytes refuses what no policy file holds.
func checkBytes(name string, data []byte) Problems {
	where := func(offset int, message string) Problems {
		line := 1 + bytes.Count(data[:offset], []byte("\n"))
		column := offset - bytes.LastIndexByte(data[:offset], '\n')
		return Problems{{File: name, Line: line, Column: column, Message: message}}
	}
	if len(data) > MaxFile {
		return Problems{{File: name, Message: fmt.Sprintf("the file has %d bytes; the limit is %d", len(data), MaxFile)}}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return where(i, "the file holds a NUL byte")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return where(i, "the file is not valid UTF-8")
		}
		i += size
	}
	return nil
}

func syntaxProblem(name string, err error) Problem {
	p := Problem{File: name, Message: "not valid TOML: " + err.Error()}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		p.Line, p.Column = de.Position()
		p.Message = "not valid TOML: " + strings.TrimPrefix(de.Error(), "toml: ")
	}
	return p
}

// Name returns the name under which the file was read, "" if it was not.
func (f *File) Name() string { return f.name }

// Digest identifies the bytes the file was read from. Trust in a project's
// file is trust in this digest.
func (f *File) Digest() call.Digest { return f.digest }

// source says where a key of the file stands, as file:line.
func (f *File) source(path string) string {
	if pos := f.at.at(path); pos.line > 0 {
		return fmt.Sprintf("%s:%d", f.name, pos.line)
	}
	return f.name
}

// problem makes a problem at a key of the file.
func (f *File) problem(path, hint, format string, args ...any) Problem {
	pos := f.at.at(path)
	return Problem{File: f.name, Line: pos.line, Column: pos.column, Message: fmt.Sprintf(format, args...), Hint: hint}
}
