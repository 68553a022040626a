package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Kind is what happened to a path.
type Kind string

// The kinds.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Change is one entry of a layer.
type Change struct {
	Path string `json:"path"` // relative to the root, slash-separated
	Kind Kind   `json:"kind"`
	Type string `json:"type"`           // file, dir or link
	Mode uint32 `json:"mode,omitempty"` // permission bits of a file
	Size int64  `json:"size"`
	Hash string `json:"hash,omitempty"` // of the new content
	Base string `json:"base,omitempty"` // identity of what it replaces; "" if nothing was there
	Link string `json:"link,omitempty"` // target of a link

	Protected bool   `json:"protected,omitempty"` // needs to be accepted by name
	Refused   string `json:"refused,omitempty"`   // why it can never be accepted
}

// Set is a sealed layer.
type Set struct {
	Root, Layer string
	RootID      string // device and inode of the root when it was sealed
	About       About
	Changes     []Change
	Hash        string `json:"-"` // over all of the above
}

// About says where changes come from.
type About struct {
	Command []string
	At      time.Time
}

const manifest = "manifest.json"

// ErrChanged: the layer, or a file it would replace, is not what was sealed.
var ErrChanged = errors.New("changes: not what was sealed")

// Seal writes down what a layer holds. Call it when the run has returned, that
// is, when no process of it is left.
func Seal(root, layer string, about About) (*Set, error) {
	s, err := read(root, layer)
	if err != nil {
		return nil, err
	}
	s.About = about
	raw, err := s.encode()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(layer, manifest), raw, 0o400); err != nil {
		return nil, err
	}
	// Closed for ordinary mistakes; the hash is what is relied on.
	return s, errors.Join(os.Chmod(filepath.Join(layer, "upper"), 0o500), os.Chmod(layer, 0o500))
}

// Open reads a sealed layer again and refuses one that is not as it was sealed.
func Open(layer string) (*Set, error) {
	raw, err := os.ReadFile(filepath.Join(layer, manifest))
	if err != nil {
		return nil, err
	}
	var s Set
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	s.Layer = layer
	now, err := read(s.Root, layer)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	s.Hash = hex.EncodeToString(sum[:])
	if !sameLayer(s.Changes, now.Changes) {
		return nil, fmt.Errorf("%w: the layer %s", ErrChanged, layer)
	}
	return &s, nil
}

// sameLayer compares everything but the base, which Accept looks at itself.
func sameLayer(a, b []Change) bool {
	key := func(list []Change) map[string]Change {
		m := map[string]Change{}
		for _, c := range list {
			// Whether something counts as added or modified depends on the base.
			if c.Kind == Modified {
				c.Kind = Added
			}
			c.Base, c.Refused = "", ""
			m[c.Path] = c
		}
		return m
	}
	// Deletions and directories are listed only where the base differs.
	based := func(c Change) bool { return c.Kind == Deleted || c.Type == "dir" }
	x, y := key(a), key(b)
	for p, c := range x {
		if other, ok := y[p]; ok && other != c || !ok && !based(c) {
			return false
		}
	}
	for p, c := range y {
		if _, ok := x[p]; !ok && !based(c) {
			return false
		}
	}
	return true
}

func (s *Set) encode() ([]byte, error) {
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	s.Hash = hex.EncodeToString(sum[:])
	return raw, nil
}

// judge marks what needs a person's word for itself and what nobody can give.
func judge(c *Change) {
	c.Protected = sandbox.ProtectedName(c.Path) || c.Type == "link" && sandbox.ProtectedLink(c.Path)
	switch {
	case c.Refused != "":
	case !utf8.ValidString(c.Path) || strings.ContainsFunc(c.Path, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		c.Refused = "its name holds invisible characters"
	case c.Type == "link" && c.Kind != Deleted && leadsOut(c.Path, c.Link):
		c.Refused = "a link that leads out of the root"
	}
}

// leadsOut reports whether a link's target is not below the root.
func leadsOut(at, target string) bool {
	if path.IsAbs(target) || target == "" {
		return true
	}
	clean := path.Join(path.Dir(at), target)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// List prints one line per change. Names are quoted when they are not plain.
func (s *Set) List(w io.Writer) error {
	for _, c := range s.Changes {
		mark := ""
		switch {
		case c.Refused != "":
			mark = "  refused: " + c.Refused
		case c.Protected:
			mark = "  protected: accept it by name"
		}
		if _, err := fmt.Fprintf(w, "%-8s %-4s %s%s\n", c.Kind, c.Type, plain(c.Path), mark); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "layer %s\n", s.Hash)
	return err
}

func plain(name string) string {
	q := fmt.Sprintf("%q", name)
	if q == `"`+name+`"` {
		return name
	}
	return q
}

// maxDiff bounds what is compared line by line.
const maxDiff = 1 << 20

// Show writes a unified diff of the given paths, all if none is given.
func (s *Set) Show(w io.Writer, paths ...string) error {
	want := map[string]bool{}
	for _, p := range paths {
		want[p] = true
	}
	for _, c := range s.Changes {
		if len(paths) > 0 && !want[c.Path] {
			continue
		}
		text, err := s.show(c)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) show(c Change) (string, error) {
	name := plain(c.Path)
	head := fmt.Sprintf("%s %s %s", c.Kind, c.Type, name)
	if c.Type == "file" && c.Kind != Deleted {
		head += fmt.Sprintf(" mode %04o", c.Mode)
	}
	if c.Refused != "" {
		head += ", refused: " + c.Refused
	}
	switch {
	case c.Type == "link":
		return fmt.Sprintf("%s -> %q\n", head, c.Link), nil
	case c.Type != "file" || c.Refused != "":
		return head + "\n", nil
	}
	var before, after []byte
	var err error
	if c.Kind != Added {
		if before, err = contentOf(s.Root, c.Path); err != nil {
			return "", err
		}
	}
	if c.Kind != Deleted {
		if after, err = contentOf(filepath.Join(s.Layer, "upper"), c.Path); err != nil {
			return "", err
		}
	}
	if len(before)+len(after) > maxDiff || !text(before) || !text(after) {
		return fmt.Sprintf("%s, %d bytes, sha256 %s\n", head, c.Size, c.Hash), nil
	}
	return head + "\n" + string(diff.Diff("a/"+name, before, "b/"+name, after)), nil
}

// text reports whether content can be shown as it is: a terminal would obey
// control characters instead of printing them.
func text(b []byte) bool {
	for _, r := range string(b) {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return true
}

// Discard deletes the layer.
func (s *Set) Discard() error { return remove(s.Layer) }

func sortChanges(list []Change) {
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
}

// Acceptance is what a person decided, on the Set with this very hash.
type Acceptance struct {
	Hash string
	// Paths to take over; if nothing at all is named, that is all that are
	// neither protected nor refused.
	Paths []string
	// Protected are protected paths, each of which was looked at.
	Protected []string
}

// choose picks the changes to apply and refuses the whole Acceptance if any
// of them must not be.
func (s *Set) choose(a Acceptance) ([]Change, error) {
	if a.Hash == "" || a.Hash != s.Hash {
		return nil, fmt.Errorf("%w: the acceptance is for another layer", ErrChanged)
	}
	named := map[string]bool{}
	for _, p := range append(append([]string{}, a.Paths...), a.Protected...) {
		named[p] = true
	}
	byName := map[string]bool{}
	for _, p := range a.Protected {
		byName[p] = true
	}
	var out []Change
	var errs []error
	for _, c := range s.Changes {
		wanted := named[c.Path] || len(a.Paths)+len(a.Protected) == 0 && c.Refused == "" && !c.Protected
		delete(named, c.Path)
		switch {
		case !wanted:
		case c.Refused != "":
			errs = append(errs, fmt.Errorf("%s: %s", plain(c.Path), c.Refused))
		case c.Protected && !byName[c.Path]:
			errs = append(errs, fmt.Errorf("%s: protected, and not accepted by name", plain(c.Path)))
		default:
			out = append(out, c)
		}
	}
	for p := range named {
		errs = append(errs, fmt.Errorf("%s: not in the layer", plain(p)))
	}
	return out, errors.Join(errs...)
}
