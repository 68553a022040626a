package manifest

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Version is the format this program writes.
const Version = 1

// Manifest is what a program's agents and tools may touch.
type Manifest struct {
	Version int    `json:"gatehouseManifest"`
	SHA256  string `json:"sha256,omitzero"`
	// Subject names the program.
	Subject string `json:"subject"`
	// EnforcePolicies is the switch of the argument gate.
	EnforcePolicies bool `json:"enforcePolicies"`
	// Isolation is what the agents run in, as whoever accepted the manifest
	// states: none, container or vm.
	Isolation string          `json:"isolation,omitzero"`
	Agents    []declare.Agent `json:"agents,omitzero"`
	Tools     []Tool          `json:"tools"`
	Servers   []Server        `json:"mcpServers,omitzero"`
	// PolicySHA256 is the policy in force, of a running gate.
	PolicySHA256 string     `json:"policySHA256,omitzero"`
	Signature    *Signature `json:"signature,omitzero"`
}

// Tool is a declared tool with what was derived from it.
type Tool struct {
	declare.Tool `json:",inline"`
	// SchemaSHA256 is the digest of the input schema's canonical form.
	SchemaSHA256 string `json:"schemaSHA256,omitzero"`
}

// Server is an MCP server with the definitions that were accepted.
type Server struct {
	Name  string `json:"name"`
	Tools []Pin  `json:"tools,omitzero"`
	// InstructionsSHA256 is the digest of what the server tells the model.
	InstructionsSHA256 string `json:"instructionsSHA256,omitzero"`
	// Command and URL are how it is started or reached, Environment the names
	// of the variables it gets.
	Command     []string `json:"command,omitzero"`
	URL         string   `json:"url,omitzero"`
	Environment []string `json:"environment,omitzero"`
	// Workspace is what relative paths and globs of its tools are bound to.
	Workspace string `json:"workspace,omitzero"`
	// Confined says that it runs in the sandbox, HasCredential that it gets a
	// credential, which is never written.
	Confined      bool `json:"confined,omitzero"`
	HasCredential bool `json:"hasCredential,omitzero"`
}

// Pin is a tool definition by its digest.
type Pin struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Signature is an Ed25519 signature over the hash.
type Signature struct {
	PublicKey string `json:"publicKey"`
	Value     string `json:"value"`
}

// New makes the manifest of what is declared. The order in which things were
// declared does not matter.
func New(subject string, set *declare.Set, servers ...Server) (*Manifest, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	return Gate(subject, set, "", servers...)
}

// Gate makes the manifest of a running gate, whose files were checked one by
// one: several of them may declare a tool, and all of it holds.
func Gate(subject string, set *declare.Set, policy string, servers ...Server) (*Manifest, error) {
	m := &Manifest{Version: Version, Subject: subject, EnforcePolicies: !set.Inert, Isolation: set.Isolation, Agents: slices.Clone(set.Agents), Servers: slices.Clone(servers), PolicySHA256: policy}
	for _, t := range set.Tools {
		entry := Tool{Tool: t}
		if len(t.Schema) > 0 {
			canonical := jsontext.Value(slices.Clone(t.Schema))
			if err := canonical.Canonicalize(); err != nil {
				return nil, fmt.Errorf("tool %s: schema: %w", t.Name, err)
			}
			sum := sha256.Sum256(canonical)
			entry.Schema, entry.SchemaSHA256 = []byte(canonical), hex.EncodeToString(sum[:])
		}
		entry.Capabilities, entry.Waivers, entry.Parts = sorted(t.Capabilities), sorted(t.Waivers), sorted(t.Parts)
		entry.Constraints.OnlyAfter = sorted(t.Constraints.OnlyAfter)
		m.Tools = append(m.Tools, entry)
	}
	slices.SortFunc(m.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i := range m.Agents {
		a := &m.Agents[i]
		a.Tools, a.Approvals, a.Redact = sorted(a.Tools), sorted(a.Approvals), sorted(a.Redact)
		if a.Grants != nil {
			a.Grants = &declare.Grants{Allow: sorted(a.Grants.Allow), Confirm: sorted(a.Grants.Confirm), ConfirmWith: a.Grants.ConfirmWith}
		}
	}
	slices.SortFunc(m.Agents, func(a, b declare.Agent) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(m.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	for i := range m.Servers {
		m.Servers[i].Tools, m.Servers[i].Environment = slices.Clone(m.Servers[i].Tools), sorted(m.Servers[i].Environment)
		slices.SortFunc(m.Servers[i].Tools, func(a, b Pin) int { return cmp.Compare(a.Name, b.Name) })
	}
	sum, err := m.sum()
	if err != nil {
		return nil, err
	}
	m.SHA256 = hex.EncodeToString(sum)
	return m, nil
}

func sorted(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

// sum hashes the canonical form of everything but the hash and the signature.
func (m *Manifest) sum() ([]byte, error) {
	bare := *m
	bare.SHA256, bare.Signature = "", nil
	text, err := json.Marshal(&bare, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(v)
	return sum[:], nil
}

// ErrHash is the error of a manifest that was changed after it was made.
var ErrHash = errors.New("the manifest does not have the hash it states: it was edited after it was generated")

// ErrSignature is the error of a manifest whose signature does not fit.
var ErrSignature = errors.New("the manifest's signature does not fit")

// Parse reads a manifest as JSON and checks its hash, and its signature if it
// has one. Sections that an older version did not have are unspecified.
func Parse(text []byte) (*Manifest, error) {
	m := &Manifest{EnforcePolicies: true}
	if err := json.Unmarshal(text, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	if m.Version < 1 || m.Version > Version {
		return nil, fmt.Errorf("manifest version %d: this program reads 1 to %d", m.Version, Version)
	}
	sum, err := m.sum()
	if err != nil {
		return nil, err
	}
	if m.SHA256 != hex.EncodeToString(sum) {
		return nil, ErrHash
	}
	if m.Signature != nil {
		if _, err := m.signer(sum); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// signedText is what a signature is made over: the hash, with words around it
// that keep the key's other signatures from fitting here.
func signedText(sum []byte) []byte {
	return append([]byte("gatehouse permission manifest v1\x00"), sum...)
}

// Sign signs the manifest.
func (m *Manifest) Sign(key ed25519.PrivateKey) error {
	sum, err := m.sum()
	if err != nil {
		return err
	}
	m.Signature = &Signature{
		PublicKey: base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)),
		Value:     base64.StdEncoding.EncodeToString(ed25519.Sign(key, signedText(sum))),
	}
	return nil
}

// SignedBy reports whether the manifest carries a good signature of the key.
func (m *Manifest) SignedBy(key ed25519.PublicKey) bool {
	sum, err := m.sum()
	if err != nil || m.Signature == nil {
		return false
	}
	by, err := m.signer(sum)
	return err == nil && by.Equal(key)
}

func (m *Manifest) signer(sum []byte) (ed25519.PublicKey, error) {
	key, errKey := base64.StdEncoding.DecodeString(m.Signature.PublicKey)
	value, errValue := base64.StdEncoding.DecodeString(m.Signature.Value)
	if errKey != nil || errValue != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, signedText(sum), value) {
		return nil, ErrSignature
	}
	return key, nil
}

// JSON returns the manifest as it is kept: indented, keys in canonical order.
func (m *Manifest) JSON() ([]byte, error) {
	text, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		return nil, err
	}
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

// YAML returns the same for reading. It is a view: only JSON is read back.
func (m *Manifest) YAML() ([]byte, error) {
	text, err := m.JSON()
	if err != nil {
		return nil, err
	}
	// JSON is YAML; decoding it to a node keeps the order of the keys.
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, err
	}
	blockStyle(&n)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func blockStyle(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = 0
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}
