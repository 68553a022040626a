package policy

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Snapshot is a compiled policy. It is immutable; a reload makes a new one.
type Snapshot struct {
	// Hash identifies the snapshot: the same layers give the same hash.
	Hash call.Digest
	// Settings are the values that are no rules.
	Settings Settings

	profile    profile
	rules      []rule
	operations []operationDeny
	voters     []voter
}

// Settings are the resolved values of all layers.
type Settings struct {
	Profile             string
	Observe             bool
	Unattended          bool
	Isolation           string
	RiskConfirmAt       int
	RiskDenyAt          int
	Irreversible        call.Level
	PendingPerSession   int
	PendingPerPrincipal int
	AsksPerHour         int
	RequestLife         time.Duration
	GrantLife           time.Duration
	SessionGrantLife    time.Duration
	HostAsk             map[string]bool
	RedactFields        []string
	Notify              []Notice
	Capabilities        map[call.Capability]CapabilityDef
}

// profile is the compiled session policy.
type profile struct {
	name    string
	source  string
	plain   map[call.Capability]capRule
	scoped  map[call.Capability][]capRule
	classes map[string]classRule
	// refused says why the profile does not take effect; calls that need
	// anything are then denied with it.
	refused string
}

// capRule is one line of a profile's capabilities.
type capRule struct {
	covers func(call.Need) bool // nil for the plain entry
	rule   string
	reason string
	source string
	level  call.Level
}

// classRule is one line of a profile's classes.
type classRule struct {
	rule   string
	reason string
	level  call.Level
}

// rule is a compiled pattern rule.
type rule struct {
	matches func(*Input) bool
	name    string
	source  string
	reason  string
	level   call.Level
}

// operationDeny is a native operation that the policy denies.
type operationDeny struct {
	matches func(operation string) bool
	rule    string
	source  string
}
