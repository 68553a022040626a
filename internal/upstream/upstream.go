package upstream

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Topic is where changes of upstreams are announced.
const Topic = "upstream"

// Error is a refusal with its reason.
type Error struct {
	text   string
	status int
}

// Error returns the reason.
func (e *Error) Error() string { return e.text }

// Public returns the reason, which may be shown.
func (e *Error) Public() string { return e.text }

// HTTPStatus returns the status that fits.
func (e *Error) HTTPStatus() int { return e.status }

func invalid(format string, args ...any) *Error {
	return &Error{text: fmt.Sprintf(format, args...), status: http.StatusBadRequest}
}

// ErrNotFound says that there is no such upstream, or nothing that waits.
var ErrNotFound = &Error{text: "there is no such upstream, or nothing of it waits", status: http.StatusNotFound}

// ErrForged says that a row was changed by something else than the gate.
var ErrForged = errors.New("an upstream's row does not bear the gate's signature: the database was edited")

// Spec says how an upstream is reached and handled.
type Spec struct {
	// Command starts a server that speaks over its standard input and output.
	Command []string `json:"command,omitzero"`
	// Dir is its working directory, Env its variables beyond the usual few, as
	// NAME=value. Neither is the place for a secret.
	Dir string   `json:"dir,omitzero"`
	Env []string `json:"env,omitzero"`
	// Workspace is what relative paths mean to a server at a URL; a command's
	// is its working directory. It is an approver's word: what a client says
	// about roots and directories does not count here.
	Workspace string `json:"workspace,omitzero"`
	// URL is the address of a server that speaks HTTP; SSE says that it speaks
	// the older HTTP with server-sent events.
	URL string `json:"url,omitzero"`
	SSE bool   `json:"sse,omitzero"`
	// CredentialEnv is the variable in which a process gets its credential, and
	// CredentialHeader the header for a server at a URL (Authorization, as a
	// bearer token, if "").
	CredentialEnv    string `json:"credential_env,omitzero"`
	CredentialHeader string `json:"credential_header,omitzero"`
	// Confined runs the process in the sandbox, with no more than Read, Write
	// and Net name.
	Confined bool     `json:"confined,omitzero"`
	Read     []string `json:"read,omitzero"`
	Write    []string `json:"write,omitzero"`
	Net      []string `json:"net,omitzero"`
	// Output says what happens to output in which content validation finds
	// something: flag, fence or hold; "" leaves it to the policy.
	Output string `json:"output,omitzero"`
}

// Entry is an upstream.
type Entry struct {
	Name    string    `json:"name"`
	Spec    Spec      `json:"spec"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by"`
}

// Own is the name of the gate's own tools among the upstreams.
const Own = "gatehouse"

var name = regexp.MustCompile(call.MCPServerName)

// CheckName refuses what cannot name an upstream.
func CheckName(s string) error {
	if !name.MatchString(s) || s == Own {
		return invalid("%q cannot name an upstream: up to 32 of a-z, 0-9 and -, beginning with a letter, and not %s", s, Own)
	}
	return nil
}

// Base is the directory that relative paths mean to the server, "" where that
// is not known: then they lie outside every relative glob. A link that was put
// in the directory's place makes it another than the one that was entered.
func (s *Spec) Base() string {
	dir := s.Dir + s.Workspace // never both
	if dir == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return ""
	}
	return dir
}

// Verify refuses a spec that makes no sense.
func (s *Spec) Verify() error {
	switch {
	case len(s.Command) > 0 && s.URL != "":
		return invalid("an upstream has a command or a URL, not both")
	case len(s.Command) == 0 && s.URL == "":
		return invalid("an upstream needs a command after -- or a --url")
	case s.Confined && s.URL != "":
		return invalid("only a process can be confined; what is at a URL runs elsewhere")
	case s.Workspace != "" && s.URL == "":
		return invalid("the workspace of a command is its working directory: use --cwd")
	case s.Dir != "" && s.URL != "":
		return invalid("what is at a URL has no working directory here: use --workspace")
	case s.Dir != "" && !filepath.IsAbs(s.Dir), s.Workspace != "" && !filepath.IsAbs(s.Workspace):
		return invalid("%q is relative, and the gate works elsewhere: name the directory from the root on", s.Dir+s.Workspace)
	case s.URL == "" && s.SSE:
		return invalid("server-sent events need a URL")
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return invalid("%q is not the address of an MCP server: use http:// or https://, without a password in it", s.URL)
		}
	}
	for _, e := range s.Env {
		if !strings.Contains(e, "=") {
			return invalid("%q is not a variable: write NAME=value", e)
		}
	}
	switch s.Output {
	case "", "flag", "fence", "hold":
		return nil
	}
	return invalid("%q is no way to handle output: use flag, fence or hold", s.Output)
}

// Registry keeps upstreams.
type Registry struct{ keys *keyring.Keyring }

// New makes a registry.
func New(keys *keyring.Keyring) *Registry { return &Registry{keys: keys} }

func (g *Registry) row(e *Entry, spec []byte) *keyring.Row {
	return g.keys.Row("upstream").Text(e.Name).Bytes(spec).Time(e.Added).Text(e.AddedBy)
}

// Add enters an upstream.
func (g *Registry) Add(tx *store.Tx, e Entry) error {
	if err := errors.Join(CheckName(e.Name), e.Spec.Verify()); err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	spec, err := json.Marshal(&e.Spec)
	if err != nil {
		return err
	}
	e.Added = now
	n, err := tx.Exec(`INSERT INTO upstream (name, spec, added, added_by, mac) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING`,
		e.Name, spec, keyring.Micros(now), e.AddedBy, g.row(&e, spec).Sum())
	if err == nil && n != 1 {
		return &Error{text: "there is an upstream " + e.Name + " already: remove it first", status: http.StatusConflict}
	}
	store.Notify(tx, Topic, e.Name)
	return err
}

// Remove takes an upstream out, with its pins and credentials.
func (g *Registry) Remove(tx *store.Tx, name string) error {
	n, err := tx.Exec(`DELETE FROM upstream WHERE name = $1`, name)
	if err != nil {
		return err
	}
	pins, err := tx.Exec(`DELETE FROM upstream_pin WHERE upstream = $1`, name)
	if err != nil {
		return err
	}
	if n+pins == 0 {
		return ErrNotFound
	}
	_, err = tx.Exec(`DELETE FROM upstream_credential WHERE upstream = $1`, name)
	store.Notify(tx, Topic, name)
	return err
}

// List returns all upstreams by name. One whose row was edited is an error.
func (g *Registry) List(tx *store.Tx) ([]Entry, error) {
	rows, err := tx.Query(`SELECT name, spec, added, added_by, mac FROM upstream ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		e, err := g.scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, *e)
	}
	return out, rows.Err()
}

// Get returns one upstream.
func (g *Registry) Get(tx *store.Tx, name string) (*Entry, error) {
	e, err := g.scan(tx.QueryRow(`SELECT name, spec, added, added_by, mac FROM upstream WHERE name = $1`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return e, err
}

func (g *Registry) scan(row interface{ Scan(...any) error }) (*Entry, error) {
	var e Entry
	var spec, mac []byte
	var added int64
	if err := row.Scan(&e.Name, &spec, &added, &e.AddedBy, &mac); err != nil {
		return nil, err
	}
	e.Added = keyring.Time(added)
	if !g.row(&e, spec).Is(mac) {
		return nil, fmt.Errorf("%s: %w", e.Name, ErrForged)
	}
	return &e, json.Unmarshal(spec, &e.Spec, json.RejectUnknownMembers(true))
}
