package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Directories that stand for the real ones while a file is checked by itself.
const (
	checkHome      = "/home/user"
	checkWorkspace = "/workspace"
)

var (
	modes        = []string{"enforce", "observe"}
	attendances  = []string{"interactive", "unattended"}
	isolations   = []string{"none", "container", "vm"}
	noticeKinds  = []string{"desktop", "webhook"}
	noticeForms  = []string{"json", "slack", "ntfy"}
	builtinNames = []string{profileSupervised, profileAutonomous}
)

// Classes lists the shell classes, the most harmless first.
func Classes() []string {
	return []string{classSafe, classMutating, classNetwork, classDestructive, classUnknown}
}

// HostNames lists the agent hosts that a policy can have settings for.
func HostNames() []string {
	return []string{"claude", "codex", "copilot", "cursor", "gemini", "grok", "vibe", "vscode", "windsurf"}
}

// Limits of a file. Policies are compared pattern by pattern, so their number
// is bounded.
const (
	maxRules   = 1000
	maxEntries = 1000
)

// checker collects what is wrong in a file that could be read.
type checker struct {
	f        *File
	problems Problems
	// failed holds the paths that could not be read and were reported.
	failed map[string]bool
}

// check looks for everything that can be wrong in a file by itself. Names of
// profiles are looked up when layers are put together, since a file may use
// the profiles of the layers above it.
func (f *File) check(failed map[string]bool) Problems {
	c := checker{f: f, failed: failed}
	if f.Version != 1 && (f.Version != 0 || f.at["version"] != position{}) {
		c.add("version", "this gate reads version = 1", "version %d is not known", f.Version)
	}
	c.oneOf("mode", f.Mode, modes)
	c.oneOf("attendance", f.Attendance, attendances)
	c.oneOf("isolation", f.Isolation, isolations)
	c.capabilities()
	c.tools()
	c.profiles()
	c.rules()
	c.operations()
	c.risk()
	c.limits()
	c.watching()
	c.dispatch()
	c.cacheAwareness()
	for _, name := range slices.Sorted(maps.Keys(f.Hosts)) {
		if !slices.Contains(HostNames(), name) {
			c.add(join("hosts", name), orList(name, HostNames()), "unknown agent host %q", name)
		}
	}
	c.output()
	c.redact()
	c.notify()
	for i, key := range f.Adjustable {
		if !slices.Contains(adjustableKeys(), key) {
			c.add(join("adjustable", strconv.Itoa(i)), orList(key, adjustableKeys()), "unknown setting %q", key)
		}
	}
	c.tests()
	return c.problems
}

func (c *checker) add(path, hint, format string, args ...any) {
	if !c.failed[path] {
		c.problems = append(c.problems, c.f.problem(path, hint, format, args...))
	}
}

// orList names the nearest right word, or all of them.
func orList(word string, right []string) string {
	if hint := didYouMean(word, right); hint != "" {
		return hint
	}
	return "use one of " + strings.Join(right, ", ")
}

// oneOf checks a setting with a few values; "" is left out.
func (c *checker) oneOf(path, value string, right []string) {
	if value != "" && !slices.Contains(right, value) {
		c.add(path, orList(value, right), "%s cannot be %q", lastKey(path), value)
	}
}

// known reports whether the file knows a capability.
func (f *File) known(name call.Capability) bool {
	_, own := f.Capabilities[string(name)]
	return own || slices.Contains(call.Capabilities(), name)
}

// capabilityNames lists what a file can write for a capability.
func (f *File) capabilityNames() []string {
	var names []string
	for _, c := range call.Capabilities() {
		names = append(names, string(c))
	}
	return append(names, slices.Sorted(maps.Keys(f.Capabilities))...)
}

func (c *checker) tools() {
	for _, name := range slices.Sorted(maps.Keys(c.f.Tools)) {
		if op := c.f.Tools[name]; !slices.Contains(call.HostOperations(), op) {
			c.add(join("tools", name), orList(op, call.HostOperations()), "unknown operation %q", op)
		}
		if call.FoldTool(name) != name {
			c.add(join("tools", name), "", "%s is a tool of a host, which the gate knows", name)
		}
	}
}

func (c *checker) capabilities() {
	for _, name := range slices.Sorted(maps.Keys(c.f.Capabilities)) {
		def, path := c.f.Capabilities[name], join("capabilities", name)
		if !validName(name, '.') || !strings.Contains(name, ".") {
			c.add(path, "write it like data.attachment", "%q cannot be the name of a capability", name)
		}
		if builtin := slices.Contains(call.Capabilities(), call.Capability(name)); builtin && def.Sentence != "" {
			c.add(join(path, "sentence"), "leave it out", "the sentence of %s is built in", name)
		} else if !builtin && strings.TrimSpace(def.Sentence) == "" {
			c.add(path, `such as sentence = "read attachments"`, "the capability %s needs a sentence", name)
		}
		for i, p := range def.Paths {
			if _, err := compilePattern(kindPath, p, checkHome); err != nil {
				c.add(join(path, "paths", strconv.Itoa(i)), "", "%v", err)
			}
		}
		for key, globs := range map[string][]string{"fields": def.Fields, "tools": def.Tools, "variables": def.Variables} {
			for i, g := range globs {
				if _, err := match.CompileOp(g); err != nil {
					c.add(join(path, key, strconv.Itoa(i)), "", "%v", err)
				}
			}
		}
	}
}

// validName reports whether a name has letters, digits, dashes, underscores
// and the further characters only, and starts with a letter.
func validName(name string, further ...rune) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		inner := r >= '0' && r <= '9' || r == '-' || r == '_' || slices.Contains(further, r)
		if !letter && (i == 0 || !inner) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func (c *checker) profiles() {
	for _, name := range slices.Sorted(maps.Keys(c.f.Profiles)) {
		p, path := c.f.Profiles[name], join("profiles", name)
		switch {
		case !validName(name):
			c.add(path, "use letters, digits, - and _", "%q cannot be the name of a profile", name)
		case slices.Contains(builtinNames, name) && !c.f.shipped:
			c.add(path, fmt.Sprintf("give yours another name and base = %q", name), "the profile %s is built in", name)
		}
		if len(p.Capabilities) > maxEntries {
			c.add(path, "", "the profile %s has %d entries; the limit is %d", name, len(p.Capabilities), maxEntries)
		}
		for _, entry := range slices.Sorted(maps.Keys(p.Capabilities)) {
			c.entry(join(path, "capabilities", entry), entry)
		}
		for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
			if !slices.Contains(Classes(), class) {
				c.add(join(path, "classes", class), orList(class, Classes()), "unknown class %q", class)
			}
		}
	}
}

// entry checks capability:scope as it stands in a profile or a test.
func (c *checker) entry(path, entry string) {
	n := call.ParseNeed(entry)
	if !c.f.known(n.Capability) {
		hint := orList(string(n.Capability), c.f.capabilityNames())
		c.add(path, hint+"; capabilities of your own are declared under [capabilities]", "unknown capability %q", n.Capability)
		return
	}
	if !strings.Contains(entry, ":") {
		return
	}
	if _, err := compilePattern(scopeKind(n.Capability, n.Scope), n.Scope, checkHome); err != nil {
		c.add(path, "", "%s: %v", n.Capability, err)
	}
}

func (c *checker) operations() {
	for _, name := range slices.Sorted(maps.Keys(c.f.Operations)) {
		path := join("operations", name)
		if c.f.Operations[name] != call.Deny {
			c.add(path, "only DENY can stand here; the active elements say the rest", "%s cannot be %s", name, c.f.Operations[name])
		}
		glob, err := match.CompileOp(name)
		if err != nil {
			c.add(path, "", "%v", err)
			continue
		}
		if op, ok := call.LookupOperation(name); ok && op.Ungatable {
			c.add(path, "", "%s is part of the recovery path, which no policy reaches", name)
		}
		if !slices.ContainsFunc(call.OperationNames(), glob.Match) {
			c.add(path, didYouMean(name, call.OperationNames()), "unknown operation %q", name)
		}
	}
}

func (c *checker) risk() {
	r := c.f.Risk
	if r == nil {
		return
	}
	if r.ConfirmAt != nil && (*r.ConfirmAt < 0 || *r.ConfirmAt > 101) {
		c.add(join("risk", "confirm_at"), "", "confirm_at must lie between 0 and 101; 101 is never")
	}
	if r.DenyAt != nil && (*r.DenyAt < 0 || *r.DenyAt > 100) {
		c.add(join("risk", "deny_at"), "", "deny_at must lie between 0 and 100; 0 is never")
	}
}

// maxLimit is more than any of the numbers needs to be.
const maxLimit = 1 << 20

func (c *checker) limits() {
	l := c.f.Limits
	if l == nil {
		return
	}
	for key, v := range map[string]*int{
		"pending_per_session": l.PendingPerSession, "pending_per_principal": l.PendingPerPrincipal, "asks_per_hour": l.AsksPerHour,
		"restore_point_mib": l.RestorePointMiB, "restore_total_mib": l.RestoreTotalMiB, "restore_points": l.RestorePoints,
	} {
		if v != nil && *v <= 0 {
			c.add(join("limits", key), "", "%s must be more than 0: attention is bounded, and never by nothing", key)
		}
		if v != nil && *v > maxLimit {
			c.add(join("limits", key), "", "%s is more than %d, which is no limit", key, maxLimit)
		}
	}
	for key, v := range map[string]*Duration{
		"request_life": l.RequestLife, "grant_life": l.GrantLife, "session_grant_life": l.SessionGrantLife,
		"taint_life": l.TaintLife, "restore_age": l.RestoreAge,
	} {
		if v != nil && *v <= 0 {
			c.add(join("limits", key), `write it like "15m"`, "%s must be longer than nothing", key)
		}
	}
}

// watching checks the danger zone and how far executions go.
func (c *checker) watching() {
	if d := c.f.Danger; d != nil {
		c.oneOf(join("danger", "strictness"), d.Strictness, strictnesses)
	}
	if a := c.f.Autonomy; a != nil {
		c.oneOf(join("autonomy", "risk_tolerance"), a.RiskTolerance, tolerances)
		if a.MaxSteps != nil && (*a.MaxSteps < 1 || *a.MaxSteps > 1000) {
			c.add(join("autonomy", "max_steps"), "", "max_steps must lie between 1 and 1000: there is no execution without end")
		}
	}
}

func (c *checker) redact() {
	if c.f.Redact == nil {
		return
	}
	for i, field := range c.f.Redact.Fields {
		if strings.TrimSpace(field) == "" {
			c.add(join("redact", "fields", strconv.Itoa(i)), "", "the name of a field is empty")
		}
	}
}

func (c *checker) notify() {
	for i, n := range c.f.Notify {
		path := join("notify", strconv.Itoa(i))
		c.oneOf(join(path, "kind"), n.Kind, noticeKinds)
		c.oneOf(join(path, "format"), n.Format, noticeForms)
		switch {
		case n.Kind == "webhook":
			c.webhook(join(path, "url"), n.URL)
		case n.URL != "" || n.Format != "":
			c.add(path, "", "url and format belong to a webhook")
		}
	}
}

// webhook checks where notices go: they name what agents do, so they travel
// encrypted or stay on this machine.
func (c *checker) webhook(path, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		c.add(path, "such as https://hooks.example.com/gate", "a webhook needs a URL")
		return
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		c.add(path, "use https", "a webhook to another machine must be encrypted")
	}
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
