package policy

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// decoder moves a document that is valid TOML into a File. It is strict, and
// it goes on after a mistake, so that whoever writes a policy sees all
// mistakes at once and each with its line.
type decoder struct {
	name     string
	at       positions
	problems Problems
	// failed holds the paths with a problem, which need no second one.
	failed map[string]bool
}

func (d *decoder) problem(path, hint, format string, args ...any) {
	d.failed[path] = true
	pos := d.at.at(path)
	d.problems = append(d.problems, Problem{
		File: d.name, Line: pos.line, Column: pos.column, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// value stores v, which stands at path, in dst.
func (d *decoder) value(path string, v any, dst reflect.Value) {
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(path, v, u)
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		d.table(path, v, dst)
	case reflect.Map:
		d.entries(path, v, dst)
	case reflect.Slice:
		d.list(path, v, dst)
	default:
		d.scalar(path, v, dst)
	}
}

func (d *decoder) scalar(path string, v any, dst reflect.Value) {
	switch v := v.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return
		}
	case int64:
		if dst.Kind() == reflect.Int {
			if dst.OverflowInt(v) {
				d.problem(path, "", "%s is too large", lastKey(path))
				return
			}
			dst.SetInt(v)
			return
		}
	}
	d.wrongType(path, dst.Kind(), v)
}

func (d *decoder) text(path string, v any, u encoding.TextUnmarshaler) {
	s, ok := v.(string)
	if !ok {
		d.wrongType(path, reflect.String, v)
		return
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		hint := ""
		if _, ok := u.(*call.Level); ok {
			hint = didYouMean(s, call.LevelNames())
		}
		d.problem(path, hint, "%s: %v", lastKey(path), err)
	}
}

func (d *decoder) table(path string, v any, dst reflect.Value) {
	table, ok := v.(map[string]any)
	if !ok {
		d.wrongType(path, reflect.Struct, v)
		return
	}
	fields := tomlFields(dst.Type())
	for _, key := range slices.Sorted(maps.Keys(table)) {
		i, ok := fields[key]
		if !ok {
			d.problem(join(path, key), didYouMean(key, slices.Sorted(maps.Keys(fields))), "unknown key %q", key)
			continue
		}
		d.value(join(path, key), table[key], dst.Field(i.index))
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, ok := table[key]; !ok && fields[key].required {
			d.problem(join(path, key), requiredHints[key], "%s is missing", key)
		}
	}
}

// requiredHints say what to write where a required key is missing.
var requiredHints = map[string]string{
	"version": "write version = 1",
	"level":   "write one of " + strings.Join(call.LevelNames(), ", "),
	"reason":  "say why, in words for the person and the agent",
}

func (d *decoder) entries(path string, v any, dst reflect.Value) {
	table, ok := v.(map[string]any)
	if !ok {
		d.wrongType(path, reflect.Map, v)
		return
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), len(table)))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		elem := reflect.New(dst.Type().Elem()).Elem()
		d.value(join(path, key), table[key], elem)
		dst.SetMapIndex(reflect.ValueOf(key).Convert(dst.Type().Key()), elem)
	}
}

func (d *decoder) list(path string, v any, dst reflect.Value) {
	list, ok := v.([]any)
	if !ok {
		d.wrongType(path, reflect.Slice, v)
		return
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(list), len(list)))
	for i := range list {
		d.value(join(path, strconv.Itoa(i)), list[i], dst.Index(i))
	}
}

// kindWords say what a place in the file takes.
var kindWords = map[reflect.Kind]string{
	reflect.String: "a text in quotes", reflect.Bool: "true or false", reflect.Int: "a whole number",
	reflect.Struct: "a table", reflect.Map: "a table", reflect.Slice: "a list",
}

func (d *decoder) wrongType(path string, want reflect.Kind, v any) {
	got := "a date or time"
	switch v.(type) {
	case string:
		got = "a text"
	case bool:
		got = "true or false"
	case int64:
		got = "a number"
	case float64:
		got = "a number with a fraction"
	case map[string]any:
		got = "a table"
	case []any:
		got = "a list"
	}
	d.problem(path, "", "%s must be %s, not %s", lastKey(path), kindWords[want], got)
}

// tomlField is a field of a table's type.
type tomlField struct {
	index    int
	required bool
}

// tomlFields maps the keys of a table to the fields of its type. A field that
// is not marked omitempty must be there.
func tomlFields(t reflect.Type) map[string]tomlField {
	fields := make(map[string]tomlField)
	for i := range t.NumField() {
		if name, opts, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ","); name != "" {
			fields[name] = tomlField{index: i, required: opts != "omitempty"}
		}
	}
	return fields
}

// lastKey names the key that a path ends in, passing over list indexes.
func lastKey(path string) string {
	parts := strings.Split(path, "\x1f")
	for i := len(parts) - 1; i > 0; i-- {
		if _, err := strconv.Atoi(parts[i]); err != nil {
			return parts[i]
		}
	}
	return parts[0]
}

// didYouMean is the hint that names the nearest right word.
func didYouMean(word string, right []string) string {
	if near, ok := match.Nearest(word, right); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
