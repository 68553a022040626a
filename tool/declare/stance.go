package declare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mode is the kind of a stance.
type Mode uint8

// The modes. The zero value says nothing.
const (
	Unspecified Mode = iota
	ModeNone
	ModeListed
	ModeAll
)

// Stance is what a tool says about one kind of access: nothing (the zero
// value), [None], [Only] what is listed, or [All].
type Stance struct {
	mode  Mode
	items []string
}

// None is the stance of a tool that needs nothing of the kind.
var None = Stance{mode: ModeNone}

// All is the stance of a tool that cannot say in advance what it needs. It is
// a stance for networks and programs; a policy with it elsewhere is refused.
var All = Stance{mode: ModeAll}

// Only is the stance of a tool that needs what is listed and no more: globs,
// hosts, variables or programs. An empty list is None.
func Only(items ...string) Stance {
	if len(items) == 0 {
		return None
	}
	items = slices.Clone(items)
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	slices.Sort(items)
	return Stance{mode: ModeListed, items: slices.Compact(items)}
}

// Mode returns the kind of the stance.
func (s Stance) Mode() Mode { return s.mode }

// Items returns what is listed, sorted.
func (s Stance) Items() []string { return slices.Clone(s.items) }

// Declared reports whether the stance says anything.
func (s Stance) Declared() bool { return s.mode != Unspecified }

// Grants reports whether the stance lets anything through: a list or all.
func (s Stance) Grants() bool { return s.mode == ModeListed || s.mode == ModeAll }

// Equal reports whether two stances say the same.
func (s Stance) Equal(o Stance) bool { return s.mode == o.mode && slices.Equal(s.items, o.items) }

// String returns the stance in words.
func (s Stance) String() string {
	switch s.mode {
	case ModeNone:
		return "none"
	case ModeAll:
		return "all"
	case ModeListed:
		return strings.Join(s.items, ", ")
	}
	return "unspecified"
}

// MarshalJSON writes a word or the list.
func (s Stance) MarshalJSON() ([]byte, error) {
	if s.mode == ModeListed {
		return json.Marshal(s.items)
	}
	return json.Marshal(s.String())
}

// UnmarshalJSON reads a word or a list.
func (s *Stance) UnmarshalJSON(b []byte) error {
	var items []string
	if err := json.Unmarshal(b, &items); err == nil && string(b) != "null" {
		*s = Only(items...)
		return nil
	}
	var word string
	if err := json.Unmarshal(b, &word); err != nil {
		return fmt.Errorf("a stance is unspecified, none, all or a list, not %.40s", b)
	}
	return s.fromWord(word)
}

// MarshalYAML writes a word or the list.
func (s Stance) MarshalYAML() (any, error) {
	if s.mode == ModeListed {
		return s.items, nil
	}
	return s.String(), nil
}

// UnmarshalYAML reads a word or a list.
func (s *Stance) UnmarshalYAML(n *yaml.Node) error {
	var items []string
	if n.Kind == yaml.SequenceNode {
		if err := n.Decode(&items); err != nil {
			return err
		}
		*s = Only(items...)
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a stance is unspecified, none, all or a list", n.Line)
	}
	if err := s.fromWord(n.Value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

func (s *Stance) fromWord(word string) error {
	switch word {
	case "unspecified":
		*s = Stance{}
	case "none":
		*s = None
	case "all":
		*s = All
	default:
		return fmt.Errorf("%q is no stance: use unspecified, none, all or a list such as [%s]", word, word)
	}
	return nil
}
