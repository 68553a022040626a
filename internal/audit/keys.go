package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// The names of the key files in the data directory.
const (
	privateKeyFile = "audit.key"
	publicKeyFile  = "audit.pub"
)

// Keys sign checkpoints.
type Keys struct {
	signer note.Signer
	public string
}

// Public is the verifier key, in the format of sumdb/note: what a verifier needs, and nothing to hide.
func (k *Keys) Public() string { return k.public }

// LoadOrCreate reads the signing key in dir, or makes one there, readable by its owner only. The public key lies next
// to it for whoever wants to verify. Nodes that share a log may share a key or have one each.
func LoadOrCreate(dir string) (*Keys, error) {
	path := filepath.Join(dir, privateKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	if err := private(path); err != nil {
		return nil, err
	}
	return parseKeys(strings.TrimSpace(string(text)))
}

func create(dir, path string) (*Keys, error) {
	name := "gatehouse-" + strings.ToLower(rand.Text()[:8]) // tells keys apart in a list of verifiers
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := writeNew(path, secret, 0o600); err != nil {
		return nil, fmt.Errorf("write the signing key: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, publicKeyFile), []byte(public+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("write the public key: %w", err)
	}
	return parseKeys(secret)
}

// writeNew never overwrites: a key that is lost takes the proof of everything it signed with it.
func writeNew(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// private refuses a key that others can read: what it signed would prove nothing.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("the signing key %s is open to others (mode %04o): chmod 600 it, or replace it if they may "+
			"have read it", path, mode)
	}
	return nil
}

// parseKeys derives the public half, so that a swapped public file cannot mislead us about our own key.
func parseKeys(secret string) (*Keys, error) {
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	parts := strings.SplitN(secret, "+", 5) // PRIVATE+KEY+name+hash+data, and data may have a + of its own
	data, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(data) != 1+ed25519.SeedSize { // the first byte names the algorithm
		return nil, errors.New("the signing key is not an ed25519 key")
	}
	key := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	public, err := note.NewEd25519VerifierKey(signer.Name(), key)
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	return &Keys{signer, public}, nil
}

// parseVerifiers reads public keys, one per line.
func parseVerifiers(text string) (note.Verifiers, error) {
	var all []note.Verifier
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		v, err := note.NewVerifier(line)
		if err != nil {
			return nil, fmt.Errorf("public key %q: %w", line, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, errors.New("no public key was given")
	}
	return note.VerifierList(all...), nil
}
