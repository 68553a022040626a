package approval

import (
	"crypto/hmac"
	"crypto/sha1" // #nosec G505: RFC 6238's default, the only one every authenticator reads; HMAC does not need collision resistance
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"
)

const (
	totpPeriod = 30 // seconds per step
	totpSecret = 20 // bytes, the length of the hash
	// totpSkew is how many steps a clock may be off, either way.
	totpSkew = 1
)

// totpStepAt is the number of the time step.
func totpStepAt(t time.Time) int64 { return t.Unix() / totpPeriod }

// totpCode is the six digits of RFC 6238 for one step.
func totpCode(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0x0f
	n := binary.BigEndian.Uint32(sum[offset:]) & 0x7fffffff
	return fmt.Sprintf("%06d", n%1_000_000)
}

// totpMatch finds the step a code is right for, near now and after last, so
// that no step is taken twice. It compares all candidates whatever it finds.
func totpMatch(secret []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	at := totpStepAt(now)
	for s := at - totpSkew; s <= at+totpSkew; s++ {
		if hmac.Equal([]byte(totpCode(secret, s)), []byte(code)) && s > last && !ok {
			step, ok = s, true
		}
	}
	return step, ok
}

// totpURI is what authenticators read from a QR code.
func totpURI(approver string, secret []byte) string {
	q := url.Values{}
	q.Set("secret", base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
	q.Set("issuer", "Gatehouse")
	q.Set("algorithm", "SHA1")
	q.Set("digits", "6")
	q.Set("period", fmt.Sprint(totpPeriod))
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/Gatehouse:" + approver, RawQuery: q.Encode()}
	return u.String()
}
