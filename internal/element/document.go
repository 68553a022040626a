package element

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// The limits of an element's file. More is refused, never cut.
const (
	MaxFile        = 2 << 20
	maxFrontMatter = 64 << 10
	maxNameLen     = 100
)

// Format is how an element's file is written.
type Format uint8

// The formats.
const (
	// Markdown has its metadata in front, between lines of three dashes.
	Markdown Format = iota
	// YAML has its metadata in a member of that name, or at the top.
	YAML
)

// Problem is something wrong with an element's file.
type Problem struct {
	Line int    `json:"line,omitzero"`
	Text string `json:"text"`
	// Fatal problems quarantine the element; the rest are remarks.
	Fatal bool `json:"fatal,omitzero"`
}

// String writes the problem with its line.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return p.Text
}

// Document is an element's file.
type Document struct {
	Type   string
	Name   string
	Format Format
	// Body is the text of a Markdown file behind its metadata.
	Body string
	// Suspicious says what content validation found in the file, "" if nothing:
	// a person looks at it before it is put in force.
	Suspicious string
	// Problems are what is wrong with it.
	Problems []Problem

	root   *yaml.Node // the whole YAML text, a mapping
	meta   *yaml.Node // where the metadata is, within root
	policy Element
}

var errNoFrontMatter = errors.New(`the file has no metadata in front: start it with a line "---", name and description, and another "---"`)

// Parse reads an element's file. An error means that nothing can be said
// about it; a policy that does not load is a problem of the document, which
// quarantines the element.
func Parse(elementType, fallbackName string, f Format, data []byte) (*Document, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file has %d bytes, %d are allowed", len(data), MaxFile)
	}
	d := &Document{Type: elementType, Format: f}
	front, limits, line := data, content.Limits{Bytes: MaxFile, Documents: 1}, 0
	if f == Markdown {
		var ok bool
		if front, d.Body, ok = splitFrontMatter(data); !ok {
			return nil, errNoFrontMatter
		}
		limits.Bytes, line = maxFrontMatter, 1
	}
	if err := content.CheckYAML(front, limits); err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the metadata is not a mapping")
	}
	d.root = doc.Content[0]
	d.meta = d.root
	if m := member(d.root, "metadata"); f == YAML && m != nil && m.Kind == yaml.MappingNode {
		d.meta = m
	}
	d.Name = strings.TrimSpace(d.Field("name"))
	if d.Name == "" {
		d.Name = fallbackName
	}
	if err := CheckName(d.Name); err != nil {
		return nil, err
	}
	d.check(data, line)
	return d, nil
}

// splitFrontMatter takes the metadata of a Markdown file off its text.
func splitFrontMatter(data []byte) (front []byte, body string, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, "", false
	}
	if end := bytes.Index(rest, []byte("\n---\n")); end >= 0 {
		return rest[:end+1], string(rest[end+len("\n---\n"):]), true
	}
	front, ok = bytes.CutSuffix(rest, []byte("\n---"))
	return front, "", ok
}

// check looks at the policy and at the text; line is how many lines stand in
// front of the metadata.
func (d *Document) check(data []byte, line int) {
	l := &linter{offset: line}
	d.policy = l.policy(d.meta)
	d.policy.Type, d.policy.Name = d.Type, d.Name
	if d.Type == "agent" && member(d.meta, "gatekeeper") == nil {
		l.tools(member(d.meta, "tools"), &d.policy)
	}
	for _, f := range content.Scan(string(data), nil) {
		if f.Severity >= content.High {
			d.Suspicious = fmt.Sprintf("%s: %s", f.Category, content.Explain(f.Rule))
			l.problem(nil, f.Severity == content.Critical, "%s", d.Suspicious)
		}
	}
	d.Problems = l.problems
	for _, p := range l.problems {
		if p.Fatal {
			d.policy.Quarantine = p.String()
			break
		}
	}
}

// Element returns the policy that the document carries, in quarantine if it
// did not load.
func (d *Document) Element() Element { return d.policy }

// Field returns a text of the metadata, "" if there is none.
func (d *Document) Field(name string) string {
	if n := member(d.meta, name); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Tags returns the tags of the metadata.
func (d *Document) Tags() []string { return texts(member(d.meta, "tags")) }

// Metadata returns the metadata as values.
func (d *Document) Metadata() map[string]any {
	out := make(map[string]any)
	_ = d.meta.Decode(&out) // it was checked when it was read
	return out
}

// Member is an element that an ensemble brings.
type Member struct{ Type, Name string }

// Members lists what an ensemble brings.
func (d *Document) Members() []Member {
	var out []Member
	list := member(d.meta, "elements")
	if d.Type != "ensemble" || list == nil {
		return nil
	}
	for _, n := range list.Content {
		m := Member{Type: text(n, "element_type", "elementType", "type"), Name: text(n, "element_name", "elementName", "name")}
		if n.Kind == yaml.ScalarNode {
			m.Type, m.Name, _ = strings.Cut(n.Value, "/")
		}
		out = append(out, m)
	}
	return out
}

// CheckName refuses names that could not be a file's or that hide something.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the element has no name")
	case len(name) > maxNameLen:
		return fmt.Errorf("the name is longer than %d bytes", maxNameLen)
	case FileName(name) == "":
		return fmt.Errorf("%q is no name: use letters, digits, blanks, dots, dashes", name)
	}
	for _, f := range content.Scan(name, nil) {
		if f.Severity >= content.High {
			return fmt.Errorf("the name is refused: %s", content.Explain(f.Rule))
		}
	}
	return nil
}

// FileName is the one file name that a name stands for: small letters and
// digits, a dash for whatever stands between them. Two names with the same
// file name are the same element.
func FileName(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range match.NFKC(strings.ToLower(name)) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			dash = true
			continue
		}
		if dash && b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(r)
		dash = false
	}
	return b.String()
}

// member returns the value of a mapping's member, nil if there is none.
func member(n *yaml.Node, name string) *yaml.Node {
	if n = resolveAlias(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return resolveAlias(n.Content[i+1])
		}
	}
	return nil
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// text returns the first of several members that is a text.
func text(n *yaml.Node, names ...string) string {
	for _, name := range names {
		if m := member(n, name); m != nil && m.Kind == yaml.ScalarNode {
			return m.Value
		}
	}
	return ""
}

// texts returns the texts of a list.
func texts(n *yaml.Node) []string {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	var out []string
	for _, e := range n.Content {
		if e = resolveAlias(e); e.Kind == yaml.ScalarNode {
			out = append(out, e.Value)
		}
	}
	return out
}
