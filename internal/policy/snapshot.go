package policy

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// Snapshot is a compiled policy. It is immutable; a reload makes a new one.
// The zero value denies every call but those of the recovery path.
type Snapshot struct {
	// Hash identifies the effective content: the same layers give the same
	// hash, wherever their files lie.
	Hash call.Digest
	// Settings are the values that are no rules.
	Settings Settings
	// Ignored lists what a layer tried to loosen without the right to.
	Ignored Problems

	// Knowledge is what is known about programs, nil for what comes with the
	// gate.
	Knowledge *knowledge.Base

	// Declared is what tools say about themselves, nil if none does.
	Declared *argument.Set

	declared      []argument.File
	knowledgeHash call.Digest
	// profiles all apply; the strictest counts. There is more than one where
	// a lower layer tightens some of what the profile above it says.
	profiles   []profile
	rules      []rule
	operations []operationDeny
	voters     []voter
	// origins says which layer and line each setting came from.
	origins map[string]origin
	layers  []LayerInfo
	home    string
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
	// TaintLife is how long what an agent took in counts.
	TaintLife time.Duration
	// The caps on restore points: how much is kept, and for how long.
	RestorePointMiB, RestoreTotalMiB, RestorePoints int
	RestoreAge                                      time.Duration
	// Strictness says what leads to the danger zone and what is verified.
	Strictness string
	// RiskTolerance and MaxSteps bound what executions may set for
	// themselves.
	RiskTolerance string
	MaxSteps      int
	// Dispatch is how requests to agent CLIs are judged and run.
	Dispatch DispatchSettings
	// Cache is what is known about providers' caches.
	Cache CacheSettings
	// HostAsk holds the hosts that a file says something about; for others
	// the kind of installation decides.
	HostAsk map[string]bool
	// Output is what happens to suspicious output of MCP servers, OutputOf that
	// of single ones; [Settings.OutputFor] reads both.
	Output       string
	OutputOf     map[string]string
	RedactFields []string
	Notify       []Notice
	Capabilities map[call.Capability]CapabilityDef
	// Tools says which operation a tool is that the gate would not know.
	Tools map[string]string
}

// profile is a compiled session policy.
type profile struct {
	name    string
	source  string
	plain   map[call.Capability]capRule
	scoped  map[call.Capability][]capRule
	classes map[string]classRule
	// confines says that the profile was made for agents that run isolated:
	// what it lets through unasked must run confined.
	confines bool
	// refused says why the profile does not take effect; calls that need
	// anything are then denied with it.
	refused string
}

// capRule is one line of a profile's capabilities.
type capRule struct {
	pattern *pattern // nil for the plain entry
	rule    string
	reason  string
	// mayReason is the reason where the call only may reach the scope.
	mayReason string
	source    string
	level     call.Level
}

// classRule is one line of a profile's classes.
type classRule struct {
	rule   string
	reason string
	source string
	level  call.Level
}

// operationDeny is a native operation that the policy denies.
type operationDeny struct {
	matches func(operation string) bool
	rule    string
	source  string
}
