package declare

import (
	"errors"
	"strings"
)

// A step of an argument's key: a member, any member, or any item.
type step struct {
	name string // "" for any
	item bool   // an item of an array
}

// parseKey reads "files[].name" or "options.*".
func parseKey(key string) ([]step, error) {
	var out []step
	for part := range strings.SplitSeq(key, ".") {
		items := 0
		for strings.HasSuffix(part, "[]") {
			part, items = strings.TrimSuffix(part, "[]"), items+1
		}
		switch {
		case part == "" || strings.ContainsAny(part, "[]"):
			return nil, errors.New(`a key is like "path", "files[].name" or "options.*"`)
		case part == "*":
			out = append(out, step{})
		default:
			out = append(out, step{name: part})
		}
		for range items {
			out = append(out, step{item: true})
		}
	}
	return out, nil
}

// A RoleFinder knows the roles of a tool's arguments.
type RoleFinder struct{ keys []roleKey }

type roleKey struct {
	steps []step
	role  Role
}

// FindRoles compiles the roles of a tool that passed [Set.Check].
func FindRoles(arguments map[string]Role) RoleFinder {
	var f RoleFinder
	for key, role := range arguments {
		if steps, err := parseKey(key); err == nil {
			f.keys = append(f.keys, roleKey{steps, role})
		}
	}
	return f
}

// A Place is where a value stands in the arguments: member names, and "" for
// an item of an array.
type Place []Part

// Part is one step down into the arguments.
type Part struct {
	Name string
	Item bool
}

// Role returns the role of the value at a place. A role given to an array
// holds for its items, however deep. If several keys fit, the strictest
// counts: a value that is text by one key and a path by another is a path.
func (f *RoleFinder) Role(at Place) (Role, bool) {
	found := Role("")
	for i := range f.keys {
		k := &f.keys[i]
		if !k.holds(at) {
			continue
		}
		if found == "" || found == RoleText || found == RoleRead && k.role == RoleWrite {
			found = k.role
		}
	}
	return found, found != ""
}

func (k *roleKey) holds(at Place) bool {
	if len(at) < len(k.steps) {
		return false
	}
	for i, s := range k.steps {
		if s.item != at[i].Item || s.name != "" && s.name != at[i].Name {
			return false
		}
	}
	for _, rest := range at[len(k.steps):] {
		if !rest.Item {
			return false
		}
	}
	return true
}
