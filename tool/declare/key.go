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
	role  RoleSet
}

// FindRoles compiles the roles of a tool that passed [Set.Check].
func FindRoles(arguments map[string]Role) RoleFinder {
	var f RoleFinder
	for key, role := range arguments {
		if steps, err := parseKey(key); err == nil {
			f.keys = append(f.keys, roleKey{steps, roleBits[role]})
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

// RoleSet is several roles at once.
type RoleSet uint8

// The roles as members of a set.
const (
	IsRead RoleSet = 1 << iota
	IsWrite
	IsURL
	IsEnv
	IsCommand
	IsText
)

// roleBits gives each role its bit; what is no role has none.
var roleBits = map[Role]RoleSet{RoleRead: IsRead, RoleWrite: IsWrite, RoleURL: IsURL, RoleEnv: IsEnv, RoleCommand: IsCommand, RoleText: IsText}

// At returns the roles of the value at a place, of all keys that fit: a value
// that is read by one key and written by another is both. A role given to an
// array holds for its items, however deep.
func (f *RoleFinder) At(at Place) RoleSet {
	var found RoleSet
	for i := range f.keys {
		if k := &f.keys[i]; k.holds(at) {
			found |= k.role
		}
	}
	return found
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
