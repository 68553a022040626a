package call

import "fmt"

// Level says how a call may go ahead. The order of strictness is
//
//	AUTO_APPROVE < CONFIRM_SESSION < CONFIRM_SINGLE_USE < DENY
//
// and the zero value is DENY: whatever was not decided is refused. The
// numbers run against the order of strictness to make that so; compare
// levels with [Level.StricterThan] and combine them with [Join] only.
type Level uint8

const (
	// Deny refuses the call; no confirmation can change that.
	Deny Level = iota
	// ConfirmSingleUse asks a person about this call alone.
	ConfirmSingleUse
	// ConfirmSession asks a person once per session and scope.
	ConfirmSession
	// AutoApprove lets the call go ahead.
	AutoApprove
)

var levelNames = [...]string{
	Deny:             "DENY",
	ConfirmSingleUse: "CONFIRM_SINGLE_USE",
	ConfirmSession:   "CONFIRM_SESSION",
	AutoApprove:      "AUTO_APPROVE",
}

// LevelNames lists the names of all levels, most permissive first.
func LevelNames() []string {
	return []string{levelNames[AutoApprove], levelNames[ConfirmSession], levelNames[ConfirmSingleUse], levelNames[Deny]}
}

// known folds every value outside the four to Deny.
func (l Level) known() Level {
	if l > AutoApprove {
		return Deny
	}
	return l
}

// Join returns the stricter of two levels.
func Join(a, b Level) Level { return min(a.known(), b.known()) }

// StricterThan reports whether l leaves less room than other.
func (l Level) StricterThan(other Level) bool { return l.known() < other.known() }

// Asks reports whether l is met by a person's confirmation.
func (l Level) Asks() bool { return l == ConfirmSession || l == ConfirmSingleUse }

// String returns the name of the level, DENY for a value that is none.
func (l Level) String() string { return levelNames[l.known()] }

// MarshalText writes the name of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the exact name of a level. On any other text it leaves
// Deny behind and returns an error.
func (l *Level) UnmarshalText(text []byte) error {
	*l = Deny
	for i, name := range levelNames {
		if string(text) == name {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a level: use one of %v", text, LevelNames())
}
