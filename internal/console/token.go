package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// keyring signs what the console gives to a browser and wants back unchanged.
type keyring struct{ key []byte }

// mac signs fields for one purpose; each field is bound with its length.
func (k keyring) mac(purpose string, fields ...string) []byte {
	h := hmac.New(sha256.New, k.key)
	for _, f := range append([]string{purpose}, fields...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(f)))
		h.Write(n[:])
		h.Write([]byte(f))
	}
	return h.Sum(nil)
}

// proof is the half of a sign-in that is not a cookie. Browsers send cookies
// to every port of a host, so a server that an agent started on another port
// of this machine sees them; what a page keeps in its own storage it cannot
// see. Acts need both.
func (k keyring) proof(cookie string) string {
	return base64.RawURLEncoding.EncodeToString(k.mac("proof", cookie))
}

func (k keyring) proves(cookie, proof string) bool {
	return hmac.Equal([]byte(k.proof(cookie)), []byte(proof))
}

// shown says that a request with this digest was rendered at t. It travels
// through the form, so that the server knows how long it was on screen.
func (k keyring) shown(id string, d call.Digest, t time.Time) string {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(t.UnixNano()))
	return base64.RawURLEncoding.EncodeToString(append(at[:], k.mac("shown", id, string(d[:]), string(at[:]))...))
}

// shownAt returns when the request was rendered, false for anything this
// console did not sign for exactly this request and digest.
func (k keyring) shownAt(token, id string, d call.Digest) (time.Time, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 8+sha256.Size {
		return time.Time{}, false
	}
	if !hmac.Equal(raw[8:], k.mac("shown", id, string(d[:]), string(raw[:8]))) {
		return time.Time{}, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(raw))), true
}

// flash is a message to show on the next page.
type flash struct {
	// Tone is allow, deny or "" for plain news.
	Tone string
	Text string
}

// sealFlash signs a flash for its cookie: whoever else can set cookies for
// this host must not be able to make the console say something.
func (k keyring) sealFlash(f flash) string {
	body := f.Tone + "\n" + f.Text
	return base64.RawURLEncoding.EncodeToString(append(k.mac("flash", body), body...))
}

func (k keyring) openFlash(value string) (flash, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(raw) < sha256.Size {
		return flash{}, false
	}
	body := string(raw[sha256.Size:])
	if !hmac.Equal(raw[:sha256.Size], k.mac("flash", body)) {
		return flash{}, false
	}
	tone, text, _ := strings.Cut(body, "\n")
	return flash{Tone: tone, Text: text}, true
}
