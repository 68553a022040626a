package policy

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// File is one policy file: the one schema for every layer. What a file leaves
// out it says nothing about.
type File struct {
	// Version of the schema; 1.
	Version int `toml:"version" json:"version"`
	// Profile is the session policy in use: supervised, autonomous, or one
	// under Profiles.
	Profile string `toml:"profile,omitempty" json:"profile,omitempty"`
	// Mode is enforce, or observe to decide and record without blocking.
	Mode string `toml:"mode,omitempty" json:"mode,omitempty"`
	// Attendance is interactive, or unattended where nobody is there to be
	// asked and a call that asks is answered at once.
	Attendance string `toml:"attendance,omitempty" json:"attendance,omitempty"`
	// Isolation is the operator's statement of what the agent runs in: none,
	// container or vm.
	Isolation string `toml:"isolation,omitempty" json:"isolation,omitempty"`
	// Profiles are session policies of one's own.
	Profiles map[string]Profile `toml:"profiles,omitempty" json:"profiles,omitempty"`
	// Capabilities adds capabilities, and says what implies them.
	Capabilities map[string]CapabilityDef `toml:"capabilities,omitempty" json:"capabilities,omitempty"`
	// Rules are patterns over calls.
	Rules []Rule `toml:"rules,omitempty" json:"rules,omitempty"`
	// Operations denies native operations by name or glob.
	Operations map[string]call.Level `toml:"operations,omitempty" json:"operations,omitempty"`
	// Risk sets from which risk on a person is asked.
	Risk *Risk `toml:"risk,omitempty" json:"risk,omitempty"`
	// Limits bounds attention and time.
	Limits *Limits `toml:"limits,omitempty" json:"limits,omitempty"`
	// Hosts holds settings per agent host, such as claude.
	Hosts map[string]Host `toml:"hosts,omitempty" json:"hosts,omitempty"`
	// Redact names further fields whose values are never stored.
	Redact *Redact `toml:"redact,omitempty" json:"redact,omitempty"`
	// Notify lists where notices of waiting requests go.
	Notify []Notice `toml:"notify,omitempty" json:"notify,omitempty"`
	// Adjustable lists the settings that lower layers may loosen.
	Adjustable []string `toml:"adjustable,omitempty" json:"adjustable,omitempty"`
}

// Profile maps what a call needs to levels.
type Profile struct {
	// Base is the profile this one starts from.
	Base string `toml:"base,omitempty" json:"base,omitempty"`
	// Capabilities maps a capability, with or without a scope
	// ("fs.write:./src/**"), to a level. A scoped entry counts before the
	// plain one; of several that cover a need the strictest counts.
	Capabilities map[string]call.Level `toml:"capabilities,omitempty" json:"capabilities,omitempty"`
	// Classes maps a shell class to a level.
	Classes map[string]call.Level `toml:"classes,omitempty" json:"classes,omitempty"`
	// RequiresIsolation says that the profile takes effect only where the
	// operator stated an isolation or the gate's own launcher confines.
	RequiresIsolation bool `toml:"requires_isolation,omitempty" json:"requires_isolation,omitempty"`
}

// CapabilityDef describes a capability and what in a call implies it.
type CapabilityDef struct {
	// Sentence says in words what the capability is: "read attachments".
	Sentence string `toml:"sentence" json:"sentence"`
	// Paths, Fields, Tools and Variables imply the capability when a call
	// touches a path, carries an argument, uses a tool or reads a variable
	// that one of the globs matches.
	Paths     []string `toml:"paths,omitempty" json:"paths,omitempty"`
	Fields    []string `toml:"fields,omitempty" json:"fields,omitempty"`
	Tools     []string `toml:"tools,omitempty" json:"tools,omitempty"`
	Variables []string `toml:"variables,omitempty" json:"variables,omitempty"`
}

// Rule is a pattern over calls with the level it asks for. DENY and the
// confirm levels join; AUTO_APPROVE lowers the profile's level of a
// reversible call, and nothing else.
type Rule struct {
	Name string `toml:"name" json:"name"`
	// Operation is a glob over operation or tool names; "" is any.
	Operation string `toml:"operation,omitempty" json:"operation,omitempty"`
	// Command is a glob over the text of each simple command.
	Command string `toml:"command,omitempty" json:"command,omitempty"`
	// Path is a glob over the paths a call touches.
	Path string `toml:"path,omitempty" json:"path,omitempty"`
	// Host is a pattern over the hosts a call reaches.
	Host string `toml:"host,omitempty" json:"host,omitempty"`
	// Level is what the rule asks for.
	Level call.Level `toml:"level" json:"level"`
	// Reason is shown to the person and the agent.
	Reason string `toml:"reason" json:"reason"`
	// Matches and Misses are examples, checked when the file is loaded: for a
	// rule with a command, command lines; else paths, hosts or operations.
	Matches []string `toml:"matches,omitempty" json:"matches,omitempty"`
	Misses  []string `toml:"misses,omitempty" json:"misses,omitempty"`
}

// Risk sets when risk alone asks.
type Risk struct {
	// ConfirmAt is the risk from which on a call asks.
	ConfirmAt *int `toml:"confirm_at,omitempty" json:"confirm_at,omitempty"`
	// DenyAt is the risk from which on a call is denied; 0 is never.
	DenyAt *int `toml:"deny_at,omitempty" json:"deny_at,omitempty"`
	// Irreversible is the level of what cannot be undone.
	Irreversible *call.Level `toml:"irreversible,omitempty" json:"irreversible,omitempty"`
}

// Limits bounds how much attention agents may take and how long answers live.
type Limits struct {
	PendingPerSession   *int      `toml:"pending_per_session,omitempty" json:"pending_per_session,omitempty"`
	PendingPerPrincipal *int      `toml:"pending_per_principal,omitempty" json:"pending_per_principal,omitempty"`
	AsksPerHour         *int      `toml:"asks_per_hour,omitempty" json:"asks_per_hour,omitempty"`
	RequestLife         *Duration `toml:"request_life,omitempty" json:"request_life,omitempty"`
	GrantLife           *Duration `toml:"grant_life,omitempty" json:"grant_life,omitempty"`
	SessionGrantLife    *Duration `toml:"session_grant_life,omitempty" json:"session_grant_life,omitempty"`
}

// Host holds the settings of one agent host.
type Host struct {
	// HostAsk lets the host's own prompt ask when no channel of ours is live.
	HostAsk *bool `toml:"host_ask,omitempty" json:"host_ask,omitempty"`
}

// Redact names further fields and patterns whose values are never stored.
type Redact struct {
	Fields []string `toml:"fields,omitempty" json:"fields,omitempty"`
}

// Notice is a place to which the gate says that a request waits.
type Notice struct {
	// Kind is desktop or webhook.
	Kind string `toml:"kind" json:"kind"`
	// URL is where a webhook posts to.
	URL string `toml:"url,omitempty" json:"url,omitempty"`
	// Format is json, slack or ntfy.
	Format string `toml:"format,omitempty" json:"format,omitempty"`
}

// Duration is a time.Duration written as "15m".
type Duration time.Duration

// MarshalText writes the duration as "15m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration such as "15m".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
