package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	keySize   = 32
	macFile   = "mac.key"
	sealFile  = "seal.key"
	boundFile = "database"
)

// ErrPermissions says that others than the gate's user could have read or
// replaced the keys.
var ErrPermissions = errors.New("the key directory is open to others")

// Keyring is the pair of keys. It is immutable and safe for concurrent use.
type Keyring struct {
	dir    string
	mac    [keySize]byte
	seal   [keySize]byte
	random io.Reader
}

// Options change where randomness comes from; nil is valid.
type Options struct {
	// Random replaces crypto/rand, for tests.
	Random io.Reader
}

func (o *Options) random() io.Reader {
	if o == nil || o.Random == nil {
		return rand.Reader
	}
	return o.Random
}

// Load reads the keys in dir. Where neither the directory nor a key exists
// they are created; a directory with one of the two keys is refused, because
// a new one would silently void what the other protects.
func Load(dir string, opts *Options) (*Keyring, error) {
	k := &Keyring{dir: dir, random: opts.random()}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("key directory: %w", err)
	}
	if err := private(dir, true); err != nil {
		return nil, err
	}
	mac, errMAC := readKey(dir, macFile)
	seal, errSeal := readKey(dir, sealFile)
	if errors.Is(errMAC, fs.ErrNotExist) && errors.Is(errSeal, fs.ErrNotExist) {
		return k, k.create()
	}
	if err := errors.Join(errMAC, errSeal); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	k.mac, k.seal = mac, seal
	return k, nil
}

func (k *Keyring) create() error {
	for _, key := range []struct {
		name string
		to   *[keySize]byte
	}{{macFile, &k.mac}, {sealFile, &k.seal}} {
		if _, err := io.ReadFull(k.random, key.to[:]); err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		if err := writeFile(k.dir, key.name, hex.EncodeToString(key.to[:])+"\n"); err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
	}
	return nil
}

// writeFile makes a file appear whole and durable, or not at all.
func writeFile(dir, name, text string) error {
	tmp, err := os.CreateTemp(dir, "."+name+"-*") // 0600 by contract
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(text)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readKey(dir, name string) (key [keySize]byte, err error) {
	path := filepath.Join(dir, name)
	if err := private(path, false); err != nil {
		return key, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return key, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != keySize {
		return key, fmt.Errorf("%s does not hold %d bytes in hexadecimal", name, keySize)
	}
	copy(key[:], raw)
	return key, nil
}

// Fingerprint names the keys without giving them away.
func (k *Keyring) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse/keyring/1" + string(k.Row("fingerprint").Sum()) + string(k.derive("fingerprint"))))
	return hex.EncodeToString(sum[:16])
}

// Random is where the keyring and those who build on it take randomness from.
func (k *Keyring) Random() io.Reader { return k.random }
