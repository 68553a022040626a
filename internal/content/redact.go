package content

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Redactor takes secrets out of what is stored or logged. It works by field name, by the shape of
// the value and by where a value stands in a text (URL, header, flag, assignment), and then removes
// every other occurrence of what it found. Redacting twice changes nothing. It is safe for use by
// several goroutines if its source of randomness is.
type Redactor struct {
	names map[string]bool
	rand  io.Reader
}

// RedactorConfig configures a Redactor.
type RedactorConfig struct {
	// Names are further field names whose values are secret. Case and separators do not matter.
	Names []string
	// Rand gives the salts of commitments. Without it, and when it fails, values are redacted all
	// the same but cannot be proved later.
	Rand io.Reader
}

// NewRedactor returns a Redactor.
func NewRedactor(cfg RedactorConfig) *Redactor {
	r := &Redactor{names: map[string]bool{}, rand: cfg.Rand}
	for _, n := range cfg.Names {
		r.names[bareField(n)] = true
	}
	return r
}

const saltSize = 16

// A Commitment binds a marker to the value it replaced without showing it. The salt keeps short
// values from being guessed; store it apart from the log if readers of the log must not try.
type Commitment struct {
	N       int    // the number in the marker
	Rule    string // what gave the value away
	Pointer string // of the JSON value it was in; empty for plain text
	Salt    [saltSize]byte
	Sum     [sha256.Size]byte
}

// Verify reports whether value is what the commitment was made for.
func (c Commitment) Verify(value string) bool {
	sum := commit(c.Salt, value)
	return subtle.ConstantTimeCompare(sum[:], c.Sum[:]) == 1
}

func commit(salt [saltSize]byte, value string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("gatehouse redaction 1\x00"))
	h.Write(salt[:])
	h.Write([]byte(value))
	return [sha256.Size]byte(h.Sum(nil))
}

// Text redacts a plain string.
func (r *Redactor) Text(s string) (string, []Commitment) {
	j := newRedaction(r)
	out, ok := j.settle(s, func(s string) (string, bool) { return j.repeats(j.text(s)) })
	if !ok {
		return j.whole(s)
	}
	return out, j.commits
}

// maxRounds bounds how often a text is redacted before it is given up and replaced whole.
const maxRounds = 6

// settle redacts until there is nothing left to redact: a marker may stand where another rule then
// sees a value. Only what comes out unchanged is an answer, which makes redaction idempotent.
func (j *redaction) settle(s string, round func(string) (string, bool)) (string, bool) {
	for range maxRounds {
		before := j.n
		out, ok := round(s)
		if !ok {
			return "", false
		}
		if out == s && j.n == before {
			return s, true
		}
		s = out
	}
	return "", false
}

// Value returns s as a value that slog writes redacted.
func (r *Redactor) Value(s string) slog.LogValuer { return redactedValue{r, s} }

type redactedValue struct {
	r *Redactor
	s string
}

// LogValue redacts when, and only when, the record is written.
func (v redactedValue) LogValue() slog.Value {
	out, _ := v.r.Text(v.s)
	return slog.StringValue(out)
}

// A Secret is a string that shows itself nowhere: not in logs, not with fmt, not as JSON.
type Secret string

const secretShown = "[redacted:secret:0]"

// String returns a marker.
func (Secret) String() string { return secretShown }

// GoString returns a marker.
func (Secret) GoString() string { return secretShown }

// Format writes a marker whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretShown) }

// LogValue returns a marker.
func (Secret) LogValue() slog.Value { return slog.StringValue(secretShown) }

// MarshalText returns a marker.
func (Secret) MarshalText() ([]byte, error) { return []byte(secretShown), nil }

// redaction is the work on one text or document.
type redaction struct {
	r       *Redactor
	commits []Commitment
	markers map[string]string // secret → marker
	secrets []string          // in the order found
	pointer string
	n       int
}

func newRedaction(r *Redactor) *redaction {
	return &redaction{r: r, markers: map[string]string{}}
}

// hide returns the marker for a secret, the same one each time.
func (j *redaction) hide(rule, value string) string {
	if m, ok := j.markers[value]; ok {
		return m
	}
	j.n++
	m := fmt.Sprintf("[redacted:%s:%d]", rule, j.n)
	j.markers[value] = m
	j.secrets = append(j.secrets, value)
	if j.r.rand != nil {
		c := Commitment{N: j.n, Rule: rule, Pointer: j.pointer}
		if _, err := io.ReadFull(j.r.rand, c.Salt[:]); err == nil {
			c.Sum = commit(c.Salt, value)
			j.commits = append(j.commits, c)
		}
	}
	return m
}

// whole redacts everything: the way out when the text cannot be taken apart.
func (j *redaction) whole(s string) (string, []Commitment) {
	all := newRedaction(j.r)
	return all.hide("unreadable", s), all.commits
}

var markerShape = regexp.MustCompile(`\[redacted:[a-z0-9-]{1,32}:[0-9]{1,9}\]`)

// isMarker reports whether s is a marker and nothing else.
func isMarker(s string) bool {
	loc := markerShape.FindStringIndex(s)
	return loc != nil && loc[0] == 0 && loc[1] == len(s)
}

// redactors looks for secrets in text. It shares the rules on token shapes with the scanner; where a
// secret is given away by its surroundings it has rules of its own, which need no proof that the
// value is random and which span the value alone.
var redactors = sync.OnceValue(func() *engine {
	var shapes []rule
	for _, r := range credentialRules() {
		switch r.name {
		case "credential.assignment", "credential.url", "credential.header", "credential.aws-secret":
		default:
			shapes = append(shapes, r)
		}
	}
	return newEngine(shapes, redactRules())
})

// text replaces the secrets that a string gives away.
func (j *redaction) text(s string) string {
	spans := secretSpans(s)
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	from := 0
	for _, sp := range spans {
		b.WriteString(s[from:sp.start])
		b.WriteString(j.hide(sp.rule, s[sp.start:sp.end]))
		from = sp.end
	}
	b.WriteString(s[from:])
	return b.String()
}

type secretSpan struct {
	start, end int
	rule       string
}

// secretSpans returns the secrets in s in order; overlapping ones are joined.
func secretSpans(s string) []secretSpan {
	st := newState(redactors(), &Options{MaxBytes: len(s) + 1})
	defer st.release()
	st.all = true
	st.load(s)
	var spans []secretSpan
	for _, f := range st.out {
		if f.Category == Limit {
			return []secretSpan{{0, len(s), "dense"}} // not looked at whole, so not shown at all
		}
		if f.Category == Credential && f.Start < f.End && !markerAround(s, f.Start, f.End) {
			spans = append(spans, secretSpan{f.Start, f.End, strings.TrimPrefix(f.Rule, "credential.")})
		}
	}
	slices.SortFunc(spans, func(a, b secretSpan) int {
		return cmp.Or(a.start-b.start, b.end-a.end, strings.Compare(a.rule, b.rule))
	})
	out := spans[:0]
	for _, sp := range spans {
		if n := len(out); n > 0 && sp.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, sp.end)
			continue
		}
		out = append(out, sp)
	}
	return out
}

// markerLength is the longest a marker can be.
const markerLength = len("[redacted::]") + 32 + 9

// markerAround reports whether s[start:end] lies within one marker.
func markerAround(s string, start, end int) bool {
	from := max(0, start-markerLength)
	open := strings.LastIndex(s[from:min(len(s), start+1)], "[")
	if open < 0 {
		return false
	}
	open += from
	loc := markerShape.FindStringIndex(s[open:min(len(s), open+markerLength)])
	return loc != nil && loc[0] == 0 && end <= open+loc[1]
}

const (
	minRepeat  = 6    // shorter secrets are not looked for elsewhere: they would be found in any word
	repeatKey  = 48   // bytes of a secret by which it is recognised elsewhere
	maxSecrets = 1000 // more than that in one text, and the whole text is replaced
)

// repeats removes what else occurs of the secrets found. It reports false if there are too many.
func (j *redaction) repeats(s string) (string, bool) {
	a, ok := j.repeatWords()
	if !ok {
		return "", false
	}
	if a == nil {
		return s, true
	}
	return j.replaceRepeats(a, s), true
}

// repeatWords compiles the secrets worth looking for; nil if there are none.
func (j *redaction) repeatWords() (*automaton, bool) {
	var words []keyword
	for i, s := range j.secrets {
		if len(s) >= minRepeat {
			words = append(words, keyword{s[:min(len(s), repeatKey)], i})
		}
	}
	if len(words) > maxSecrets {
		return nil, false
	}
	if len(words) == 0 {
		return nil, true
	}
	return newAutomaton(words), true
}

func (j *redaction) replaceRepeats(a *automaton, s string) string {
	var bufs laneBufs
	var b strings.Builder
	from := 0
	for _, at := range a.run(s, &bufs) {
		for _, h := range a.outs[at.out] {
			start, secret := int(at.end)-int(h.size), j.secrets[h.rule]
			if start < from || s[start:at.end] != secret[:h.size] || markerAround(s, start, int(at.end)) {
				continue
			}
			end := int(at.end)
			for n := int(h.size); n < len(secret) && end < len(s) && s[end] == secret[n]; n++ {
				end++
			}
			b.WriteString(s[from:start])
			b.WriteString(j.markers[secret])
			from = end
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}
