package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// VerdictLine ends every review prompt, so that the answer can be read.
const VerdictLine = "End with APPROVED or NOT APPROVED with findings."

// AskVerdict returns a prompt that ends with the required line.
func AskVerdict(prompt string) string {
	if strings.HasSuffix(strings.TrimRightFunc(prompt, unicode.IsSpace), VerdictLine) {
		return prompt
	}
	return strings.TrimRightFunc(prompt, unicode.IsSpace) + "\n\n" + VerdictLine
}

// Verdict is what a reviewer's answer comes to. The zero value is none, and
// only Approved lets anything pass.
type Verdict uint8

const (
	// NoVerdict is an answer without one.
	NoVerdict Verdict = iota
	// Approved is an approval without conditions.
	Approved
	// NotApproved is a refusal.
	NotApproved
	// Conditional is an approval that depends on something, which counts as
	// none.
	Conditional
)

var verdictNames = [...]string{"none", "approved", "not_approved", "conditional"}

// String returns the name used on the wire.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return verdictNames[NoVerdict]
}

// MarshalText writes the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Review is a reviewer's answer, read.
type Review struct {
	Verdict Verdict `json:"verdict"`
	// Findings are what the answer says besides its verdict, where that is not
	// an approval.
	Findings string `json:"findings,omitzero"`
}

// ReadVerdict reads a reviewer's answer strictly. Approved is only an answer
// whose last line is the word APPROVED and nothing else (emphasis, "Verdict:"
// and a full stop apart), and which says nowhere else on a line of its own that
// it is not. A verdict that stands elsewhere, a condition behind it, a
// disguised letter: all that counts as no approval.
func ReadVerdict(answer string) Review {
	lines := strings.Split(strings.TrimRightFunc(answer, unicode.IsSpace), "\n")
	last := verdictOf(lines[len(lines)-1])
	refusal, found := false, last != NoVerdict
	for _, l := range lines[:len(lines)-1] {
		switch v := verdictOf(l); {
		case v == NotApproved:
			refusal, found = true, true
		case v != NoVerdict:
			found = true
		}
	}
	out := Review{Verdict: last}
	switch {
	case last == Approved && refusal:
		out.Verdict = Conditional
	case last == NoVerdict && refusal:
		out.Verdict = NotApproved
	case last == NoVerdict && found:
		out.Verdict = Conditional // the approval was not the last word
	}
	if out.Verdict != Approved {
		out.Findings = strings.TrimSpace(answer)
	}
	return out
}

// verdictOf reads one line. Only capitals are a verdict: the word in a
// sentence is not.
func verdictOf(line string) Verdict {
	s := strings.TrimFunc(line, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("*_#>`-", r) })
	for _, label := range []string{"Verdict:", "VERDICT:", "Final verdict:", "FINAL VERDICT:"} {
		s = strings.TrimFunc(strings.TrimPrefix(s, label), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("*_`", r) })
	}
	for _, negative := range []string{"NOT APPROVED", "NOT_APPROVED", "NOT-APPROVED", "UNAPPROVED", "DISAPPROVED", "CHANGES REQUIRED", "CHANGES_REQUIRED", "REJECTED"} {
		if rest, ok := strings.CutPrefix(s, negative); ok && wordEnds(rest) {
			return NotApproved
		}
	}
	rest, ok := strings.CutPrefix(s, "APPROVED")
	if !ok || !wordEnds(rest) {
		if strings.Contains(s, "APPROVED") {
			return Conditional // CONDITIONALLY APPROVED, and whatever else
		}
		return NoVerdict
	}
	if strings.Trim(rest, "*_`.! \t\r") == "" {
		return Approved
	}
	return Conditional
}

func wordEnds(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// UnmarshalText reads the name; what is none is no verdict.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = NoVerdict
	for i, name := range verdictNames {
		if string(text) == name {
			*v = Verdict(i)
		}
	}
	return nil
}
