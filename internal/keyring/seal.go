package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// ErrSealed says that sealed bytes were not sealed with this keyring, for this
// purpose, or were changed since.
var ErrSealed = errors.New("the sealed value cannot be opened")

const saltSize = 32

// derive makes a key of its own for each use of the sealing key.
func (k *Keyring) derive(context string) []byte {
	h := hmac.New(sha256.New, k.seal[:])
	h.Write([]byte("gatehouse/seal/1\x00" + context))
	return h.Sum(nil)
}

// aead derives a fresh key per message from its salt, so that no number of
// messages wears out a nonce.
func (k *Keyring) aead(salt []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.derive("message\x00" + string(salt)))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal encrypts plain for one purpose, such as "request" with the request's
// id; Open needs the same words, so that sealed values cannot change places.
func (k *Keyring) Seal(purpose string, plain []byte) ([]byte, error) {
	sealed := make([]byte, saltSize, saltSize+len(plain)+16)
	if _, err := io.ReadFull(k.random, sealed); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	a, err := k.aead(sealed)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return a.Seal(sealed, make([]byte, a.NonceSize()), plain, []byte(purpose)), nil
}

// Open decrypts what Seal made for the same purpose.
func (k *Keyring) Open(purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < saltSize {
		return nil, ErrSealed
	}
	a, err := k.aead(sealed[:saltSize])
	if err != nil {
		return nil, ErrSealed
	}
	plain, err := a.Open(nil, make([]byte, a.NonceSize()), sealed[saltSize:], []byte(purpose))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}
