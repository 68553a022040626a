package keyring

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"
)

// Kind is the prefix that says what a secret is for.
type Kind string

// The kinds of secret the gate hands out.
const (
	// Credential is an approver's: it answers requests.
	Credential Kind = "gha_"
	// AgentToken is an agent's: it asks, and never answers.
	AgentToken Kind = "ghg_"
	// SignInLink is good for one sign-in to the console.
	SignInLink Kind = "ghl_"
	// Cookie keeps a console signed in.
	Cookie Kind = "ghc_"
)

// letters spell secrets and ids: no padding, no upper case, nothing a
// double-click would split.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const secretBytes = 32

// Secret is a freshly made secret. It prints as its prefix only, so that it
// does not end in a log by accident; Reveal is for the one place that shows it.
type Secret struct{ text string }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return s.text }

// String hides all but the kind.
func (s Secret) String() string {
	kind, _, _ := strings.Cut(s.text, "_")
	return kind + "_…"
}

// GoString hides as String does.
func (s Secret) GoString() string { return s.String() }

// Hash is what is kept of a secret. The secrets have 256 bits of randomness,
// so nobody can search for one that fits; a slow hash, which protects short
// passwords from such a search, would only slow us down.
type Hash [sha256.Size]byte

// Mint makes a secret and its hash.
func Mint(kind Kind, random io.Reader) (Secret, Hash, error) {
	var raw [secretBytes]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return Secret{}, Hash{}, fmt.Errorf("make a secret: %w", err)
	}
	s := Secret{text: string(kind) + letters.EncodeToString(raw[:])}
	return s, sha256.Sum256([]byte(s.text)), nil
}

// HashOf returns the hash of a secret of one kind; ok is false for anything
// that is not such a secret by its form, other kinds included.
func HashOf(kind Kind, secret string) (h Hash, ok bool) {
	body, ok := strings.CutPrefix(secret, string(kind))
	if !ok || len(body) != letters.EncodedLen(secretBytes) {
		return h, false
	}
	if _, err := letters.DecodeString(body); err != nil {
		return h, false
	}
	return sha256.Sum256([]byte(secret)), true
}

// NewTimedID is [NewID] for what there is very much of: the time comes first, so that names made one after the other lie
// beside each other in an index, and a batch of rows changes one page of it and not as many as it has rows.
func NewTimedID(prefix string, at time.Time, random io.Reader) (string, error) {
	var raw [15]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(at.UnixMilli())<<20) // 40 bits of sixteen milliseconds each, 80 random ones
	if _, err := io.ReadFull(random, raw[5:]); err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return prefix + letters.EncodeToString(raw[:]), nil
}

// NewID makes a short random name: 80 bits, enough that two never meet and
// short enough to be typed.
func NewID(prefix string, random io.Reader) (string, error) {
	var raw [10]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return prefix + letters.EncodeToString(raw[:]), nil
}
