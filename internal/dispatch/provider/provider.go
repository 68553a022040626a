package provider

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// Input is what a launch depends on besides the request.
type Input struct {
	CLI  string
	Task *call.Task
	// Gated has every tool call of the run decided.
	Gated bool
	// Confined says that the run is put into a sandbox of the gate's, in which
	// no other can be made.
	Confined bool
	// Binary is the CLI's program, absolute.
	Binary string
	// Dir is the real working directory.
	Dir string
	// Home is the CLI's own home, a folder of the gate's.
	Home string
	// Temp is a private folder of the run, outside of Home.
	Temp string
	// Env reads the gate's own environment.
	Env func(string) string
	// Extra are variables that the operator adds for this CLI.
	Extra []string
	// Template are the operator's own files for this CLI, by their path below
	// Home.
	Template map[string]string
	// Known says that the request's session was begun by an earlier run, so
	// that this one goes on with it.
	Known bool
	// Servers are the MCP servers that the operator has defined, by name, as
	// JSON.
	Servers map[string]string
	// Hook is the command line of the gate's hook, for a CLI that has no
	// channel.
	Hook string
}

// Launch is how a CLI is started.
type Launch struct {
	Path  string
	Args  []string
	Env   []string
	Dir   string
	Stdin []byte
	// Channel, if set, holds the conversation on which tool calls are asked
	// about; else Stdin is written.
	Channel func(inrun.Ask) inrun.Drive
	// Before, if set, is done right before the start, in the CLI's own home.
	Before func() error
	// Files are written before the start, readable by their owner alone.
	Files map[string]string
	// ReadOnly says that the run changes nothing in its directory.
	ReadOnly bool
	// Session is the session's id where it is known before the run.
	Session string
	Posture Posture
	// Warnings say where the gate is stricter than the request.
	Warnings []string
	// Servers are the MCP servers that the CLI gets, and Missing those wanted
	// and not defined.
	Servers, Missing []string
	// Parse reads what the CLI printed.
	Parse func(stdout []byte) Result
}

// Posture is what the CLI itself asks about and is held to.
type Posture struct {
	// Approval says who decides on tool calls: "gate", or the CLI's own mode.
	Approval string `json:"approval"`
	// Confined says that the gate's own sandbox holds the run.
	Confined bool `json:"confined,omitzero"`
	// Sandbox is the CLI's own sandbox, "" where it has none.
	Sandbox string `json:"sandbox,omitzero"`
	// Resumed says that an earlier session is gone on with, whose own posture
	// counts for nothing: this one is applied.
	Resumed bool `json:"resumed,omitzero"`
}

// RefusedError says which field a CLI cannot honour, and why.
type RefusedError struct{ Field, CLI, Why string }

// Error names the field and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is refused for %s: %s", e.Field, e.CLI, e.Why)
}

// Public returns the reason, which may be shown.
func (e *RefusedError) Public() string { return e.Error() }

// adapter is one CLI.
type adapter struct {
	// program is the file that is looked for, where it is not called as the CLI.
	program string
	// fields are those of a request that it knows besides those all know.
	fields []string
	// refusals say why it does not know one.
	refusals map[string]string
	// env are the variables it gets from the gate's own.
	env []string
	// login is what it keeps its login in, below the user's home and its own.
	login [][2]string
	// channel is how its tool calls are asked about.
	channel string
	// prepare fills in the launch.
	prepare func(*builder) error
	// hosts are where its models are.
	hosts []string
	// modelEnv are variables, and modelIn the place in its settings, that say
	// which model it takes by itself.
	modelEnv []string
	modelIn  setting
}

var adapters = map[string]*adapter{"claude": &claude, "codex": &codex, "gemini": &gemini, "grok": &grok, "mistral": &mistral}

// Program is the name of the CLI's program.
func Program(cli string) string {
	if a := adapters[cli]; a != nil && a.program != "" {
		return a.program
	}
	return cli
}

// special are the fields that not every CLI knows.
var special = set(&call.Task{
	StrictMCPConfig: true, AllowedTools: []string{}, DisallowedTools: []string{""}, PermissionMode: "x", ApprovalMode: "x", FullAuto: true, SandboxMode: "x",
	DangerouslySkipPermissions: true, DangerouslyBypassApprovalsAndSandbox: true, AlwaysApprove: true, ForkSession: true,
})

// Knows says whether a CLI knows a field of a request.
func Knows(cli, field string) bool {
	return !slices.Contains(special, field) || slices.Contains(adapters[cli].fields, field)
}

// Logins are the files in which a CLI keeps its login: below the user's home,
// and below its own.
func Logins(cli string) [][2]string { return adapters[cli].login }

// common are the variables that every CLI gets.
var common = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// EnvNames lists the variables of the gate's environment that a CLI gets.
func EnvNames(cli string) []string { return slices.Concat(common, adapters[cli].env) }

// builder fills in a launch.
type builder struct {
	*Input
	*Launch
	adapter *adapter
}

// Prepare makes the launch of a request.
func Prepare(in *Input) (*Launch, error) {
	a := adapters[in.CLI]
	if a == nil {
		return nil, &RefusedError{Field: "cli", CLI: in.CLI, Why: "there is no such CLI"}
	}
	if err := a.check(in); err != nil {
		return nil, err
	}
	b := &builder{Input: in, adapter: a, Launch: &Launch{
		Path: in.Binary, Dir: in.Dir, Session: in.Task.SessionID, Files: map[string]string{},
		Posture: Posture{Approval: "gate", Confined: in.Confined, Resumed: in.Known},
	}}
	if err := b.servers(); err != nil {
		return nil, err
	}
	for _, name := range EnvNames(in.CLI) {
		if v := in.Env(name); v != "" {
			b.setenv(name, v)
		}
	}
	for name, text := range in.Template {
		b.file(name, text)
	}
	b.setenv("HOME", in.Home)
	b.setenv("TMPDIR", in.Temp)
	b.setenv("TERM", "dumb")
	b.setenv("GATEHOUSE_DISPATCH", in.CLI)
	b.Launch.Env = append(b.Launch.Env, in.Extra...)
	if err := a.prepare(b); err != nil {
		return nil, err
	}
	slices.Sort(b.Warnings)
	return b.Launch, nil
}

func (b *builder) setenv(name, value string) { b.Launch.Env = append(b.Launch.Env, name+"="+value) }

func (b *builder) args(words ...string) { b.Args = append(b.Args, words...) }

func (b *builder) warn(format string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf(format, args...))
}

// file adds a file below the CLI's home and returns its path.
func (b *builder) file(name, text string) string {
	path := filepath.Join(b.Home, name)
	b.Files[path] = text
	return path
}

// private adds a file that is gone after the run.
func (b *builder) private(name, text string) string {
	path := filepath.Join(b.Temp, name)
	b.Files[path] = text
	return path
}

// managed says that the CLI runs with the permissive flags of the public skill.
func (b *builder) managed() bool { return !b.Gated && b.Task.ApprovalStrategy == "mcp_managed" }

// held notes a field that would have the CLI decide for itself: in a gated run
// it is not passed on.
func (b *builder) held(field string) {
	b.warn("%s is not passed on: every tool call of this run is decided by the gate", field)
}

// someTools refuses an empty list of tools where the CLI itself would have to
// hold to it: none of their flags says "none".
func (b *builder) someTools() error {
	if b.Task.AllowedTools != nil && len(b.Task.AllowedTools) == 0 {
		return &RefusedError{Field: "allowedTools", CLI: b.CLI, Why: "an empty list cannot be told to it: it would have all of its tools"}
	}
	return nil
}

// isUUID says whether a session id has the form that CLIs want.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

// set lists the fields of a request that not every CLI knows and that are set.
func set(t *call.Task) []string {
	fields := map[string]bool{
		"strictMcpConfig": t.StrictMCPConfig, "allowedTools": t.AllowedTools != nil, "disallowedTools": len(t.DisallowedTools) > 0,
		"permissionMode": t.PermissionMode != "", "approvalMode": t.ApprovalMode != "", "fullAuto": t.FullAuto, "sandboxMode": t.SandboxMode != "",
		"dangerouslySkipPermissions":           t.DangerouslySkipPermissions,
		"dangerouslyBypassApprovalsAndSandbox": t.DangerouslyBypassApprovalsAndSandbox,
		"alwaysApprove":                        t.AlwaysApprove, "forkSession": t.ForkSession,
	}
	var out []string
	for name, is := range fields {
		if is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// check refuses what the CLI cannot honour.
func (a *adapter) check(in *Input) error {
	for _, field := range set(in.Task) {
		if slices.Contains(a.fields, field) {
			continue
		}
		why := a.refusals[field]
		if why == "" {
			why = "it has no such setting"
		}
		return &RefusedError{Field: field, CLI: in.CLI, Why: why}
	}
	switch {
	case in.Task.Budget == nil:
	case a.program == "vibe":
		return &RefusedError{Field: "budget", CLI: in.CLI, Why: "its hook does not say which run it is for"}
	case !in.Gated:
		return &RefusedError{Field: "budget", CLI: in.CLI, Why: "only a run whose calls the gate decides draws from a budget"}
	}
	if in.Task.ForkSession && !in.Known {
		return &RefusedError{Field: "forkSession", CLI: in.CLI, Why: "there is no session of that id to fork"}
	}
	return nil
}

// servers splits the MCP servers that the request wants into those defined and
// those missing.
func (b *builder) servers() error {
	for _, name := range b.Task.Servers() {
		if _, ok := b.Input.Servers[name]; ok {
			b.Launch.Servers = append(b.Launch.Servers, name)
		} else {
			b.Missing = append(b.Missing, name)
		}
	}
	if b.Task.StrictMCPConfig && len(b.Missing) > 0 {
		return &RefusedError{Field: "mcpServers", CLI: b.CLI, Why: "strictMcpConfig is set and these servers are not defined: " + strings.Join(b.Missing, ", ")}
	}
	return nil
}

// mcpConfig is the text of a file with the servers that the CLI gets.
func (b *builder) mcpConfig() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.Input.Servers)) {
		if slices.Contains(b.Launch.Servers, name) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, b.Input.Servers[name]))
		}
	}
	return `{"mcpServers":{` + strings.Join(parts, ",") + `}}`
}

// oneOf refuses a word that the CLI does not know.
func (b *builder) oneOf(field, value string, right ...string) error {
	if value == "" || slices.Contains(right, value) {
		return nil
	}
	return &RefusedError{Field: field, CLI: b.CLI, Why: fmt.Sprintf("%q is none of %s", value, strings.Join(right, ", "))}
}
