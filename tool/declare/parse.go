package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// file is the YAML form of a set.
type file struct {
	Gatehouse int         `yaml:"gatehouse"`
	Enforce   *bool       `yaml:"enforcePolicies"`
	Isolation string      `yaml:"isolation"`
	Tools     []toolEntry `yaml:"tools"`
	Agents    []Agent     `yaml:"agents"`
}

type toolEntry struct {
	Tool   `yaml:",inline"`
	Schema yaml.Node `yaml:"schema"`
}

// Parse reads declarations written in YAML. It is strict: an unknown key is an
// error with its line and the nearest right one, and everything wrong is
// reported at once.
func Parse(text []byte) (*Set, error) {
	if err := content.CheckYAML(text, content.Limits{}); err != nil {
		return nil, fmt.Errorf("not read: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var f file
	if err := dec.Decode(&f); err != nil {
		return nil, explain(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document; one file holds one set")
	}
	if f.Gatehouse != 1 {
		return nil, fmt.Errorf("gatehouse: %d is no version of this format; write \"gatehouse: 1\"", f.Gatehouse)
	}
	set := &Set{Agents: f.Agents, Inert: f.Enforce != nil && !*f.Enforce, Isolation: f.Isolation}
	for i := range f.Tools {
		t := f.Tools[i].Tool
		if f.Tools[i].Schema.Kind != 0 {
			var schema any
			if err := f.Tools[i].Schema.Decode(&schema); err != nil {
				return nil, fmt.Errorf("tool %s: schema: %w", t.Name, err)
			}
			raw, err := json.Marshal(schema)
			if err != nil {
				return nil, fmt.Errorf("tool %s: schema: %w", t.Name, err)
			}
			t.Schema = raw
		}
		set.Tools = append(set.Tools, t)
	}
	if err := errors.Join(set.Check(), set.CheckBudgets()); err != nil {
		return nil, err
	}
	return set, nil
}

var unknownField = regexp.MustCompile(`^line (\d+): field (\S+) not found in type`)

// explain turns the decoder's words into ours: the line, the key and the
// nearest right one.
func explain(err error) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return fmt.Errorf("not read: %w", err)
	}
	var errs []error
	for _, line := range te.Errors {
		m := unknownField.FindStringSubmatch(line)
		if m == nil {
			errs = append(errs, errors.New(line))
			continue
		}
		hint := ""
		if near, ok := match.Nearest(m[2], knownKeys()); ok {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		errs = append(errs, fmt.Errorf("line %s: unknown key %q%s", m[1], m[2], hint))
	}
	return errors.Join(errs...)
}

// knownKeys lists every key of the format.
func knownKeys() []string {
	var out []string
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || t == reflect.TypeFor[yaml.Node]() || t == reflect.TypeFor[Stance]() {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if key != "" && key != "-" {
				out = append(out, key)
			}
			walk(t.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[file]())
	return out
}
