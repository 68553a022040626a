package call

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Principal is who makes a call: an enrolled agent, in one session, at one
// place in its tree of sub-agents.
type Principal struct {
	// Agent is the name under which the agent was enrolled or the host that
	// runs it.
	Agent string `json:"agent"`
	// Session is the id of the session the call belongs to.
	Session string `json:"session"`
	// Path names the sub-agent inside the session, "" for the main agent.
	Path string `json:"path,omitzero"`
}

// Below is the path of a sub-agent of the one with the first path.
func Below(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "/" + name
}

// String writes the principal as agent/session/path.
func (p Principal) String() string {
	s := p.Agent + "/" + p.Session
	if p.Path != "" {
		s += "/" + p.Path
	}
	return s
}

// Field is something besides the arguments that reaches the effect, such as
// a forwarded header or protocol metadata.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Call is one action of an agent in its one normal form. Surfaces build it
// with [New] or fill it and call [Call.Normalize]; nothing downstream looks
// at raw input again.
type Call struct {
	// ID is given by the gate; it names this attempt and is not digested.
	ID string `json:"id,omitzero"`
	// Kind says where the base level comes from.
	Kind Kind `json:"kind"`
	// Surface is where the call came in, such as "api" or "hook:claude".
	Surface string `json:"surface"`
	// Principal is who asks.
	Principal Principal `json:"principal"`
	// Operation is the canonical name of what is to be done.
	Operation string `json:"operation"`
	// Endpoint is the endpoint the caller used for a native operation, none
	// where the surface has no endpoints.
	Endpoint Endpoint `json:"endpoint,omitzero"`
	// ElementType is the type of element a native operation works on.
	ElementType string `json:"element_type,omitzero"`
	// Args is a JSON object in canonical form.
	Args jsontext.Value `json:"args,omitzero"`
	// Dir is the real working directory.
	Dir string `json:"dir,omitzero"`
	// Forward lists whatever else reaches the effect.
	Forward []Field `json:"forward,omitzero"`
	// Note is the caller's free text about the call. It has no effect, so it
	// is shown and not digested.
	Note string `json:"note,omitzero"`
	// Parent is the id of the call this one is nested in.
	Parent string `json:"parent,omitzero"`
	// HostID is the host's own id of this use of a tool, if it has one. It has
	// no effect, so it is recorded and not digested.
	HostID string `json:"host_id,omitzero"`
	// Correlation joins the calls of one dispatch with its job and its approval.
	// It has no effect, so it is recorded and not digested.
	Correlation string `json:"correlation,omitzero"`
	// Held says that the caller runs as a user who cannot reach the gate's own
	// files. Where that is not known it is not so.
	Held bool `json:"held,omitzero"`
	// Sessionless says that the call came over a wire that has no sessions, so
	// that an approval "for the session" would never end.
	Sessionless bool `json:"sessionless,omitzero"`
	// Rewrites says that the surface runs the command that the gate gives back
	// in place of the agent's, so that project code can be made to run
	// confined. Where that is not known it is not so.
	Rewrites bool `json:"rewrites,omitzero"`
	// Tool is what a server says about the tool that is called. It is not
	// believed: it can make a call look worse and never better.
	Tool *Claims `json:"tool,omitzero"`
}

// Claims are what an MCP server says about one of its tools, or a tool about
// one of its calls.
type Claims struct {
	// Schema is the JSON Schema of the arguments.
	Schema jsontext.Value `json:"schema,omitzero"`
	// Destructive and OpenWorld are annotations that make a tool look worse.
	// What would make it look better is not even kept.
	Destructive bool `json:"destructive,omitzero"`
	OpenWorld   bool `json:"open_world,omitzero"`
	// Needs are capabilities with their scopes that the call needs besides
	// those that the gate finds out.
	Needs []string `json:"needs,omitzero"`
}

// Posture says in a word what the gate can do about the caller: hold it, or
// only advise it.
func (c *Call) Posture() string {
	if c.Held {
		return "held"
	}
	return "advisory"
}

// maxName bounds every name in a call; longer ones are an attack on the log.
const maxName = 512

// Normalize checks the call, folds aliases into canonical names and brings
// the arguments into canonical form. A call that fails is not decided on.
func (c *Call) Normalize() error {
	if !c.Kind.Valid() {
		return &InvalidError{Field: "kind", Problem: "is missing: use native, external or dispatch"}
	}
	if err := c.checkNames(); err != nil {
		return err
	}
	args, err := Canonical(c.Args)
	if err != nil {
		return err
	}
	c.Args = args
	if c.Kind == Native {
		if op, ok := LookupOperation(c.Operation); ok {
			c.Operation = op.Name
		}
		return c.foldElement()
	}
	if c.Kind == External {
		return c.foldHostTool()
	}
	return nil
}

func (c *Call) checkNames() error {
	names := []Field{
		{"surface", c.Surface},
		{"operation", c.Operation},
		{"principal.agent", c.Principal.Agent},
		{"principal.session", c.Principal.Session},
		{"principal.path", c.Principal.Path},
		{"element_type", c.ElementType},
		{"parent", c.Parent},
		{"host_id", c.HostID},
		{"correlation", c.Correlation},
	}
	for _, n := range names {
		if len(n.Value) > maxName {
			return &InvalidError{Field: n.Name, Problem: fmt.Sprintf("is longer than %d bytes", maxName)}
		}
		if !utf8.ValidString(n.Value) || strings.ContainsFunc(n.Value, isControl) {
			return &InvalidError{Field: n.Name, Problem: "holds control characters or is not valid UTF-8"}
		}
	}
	if c.Operation == "" {
		return &InvalidError{Field: "operation", Problem: "is missing: name what is to be done"}
	}
	if strings.ContainsRune(c.Dir, 0) || strings.ContainsRune(c.Note, 0) {
		return &InvalidError{Field: "dir", Problem: "holds a NUL byte"}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// foldElement takes the element's type and name from wherever the caller put
// them, so that everything after sees one field for each: scope restrictions,
// the digest, and whoever performs the call. Two places that disagree are
// refused.
func (c *Call) foldElement() error {
	c.ElementType = SingularType(c.ElementType)
	for _, spelling := range []string{"element_type", "elementType", "type"} {
		v, ok := StringArg(c.Args, spelling)
		t := SingularType(v)
		if !ok || spelling == "type" && !elementTypes[t] {
			continue // a parameter that happens to be called type
		}
		if c.ElementType != "" && c.ElementType != t {
			return &InvalidError{Field: "element_type", Problem: fmt.Sprintf("is given twice with different values (%q and %q)", c.ElementType, t)}
		}
		c.ElementType = t
		if err := c.dropArg(spelling); err != nil {
			return err
		}
	}
	return c.foldName()
}

// foldName writes every spelling of an element's name as "name".
func (c *Call) foldName() error {
	for _, spelling := range []string{"element_name", "elementName"} {
		v, ok := StringArg(c.Args, spelling)
		if !ok {
			continue
		}
		if name, ok := StringArg(c.Args, "name"); ok && name != v {
			return &InvalidError{Field: "name", Problem: fmt.Sprintf("is given twice with different values (%q and %q)", name, v)}
		}
		if err := c.dropArg(spelling); err != nil {
			return err
		}
		if err := c.setArg("name", v); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) dropArg(name string) (err error) {
	c.Args, err = withoutMember(c.Args, name)
	return err
}

// setArg gives the arguments a member, in place of one of that name.
func (c *Call) setArg(name, value string) error {
	rest, err := withoutMember(c.Args, name)
	if err != nil {
		return err
	}
	k, _ := jsontext.AppendQuote(nil, name) // both were read as valid UTF-8
	v, _ := jsontext.AppendQuote(nil, value)
	member := append(append(append([]byte("{"), k...), ':'), v...)
	if len(rest) > 2 {
		member = append(member, ',')
	}
	c.Args, err = Canonical(append(member, rest[1:]...))
	return err
}

// elementTypes are the kinds of element, by their singular name.
var elementTypes = map[string]bool{
	"persona": true, "skill": true, "template": true,
	"agent": true, "memory": true, "ensemble": true,
}

// ElementTypes lists the kinds of element by their singular names.
func ElementTypes() []string {
	return []string{"agent", "ensemble", "memory", "persona", "skill", "template"}
}

// SingularType folds the plural spelling of an element type to the singular.
func SingularType(t string) string {
	if t == "memories" {
		return "memory"
	}
	if s := strings.TrimSuffix(t, "s"); elementTypes[s] {
		return s
	}
	return t
}

// Digest is the identity of what a person approves.
type Digest [sha256.Size]byte

// IsZero reports whether d is no digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a hexadecimal digest.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*sha256.Size {
		return fmt.Errorf("a digest has %d hexadecimal digits, this has %d", 2*sha256.Size, len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// Digest hashes everything that reaches the effect and everyone it acts for.
// Two calls with the same digest do the same thing for the same session; the
// id, the time and the free-text note are left out, so that a repeated call
// finds its approval. Call it on a normalised call.
func (c *Call) Digest() Digest {
	h := sha256.New()
	write(h, "gatehouse/call/1")
	write(h, c.Kind.String())
	write(h, c.Surface)
	write(h, c.Principal.Agent)
	write(h, c.Principal.Session)
	write(h, c.Principal.Path)
	write(h, c.Operation)
	write(h, c.ElementType)
	write(h, string(c.Args))
	write(h, c.Dir)
	writeLen(h, len(c.Forward))
	for _, f := range c.Forward {
		write(h, f.Name)
		write(h, f.Value)
	}
	var d Digest
	h.Sum(d[:0])
	return d
}

// write hashes a field with its length in front, so that no two lists of
// fields run together to the same bytes.
func write(h hash.Hash, s string) {
	writeLen(h, len(s))
	h.Write([]byte(s))
}

func writeLen(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
