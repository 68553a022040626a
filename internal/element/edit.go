package element

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Draft is what an element is made of, or what an edit changes of it.
type Draft struct {
	Description  *string
	Instructions *string
	// Body is the text behind the metadata.
	Body *string
	// Metadata are members to set; a nil value takes one away.
	Metadata map[string]any
}

// reserved are members that a draft's metadata cannot set: they have a field
// of their own, or say what the element is.
var reserved = []string{"name", "type", "description", "instructions", "entries"}

// New makes an element's document. A memory is a YAML file, the rest are
// Markdown.
func New(elementType, name string, draft *Draft, now time.Time) (*Document, error) {
	d := &Document{Type: elementType, Name: name, root: &yaml.Node{Kind: yaml.MappingNode}}
	d.meta = d.root
	if elementType == "memory" {
		d.Format, d.meta = YAML, &yaml.Node{Kind: yaml.MappingNode}
		d.root.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Value: "metadata"}, d.meta, {Kind: yaml.ScalarNode, Value: "entries"}, {Kind: yaml.SequenceNode}}
	}
	for _, m := range []struct{ key, value string }{{"name", name}, {"type", elementType}, {"version", "1.0.0"}, {"created", now.UTC().Format(time.RFC3339)}} {
		if err := set(d.meta, m.key, m.value); err != nil {
			return nil, err
		}
	}
	return d.Edit(draft, now)
}

// Edit returns the document with a draft's changes, read anew: whatever is
// wrong with it now is among its problems.
func (d *Document) Edit(draft *Draft, now time.Time) (*Document, error) {
	out := *d
	out.copyNodes(d)
	for key, text := range map[string]*string{"description": draft.Description, "instructions": draft.Instructions} {
		if text != nil {
			if err := set(out.meta, key, *text); err != nil {
				return nil, err
			}
		}
	}
	if draft.Body != nil {
		if out.Format == YAML {
			return nil, errors.New("a memory in YAML has entries and no text: use addEntry")
		}
		out.Body = *draft.Body
	}
	for _, key := range slices.Sorted(maps.Keys(draft.Metadata)) {
		if slices.Contains(reserved, key) {
			return nil, fmt.Errorf("metadata cannot set %q: it is a parameter of its own, or cannot be changed", key)
		}
		if err := set(out.meta, key, draft.Metadata[key]); err != nil {
			return nil, err
		}
	}
	if err := set(out.meta, "modified", now.UTC().Format(time.RFC3339)); err != nil {
		return nil, err
	}
	return out.again()
}

// copyNodes gives the document nodes of its own.
func (d *Document) copyNodes(from *Document) {
	d.root = cloneNode(from.root)
	d.meta = d.root
	if from.meta != from.root {
		d.meta = member(d.root, "metadata")
	}
}

func cloneNode(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = cloneNode(n.Content[i])
	}
	return &c
}

// again reads the document from its own text.
func (d *Document) again() (*Document, error) {
	data, err := d.Encode()
	if err != nil {
		return nil, err
	}
	return Parse(d.Type, d.Name, d.Format, data)
}

// set gives a mapping a member, or takes it away.
func set(n *yaml.Node, key string, value any) error {
	at := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			at = i
		}
	}
	if value == nil {
		if at >= 0 {
			n.Content = slices.Delete(n.Content, at, at+2)
		}
		return nil
	}
	v := &yaml.Node{}
	if err := v.Encode(value); err != nil {
		return err
	}
	if at >= 0 {
		n.Content[at+1] = v
		return nil
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, v)
	return nil
}

// Encode writes the document as its file holds it.
func (d *Document) Encode() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(d.root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	if d.Format == YAML {
		return out.Bytes(), nil
	}
	text := append([]byte("---\n"), out.Bytes()...)
	text = append(text, "---\n"...)
	return append(text, d.Body...), nil
}

// Entry is an entry of a memory.
type Entry struct {
	ID        string         `json:"id" yaml:"id"`
	Timestamp string         `json:"timestamp" yaml:"timestamp"`
	Content   string         `json:"content" yaml:"content"`
	Tags      []string       `json:"tags,omitzero" yaml:"tags,omitempty"`
	Metadata  map[string]any `json:"metadata,omitzero" yaml:"metadata,omitempty"`
}

// maxEntries is how many entries a memory holds.
const maxEntries = 1000

// Entries returns the entries of a memory.
func (d *Document) Entries() ([]Entry, error) {
	n := member(d.root, "entries")
	if n == nil {
		return nil, nil
	}
	var out []Entry
	return out, n.Decode(&out)
}

// AddEntry returns the memory with one entry more.
func (d *Document) AddEntry(e Entry) (*Document, error) {
	out := *d
	out.copyNodes(d)
	list := member(out.root, "entries")
	if list == nil || list.Kind != yaml.SequenceNode {
		if err := set(out.root, "entries", []Entry{}); err != nil {
			return nil, err
		}
		list = member(out.root, "entries")
	}
	if len(list.Content) >= maxEntries {
		return nil, fmt.Errorf("the memory is full: it holds %d entries", maxEntries)
	}
	v := &yaml.Node{}
	if err := v.Encode(e); err != nil {
		return nil, err
	}
	list.Style = 0
	list.Content = append(list.Content, v)
	return out.again()
}

// Cleared returns the memory without entries, and how many it had.
func (d *Document) Cleared() (*Document, int, error) {
	out := *d
	out.copyNodes(d)
	list, n := member(out.root, "entries"), 0
	if list != nil {
		n, list.Content = len(list.Content), nil
	}
	doc, err := out.again()
	return doc, n, err
}
