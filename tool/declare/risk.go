package declare

import (
	"encoding"
	"fmt"
	"strings"
)

// Risk is how much harm a tool can do. The zero value is Unknown.
type Risk uint8

// The classes. Unknown ranks highest: what nobody judged is not harmless.
const (
	Unknown Risk = iota
	Low
	Medium
	High
	Critical
)

var riskNames = [...]string{"unknown", "low", "medium", "high", "critical"}

var _ encoding.TextUnmarshaler = (*Risk)(nil)

// Rank orders risks for review, Unknown on top.
func (r Risk) Rank() int {
	if r == Unknown || r > Critical {
		return int(Critical) + 1
	}
	return int(r)
}

// String returns the name of the class in lower case.
func (r Risk) String() string {
	if int(r) < len(riskNames) {
		return riskNames[r]
	}
	return riskNames[Unknown]
}

// MarshalText writes the name of the class.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of a class in any letter case. An unknown name
// is an error: a typing mistake is not a risk.
func (r *Risk) UnmarshalText(text []byte) error {
	for i, name := range riskNames {
		if strings.EqualFold(name, string(text)) {
			*r = Risk(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no risk: use low, medium, high, critical or unknown", text)
}
