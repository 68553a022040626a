package policy

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// File is one policy file: the one schema for every layer. What a file leaves
// out it says nothing about. The jsonschema tags are what editors show.
type File struct {
	// Version of the schema; 1.
	Version int `toml:"version" json:"version" jsonschema:"Version of this schema; always 1."`
	// Profile is the session policy in use: supervised, autonomous, or one
	// under Profiles of this file or of a layer above.
	Profile string `toml:"profile,omitempty" json:"profile,omitempty" jsonschema:"The session policy in use: supervised, autonomous, or one of your own under [profiles]."`
	// Mode is enforce, or observe to decide and record without blocking.
	Mode string `toml:"mode,omitempty" json:"mode,omitempty" jsonschema:"enforce, or observe to decide and record without blocking."`
	// Attendance is interactive, or unattended where nobody is there to be
	// asked and a call that asks is answered at once.
	Attendance string `toml:"attendance,omitempty" json:"attendance,omitempty" jsonschema:"interactive, or unattended where nobody is there to be asked and a call that asks is answered at once."`
	// Isolation is the operator's statement of what the agent runs in: none,
	// container or vm.
	Isolation string `toml:"isolation,omitempty" json:"isolation,omitempty" jsonschema:"The operator's statement of what agents run in: none, container or vm."`
	// Profiles are session policies of one's own.
	Profiles map[string]Profile `toml:"profiles,omitempty" json:"profiles,omitempty" jsonschema:"Session policies of your own."`
	// Capabilities adds capabilities, and says what implies them.
	Capabilities map[string]CapabilityDef `toml:"capabilities,omitempty" json:"capabilities,omitempty" jsonschema:"Capabilities of your own, and what in a call implies a capability."`
	// Tools says which of the operations that the gate understands a tool of an
	// MCP server is, such as file.read; its arguments are then read as such.
	Tools map[string]string `toml:"tools,omitempty" json:"tools,omitempty" jsonschema:"Which operation a tool of an MCP server is, such as file.read or web.fetch. You vouch for the server."`
	// Rules are patterns over calls.
	Rules []Rule `toml:"rules,omitempty" json:"rules,omitempty" jsonschema:"Patterns over calls to tools, commands and agents."`
	// Operations denies native operations by name or glob.
	Operations map[string]call.Level `toml:"operations,omitempty" json:"operations,omitempty" jsonschema:"Native operations, by name or glob, that are denied. DENY is the only level."`
	// Risk sets from which risk on a person is asked.
	Risk *Risk `toml:"risk,omitempty" json:"risk,omitempty" jsonschema:"From which risk on a person is asked."`
	// Limits bounds attention and time.
	Limits *Limits `toml:"limits,omitempty" json:"limits,omitempty" jsonschema:"How much attention agents may take, and how long answers live."`
	// Danger says how strictly the danger zone is guarded.
	Danger *Danger `toml:"danger,omitempty" json:"danger,omitempty" jsonschema:"How strictly agents are watched and what is verified."`
	// Autonomy bounds how far agents go on their own.
	Autonomy *Autonomy `toml:"autonomy,omitempty" json:"autonomy,omitempty" jsonschema:"How far executed agents go on their own."`
	// Dispatch says how requests to agent CLIs are judged and run.
	Dispatch *Dispatch `toml:"dispatch,omitempty" json:"dispatch,omitempty" jsonschema:"How requests to agent CLIs are judged and run."`
	// CacheAwareness says what is known about providers' caches.
	CacheAwareness *CacheAwareness `toml:"cache_awareness,omitempty" json:"cache_awareness,omitempty" jsonschema:"What is known about the caches of model providers."`
	// Hosts holds settings per agent host, such as claude.
	Hosts map[string]Host `toml:"hosts,omitempty" json:"hosts,omitempty" jsonschema:"Settings per agent host, such as claude."`
	// Output says what happens to what MCP servers send back.
	Output *Output `toml:"output,omitempty" json:"output,omitempty" jsonschema:"What happens to what MCP servers send back and that tries to give orders or hides something."`
	// Redact names further fields whose values are never stored.
	Redact *Redact `toml:"redact,omitempty" json:"redact,omitempty" jsonschema:"What is never stored, besides what is built in."`
	// Notify lists where notices of waiting requests go.
	Notify []Notice `toml:"notify,omitempty" json:"notify,omitempty" jsonschema:"Where the gate says that a request waits."`
	// Adjustable lists the settings that lower layers may loosen.
	Adjustable []string `toml:"adjustable,omitempty" json:"adjustable,omitempty" jsonschema:"The settings that the next layer below may loosen, such as profile or limits.asks_per_hour."`
	// Tests are calls with the level that the file's author expects.
	Tests []Test `toml:"tests,omitempty" json:"tests,omitempty" jsonschema:"Calls with the level you expect; gatehouse policy test runs them."`

	name    string
	at      positions
	digest  call.Digest
	shipped bool
}

// Profile maps what a call needs to levels.
type Profile struct {
	// Description says in one line what the profile is for.
	Description string `toml:"description,omitempty" json:"description,omitempty" jsonschema:"What the profile is for, in one line."`
	// Base is the profile this one starts from. What this one says about a
	// capability with the same scope, or about a class, replaces the base's.
	Base string `toml:"base,omitempty" json:"base,omitempty" jsonschema:"The profile this one starts from."`
	// Capabilities maps a capability, with or without a scope
	// ("fs.write:./src/**"), to a level. A scoped entry counts before the
	// plain one; of several that cover a need the strictest counts.
	Capabilities map[string]call.Level `toml:"capabilities,omitempty" json:"capabilities,omitempty" jsonschema:"A capability, with or without a scope such as fs.write:./src/**, and its level. A scoped entry counts before the plain one; of several the strictest counts."`
	// Classes maps a shell class to a level.
	Classes map[string]call.Level `toml:"classes,omitempty" json:"classes,omitempty" jsonschema:"The class of a shell command (safe, mutating, network, destructive, unknown) and its level."`
	// RequiresIsolation says that the profile takes effect only where the
	// operator stated an isolation or the gate's own launcher confines.
	RequiresIsolation bool `toml:"requires_isolation,omitempty" json:"requires_isolation,omitempty" jsonschema:"Whether the profile takes effect only where agents run isolated."`
}

// CapabilityDef describes a capability and what in a call implies it.
type CapabilityDef struct {
	// Sentence says in words what the capability is: "read attachments".
	Sentence string `toml:"sentence,omitempty" json:"sentence,omitempty" jsonschema:"What the capability is, in words: read attachments."`
	// Paths, Fields, Tools and Variables imply the capability when a call
	// touches a path, carries an argument, uses a tool or reads a variable
	// that one of the globs matches.
	Paths     []string `toml:"paths,omitempty" json:"paths,omitempty" jsonschema:"Globs over paths whose use needs the capability."`
	Fields    []string `toml:"fields,omitempty" json:"fields,omitempty" jsonschema:"Globs over argument names whose presence needs the capability."`
	Tools     []string `toml:"tools,omitempty" json:"tools,omitempty" jsonschema:"Globs over tool names whose use needs the capability."`
	Variables []string `toml:"variables,omitempty" json:"variables,omitempty" jsonschema:"Globs over environment variables whose use needs the capability."`
}

// Rule is a pattern over external calls and requests to agents, with the
// level it asks for.
//
// DENY and the confirm levels join: such a rule applies as soon as one simple
// command, path or host of the call may match. AUTO_APPROVE lowers what the
// profile asks, and applies only if every simple command, path and host
// matches; see [Snapshot.Decide] for what it can lower.
type Rule struct {
	Name string `toml:"name" json:"name" jsonschema:"What the rule is called in votes and records."`
	// Operation is a glob over operation or tool names; "" is any. The names
	// that hosts have for the same tool (Edit, edit_file) are one.
	Operation string `toml:"operation,omitempty" json:"operation,omitempty" jsonschema:"A glob over tool names, such as mcp__github__*."`
	// Command is a glob over the text of each simple command; a star stands
	// for any text, slashes and spaces included.
	Command string `toml:"command,omitempty" json:"command,omitempty" jsonschema:"A glob over the text of each simple command; a star stands for any text."`
	// Path is a glob over the paths a call touches. It starts with ./ (the
	// workspace), ~/ (the home), / or **/.
	Path string `toml:"path,omitempty" json:"path,omitempty" jsonschema:"A glob over the paths a call touches; it starts with ./ (the workspace), ~/, / or **/."`
	// Host is a pattern over the hosts a call reaches.
	Host string `toml:"host,omitempty" json:"host,omitempty" jsonschema:"A pattern over the hosts a call reaches, such as *.example.com:443."`
	// Level is what the rule asks for.
	Level call.Level `toml:"level" json:"level" jsonschema:"What the rule asks for."`
	// Reason is shown to the person and the agent.
	Reason string `toml:"reason" json:"reason" jsonschema:"Why, in words, for the person and the agent."`
	// Matches and Misses are examples, checked when the file is loaded: for a
	// rule with a command, command lines; else paths, hosts or operations.
	Matches []string `toml:"matches,omitempty" json:"matches,omitempty" jsonschema:"Examples that the rule must match, checked when the file is loaded."`
	Misses  []string `toml:"misses,omitempty" json:"misses,omitempty" jsonschema:"Examples that the rule must not match, checked when the file is loaded."`
}

// Risk sets when risk alone asks.
type Risk struct {
	// ConfirmAt is the risk from which on a call asks.
	ConfirmAt *int `toml:"confirm_at,omitempty" json:"confirm_at,omitempty" jsonschema:"The risk, 0 to 101, from which on each use is confirmed; 101 is never."`
	// DenyAt is the risk from which on a call is denied; 0 is never.
	DenyAt *int `toml:"deny_at,omitempty" json:"deny_at,omitempty" jsonschema:"The risk, 1 to 100, from which on a call is denied; 0 is never."`
	// Irreversible is the level of what cannot be undone.
	Irreversible *call.Level `toml:"irreversible,omitempty" json:"irreversible,omitempty" jsonschema:"The level of what cannot be undone."`
}

// Limits bounds how much attention agents may take and how long answers live.
type Limits struct {
	PendingPerSession   *int      `toml:"pending_per_session,omitempty" json:"pending_per_session,omitempty" jsonschema:"How many requests of one session may wait at once."`
	PendingPerPrincipal *int      `toml:"pending_per_principal,omitempty" json:"pending_per_principal,omitempty" jsonschema:"How many requests of one agent may wait at once."`
	AsksPerHour         *int      `toml:"asks_per_hour,omitempty" json:"asks_per_hour,omitempty" jsonschema:"How often one agent may ask within an hour."`
	RequestLife         *Duration `toml:"request_life,omitempty" json:"request_life,omitempty" jsonschema:"How long a request waits for an answer, such as 15m."`
	GrantLife           *Duration `toml:"grant_life,omitempty" json:"grant_life,omitempty" jsonschema:"How long an approval of one call stays unused, such as 120s."`
	SessionGrantLife    *Duration `toml:"session_grant_life,omitempty" json:"session_grant_life,omitempty" jsonschema:"How long an approval for a session lives at most, such as 12h."`
	TaintLife           *Duration `toml:"taint_life,omitempty" json:"taint_life,omitempty" jsonschema:"How long what an agent took in counts, such as 12h."`
	RestorePointMiB     *int      `toml:"restore_point_mib,omitempty" json:"restore_point_mib,omitempty" jsonschema:"How much one restore point keeps at most, in MiB. Of a project's file this says nothing."`
	RestoreTotalMiB     *int      `toml:"restore_total_mib,omitempty" json:"restore_total_mib,omitempty" jsonschema:"How much all restore points take at most, in MiB. Of a project's file this says nothing."`
	RestorePoints       *int      `toml:"restore_points,omitempty" json:"restore_points,omitempty" jsonschema:"How many restore points are kept at most. Of a project's file this says nothing."`
	RestoreAge          *Duration `toml:"restore_age,omitempty" json:"restore_age,omitempty" jsonschema:"How long a restore point is kept, such as 336h. Of a project's file this says nothing."`
}

// Danger says what leads to the danger zone and what is verified.
type Danger struct {
	// Strictness is minimal, standard, elevated or maximum.
	Strictness string `toml:"strictness,omitempty" json:"strictness,omitempty" jsonschema:"minimal: only a dangerous step blocks an agent; standard: repeated violations do, too; elevated: sooner, and whatever deletes or cannot be undone is verified with a second factor; maximum: everything beyond a read is."`
}

// Autonomy bounds what an executed agent may set for itself.
type Autonomy struct {
	// RiskTolerance is conservative, moderate or aggressive.
	RiskTolerance string `toml:"risk_tolerance,omitempty" json:"risk_tolerance,omitempty" jsonschema:"The highest tolerance an execution can have: conservative (pauses above 25), moderate (50) or aggressive (75)."`
	// MaxSteps is how many steps an execution takes before it pauses.
	MaxSteps *int `toml:"max_steps,omitempty" json:"max_steps,omitempty" jsonschema:"How many steps an execution takes at most before a person lets it go on."`
}

// Host holds the settings of one agent host.
type Host struct {
	// HostAsk lets the host's own prompt ask when no channel of ours is live.
	HostAsk *bool `toml:"host_ask,omitempty" json:"host_ask,omitempty" jsonschema:"Whether the host's own prompt may ask when no channel of the gate is live."`
}

// Redact names further fields whose values are never stored.
type Redact struct {
	Fields []string `toml:"fields,omitempty" json:"fields,omitempty" jsonschema:"Names of arguments whose values are never stored."`
}

// Notice is a place to which the gate says that a request waits.
type Notice struct {
	// Kind is desktop or webhook.
	Kind string `toml:"kind" json:"kind" jsonschema:"desktop or webhook."`
	// URL is where a webhook posts to.
	URL string `toml:"url,omitempty" json:"url,omitempty" jsonschema:"Where a webhook posts to; https, or http to this machine."`
	// Format is json, slack or ntfy.
	Format string `toml:"format,omitempty" json:"format,omitempty" jsonschema:"json, slack or ntfy; json if left out."`
}

// Test is a call with the level that it must be decided to. What the call
// needs is written down, or found out from the command.
type Test struct {
	Name      string     `toml:"name" json:"name" jsonschema:"What is tested."`
	Operation string     `toml:"operation,omitempty" json:"operation,omitempty" jsonschema:"The tool or native operation; Bash if only a command is given."`
	Command   string     `toml:"command,omitempty" json:"command,omitempty" jsonschema:"A shell command; it is analysed unless needs or class say what it does."`
	Needs     []string   `toml:"needs,omitempty" json:"needs,omitempty" jsonschema:"What the call needs, such as fs.write:/srv/app/main.go; a path that starts with ./ lies in the workspace, with ~/ in the home."`
	Class     string     `toml:"class,omitempty" json:"class,omitempty" jsonschema:"The class of the command: safe, mutating, network, destructive or unknown."`
	Level     call.Level `toml:"level" json:"level" jsonschema:"The level the call must be decided to."`
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
