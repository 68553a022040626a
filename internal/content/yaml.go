package content

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a YAML text. Zero means the default.
type Limits struct {
	Bytes     int // size of the text, default 1 MiB
	Depth     int // of nesting, default 32
	Nodes     int // values as written, default 20,000
	Aliases   int // default 20
	Expanded  int // values once aliases are followed, default 50,000
	Documents int // default 3
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v   *int
		def int
	}{{&l.Bytes, 1 << 20}, {&l.Depth, 32}, {&l.Nodes, 20_000}, {&l.Aliases, 20}, {&l.Expanded, 50_000}, {&l.Documents, 3}} {
		if *f.v <= 0 {
			*f.v = f.def
		}
	}
	return l
}

// Errors of CheckYAML, wrapped in a *YAMLError that says where.
var (
	ErrYAMLSyntax    = errors.New("does not parse")
	ErrYAMLSize      = errors.New("is too large")
	ErrYAMLDepth     = errors.New("is nested too deeply")
	ErrYAMLNodes     = errors.New("has too many values")
	ErrYAMLAliases   = errors.New("has too many aliases")
	ErrYAMLExpanded  = errors.New("has aliases that expand to too many values")
	ErrYAMLCycle     = errors.New("has an alias that contains itself")
	ErrYAMLDuplicate = errors.New("has the same key twice")
	ErrYAMLKey       = errors.New("has a key that is not a plain value")
	ErrYAMLTag       = errors.New("has a tag that asks for a type of a programming language")
	ErrYAMLDocuments = errors.New("has too many documents")
)

// A YAMLError says which limit a text breaks, and where.
type YAMLError struct {
	Line, Column int // from 1; 0 if it is about the whole
	Err          error
	Detail       string
}

// Error returns the message with the line.
func (e *YAMLError) Error() string {
	msg := "the YAML text " + e.Err.Error()
	if e.Detail != "" {
		msg += ": " + e.Detail
	}
	if e.Line > 0 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, msg)
	}
	return msg
}

// Unwrap returns the sentinel.
func (e *YAMLError) Unwrap() error { return e.Err }

// CheckYAML refuses a text that would not fit the limits once decoded. It looks at the syntax tree,
// in which aliases are not yet followed, so its own work is linear in the text.
func CheckYAML(data []byte, limits Limits) error {
	limits = limits.withDefaults()
	if len(data) > limits.Bytes {
		return &YAMLError{Err: ErrYAMLSize, Detail: fmt.Sprintf("%d bytes, %d allowed", len(data), limits.Bytes)}
	}
	if at := tooManyOpen(data, 8*limits.Depth); at >= 0 {
		return &YAMLError{Line: 1 + bytes.Count(data[:at], []byte("\n")), Column: 1, Err: ErrYAMLDepth}
	}
	c := yamlCheck{limits: limits, sizes: map[*yaml.Node]int{}, inside: map[*yaml.Node]bool{}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for docs := 1; ; docs++ {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &YAMLError{Err: ErrYAMLSyntax, Detail: strings.TrimPrefix(err.Error(), "yaml: ")}
		}
		if docs > limits.Documents {
			return yamlError(&doc, ErrYAMLDocuments, "")
		}
		if _, err := c.node(&doc, 0); err != nil {
			return err
		}
	}
}

// tooManyOpen returns where more than limit brackets, or dashes of nested lists, are open at once, or
// -1. It spares the parser, whose own bound is far away. A bracket in a string counts too, which is
// why callers leave a wide margin.
func tooManyOpen(data []byte, limit int) int {
	depth, dashes := 0, 0
	for i, b := range data {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', ':':
			if i+1 < len(data) && data[i+1] == ' ' {
				dashes++ // a line of dashes nests nothing
			}
		case ' ', '\t':
		default:
			dashes = 0
		}
		if depth > limit || dashes > limit {
			return i
		}
	}
	return -1
}

type yamlCheck struct {
	limits  Limits
	nodes   int
	aliases int
	sizes   map[*yaml.Node]int // expanded size of anchored nodes
	inside  map[*yaml.Node]bool
}

func yamlError(n *yaml.Node, err error, detail string) error {
	return &YAMLError{Line: n.Line, Column: n.Column, Err: err, Detail: detail}
}

// node checks a node and returns how many values it stands for once aliases are followed.
func (c *yamlCheck) node(n *yaml.Node, depth int) (int, error) {
	if c.nodes++; c.nodes > c.limits.Nodes {
		return 0, yamlError(n, ErrYAMLNodes, "")
	}
	if depth > c.limits.Depth {
		return 0, yamlError(n, ErrYAMLDepth, "")
	}
	if !plainTag(n.Tag) {
		return 0, yamlError(n, ErrYAMLTag, n.Tag)
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n)
	}
	if n.Kind == yaml.MappingNode {
		if err := c.keys(n); err != nil {
			return 0, err
		}
	}
	c.inside[n] = true
	size := 1
	for _, child := range n.Content {
		s, err := c.node(child, depth+1)
		if err != nil {
			return 0, err
		}
		if size += s; size > c.limits.Expanded {
			return 0, yamlError(child, ErrYAMLExpanded, "")
		}
	}
	delete(c.inside, n)
	if n.Anchor != "" {
		c.sizes[n] = size
	}
	return size, nil
}

func (c *yamlCheck) alias(n *yaml.Node) (int, error) {
	if c.aliases++; c.aliases > c.limits.Aliases {
		return 0, yamlError(n, ErrYAMLAliases, "")
	}
	if n.Alias == nil || c.inside[n.Alias] {
		return 0, yamlError(n, ErrYAMLCycle, n.Value)
	}
	return c.sizes[n.Alias], nil
}

// keys refuses what different readers would take differently: one key twice, also as 1 and "1",
// and keys that are lists or mappings.
func (c *yamlCheck) keys(n *yaml.Node) error {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return yamlError(k, ErrYAMLKey, "")
		}
		if seen[k.Value] {
			return yamlError(k, ErrYAMLDuplicate, k.Value)
		}
		seen[k.Value] = true
	}
	return nil
}

// plainTag reports whether a tag is one of the core schema, or none.
func plainTag(tag string) bool {
	switch tag {
	case "", "!", "!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge", "!!binary":
		return true
	}
	return false
}
