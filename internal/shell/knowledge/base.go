package knowledge

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

//go:embed data/*.toml
var embedded embed.FS

// Base is a set of program tables with the tables of paths, variables and
// code words. It does not change once it is built and may be shared.
type Base struct {
	programs map[string]*Program
	tables   *tables
}

// Program finds a program by its name, without directory.
func (b *Base) Program(name string) *Program { return b.programs[name] }

// Programs gives every program once, by its first name, in order.
func (b *Base) Programs() []*Program {
	var out []*Program
	for name, p := range b.programs {
		if name == p.Name {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Program) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Builtin gives the tables that come with the binary. They are read on first
// use; a mistake in them is a mistake of this repository, so it panics, and
// the tests of this package find it.
var Builtin = sync.OnceValue(func() *Base {
	b := &Base{programs: map[string]*Program{}}
	sub, err := fs.Sub(embedded, "data")
	if err != nil {
		panic(err)
	}
	if b.tables, err = loadTables(sub); err != nil {
		panic(err)
	}
	if _, err := b.merge(sub, false); err != nil {
		panic(err)
	}
	return b
})

// Change is what a user's file alters.
type Change struct {
	Program string
	File    string
	// Looser says that commands could be judged more mildly than before. It is
	// false only for an entry that extends a built-in one, which can add
	// effects and nothing else.
	Looser bool
	Why    string
}

// Load adds the TOML files of a file system to the built-in tables. The
// changes say what became different; whether those that loosen take effect
// is for the caller to decide before it uses the result.
func Load(fsys fs.FS) (*Base, []Change, error) {
	b := builtinCopy()
	changes, err := b.merge(fsys, true)
	if err != nil {
		return nil, nil, err
	}
	return b, changes, nil
}

// LoadFiles is Load for files that were read already, by their names.
func LoadFiles(files map[string][]byte) (*Base, []Change, error) {
	b := builtinCopy()
	var changes []Change
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		got, err := b.mergeData(name, files[name], true)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		changes = append(changes, got...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	return b, changes, nil
}

func builtinCopy() *Base {
	builtin := Builtin()
	b := &Base{programs: make(map[string]*Program, len(builtin.programs)), tables: builtin.tables}
	for name, p := range builtin.programs {
		b.programs[name] = p
	}
	return b
}

// merge reads every program file in order of its name.
func (b *Base) merge(fsys fs.FS, user bool) ([]Change, error) {
	names, err := fs.Glob(fsys, "*.toml")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var changes []Change
	var problems []error
	for _, name := range names {
		if !user && tableFiles[name] {
			continue
		}
		got, err := b.mergeFile(fsys, name, user)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		changes = append(changes, got...)
	}
	return changes, errors.Join(problems...)
}

func (b *Base) mergeFile(fsys fs.FS, name string, user bool) ([]Change, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return b.mergeData(name, data, user)
}

func (b *Base) mergeData(name string, data []byte, user bool) ([]Change, error) {
	var f rawFile
	if err := strictTOML(data, &f); err != nil {
		return nil, err
	}
	var changes []Change
	for i := range f.Program {
		raw := &f.Program[i]
		p, err := compileProgram(raw, f.Family, f.Groups)
		if err != nil {
			return changes, err
		}
		p.User = user
		for _, alias := range append([]string{raw.Name}, raw.Aliases...) {
			c, err := b.put(alias, p, raw.Extend, user)
			if err != nil {
				return changes, err
			}
			if user {
				c.File = name
				changes = append(changes, c)
			}
		}
	}
	return changes, nil
}

// put files a program under one name.
func (b *Base) put(name string, p *Program, extend, user bool) (Change, error) {
	old := b.programs[name]
	switch {
	case old == nil && extend:
		return Change{}, fmt.Errorf("%s extends a program that is not known", name)
	case old == nil:
		b.programs[name] = p
		return Change{Program: name, Looser: true, Why: "a program that was unknown becomes known"}, nil
	case extend:
		b.programs[name] = extended(old, p)
		return Change{Program: name, Why: "effects are added to a known program"}, nil
	case !user:
		return Change{}, fmt.Errorf("%s is described twice", name)
	}
	b.programs[name] = p
	return Change{Program: name, Looser: true, Why: "the entry of a known program is replaced"}, nil
}

// extended adds the effects of more to old.
func extended(old, more *Program) *Program {
	p := *old
	p.User = true
	p.Spec = *extendedSpec(&old.Spec, &more.Spec)
	p.Examples = more.Examples // those of the old entry are not true of it any more
	if len(more.Does) > 0 {
		// An option that only prints would hide the added effect.
		p.Info = nil
	}
	return &p
}

// extendedSpec adds effects to a spec and to all its subcommands. Whatever
// the old one says stays; options it does not name stay unknown, except those
// that bring an effect.
func extendedSpec(old, more *Spec) *Spec {
	s := *old
	s.Benign = false
	s.Does = append(slices.Clone(old.Does), more.Does...)
	s.Options = make(map[string]*Option, len(old.Options))
	for _, o := range old.Options {
		s.addOption(o)
	}
	for name, o := range more.Options {
		merged := *o
		if was := old.Options[name]; was != nil {
			merged = *was
			merged.Does = append(slices.Clone(was.Does), o.Does...)
		} else if len(o.Does) == 0 {
			continue
		}
		s.addOption(&merged)
	}
	s.Whens = nil
	for _, w := range old.Whens {
		if w.HasDoes {
			w.Does = append(slices.Clone(w.Does), more.Does...)
		}
		s.Whens = append(s.Whens, w)
	}
	s.Subs = make(map[string]*Spec, len(old.Subs))
	for name, sub := range old.Subs {
		s.Subs[name] = extendedSpec(sub, more)
	}
	s.Patterns = nil
	for _, p := range old.Patterns {
		p.Spec = extendedSpec(p.Spec, more)
		s.Patterns = append(s.Patterns, p)
	}
	return &s
}

func strictTOML(data []byte, v any) error {
	dec := toml.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		return fmt.Errorf("unknown keys:\n%s", strict.String())
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, col := decode.Position()
		return fmt.Errorf("line %d, column %d: %w", row, col, err)
	}
	return err
}
