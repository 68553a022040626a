package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// The pools are small, so that what is drawn collides often: most of the ways
// a policy can go wrong need a pattern and a call that meet.
var (
	levels   = []call.Level{call.Deny, call.ConfirmSingleUse, call.ConfirmSession, call.AutoApprove}
	opGlobs  = []string{"Bash", "shell", "Read", "file.*", "mcp__*", "mcp__github__push", "*", "?ash", "Re*"}
	cmdGlobs = []string{"git push*", "git *", "git push --force", "rm *", "*", "make", "git push"}
	pathGlob = []string{
		"./**", "./src/**", "./src/*.go", "./src/[ab].go", "./.env", ".", "./{src,test}/**", "./src/**/a.go",
		"**/.env", "**/*.go", "/**", "/etc/**", "/etc/passwd", "/[e]tc/passwd", "/{etc,usr}/**", "/e*/**", "/*/passwd", "~/.ssh/**", "~/**",
	}
	hostGlob = []string{
		"api.example.com", "api.example.com:443", "api.example.com:*", "*.example.com", "*.example.com:*",
		"*", "*:*", ":443", "10.0.0.0/8", "10.0.0.0/8:*", "10.1.2.3:22", "[::1]:80",
	}
	execGlob = []string{"git", "git *", "git push", "*", "/usr/bin/git*", "rm"}
	textGlob = []string{"**/.env", "TOKEN", "*", "./secret/**"}
	names    = []string{"fs.read", "fs.write", "fs.delete", "net.egress", "proc.exec", "data.user", "secrets.access", "data.attachment"}

	operations = []string{"shell", "file.read", "mcp__github__push", "mcp__x__y", "web.fetch"}
	commands   = []string{"git push --force", "git push", "git status", "rm -rf build", "make", "ls"}
	paths      = []string{
		"", "/w/src/a.go", "/w/src/b.go", "/w/src/deep/a.go", "./src/a.go", "./.env", "/w/.env", "/w/sub/.ENV", "/w", "/w/src", "/w/src/**", "/w/**", "./**", "./src/**",
		"/etc/passwd", "/ETC/passwd", "/etc/**", "/usr/bin/x", "/", "/**", "/home/u/.ssh/id", "/home/u/**", "/w/../etc/passwd", "src/a.go", "/w/src/[a].go", "/w/src/*.go",
	}
	hosts = []string{
		"", "api.example.com:443", "https://api.example.com/x", "api.example.com", "API.example.com:8080", "example.com:443", "10.1.2.3:22", "10.1.2.3",
		"[::ffff:10.1.2.3]:22", "[::1]:80", "a b", "https://u@api.example.com:443",
	}
	programs = []string{"", "git", "git push", "/usr/bin/git push", "rm", "sh"}
	texts    = []string{"", "TOKEN", "/w/secret/x", "/w/.env", "./secret/**", "other"}
)

// pools are what patterns are drawn from.
type pools struct{ ops, cmds, paths, hosts, execs, texts, names []string }

var allPools = pools{opGlobs, cmdGlobs, pathGlob, hostGlob, execGlob, textGlob, names}

// drawPools picks a few patterns of each sort, so that two files that are
// drawn from them speak about the same things.
func drawPools(t *rapid.T) pools {
	few := func(from []string, label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, 3, rapid.ID).Draw(t, label)
	}
	return pools{
		few(opGlobs, "operations"), few(cmdGlobs, "commands"), few(pathGlob, "paths"), few(hostGlob, "hosts"),
		few(execGlob, "programs"), few(textGlob, "texts"), few(names, "capabilities"),
	}
}

func drawLevel(t *rapid.T, label string) call.Level { return rapid.SampledFrom(levels).Draw(t, label) }

func maybe(t *rapid.T, from []string, label string) string {
	if rapid.Bool().Draw(t, label+"?") {
		return rapid.SampledFrom(from).Draw(t, label)
	}
	return ""
}

func drawRule(t *rapid.T, name string) policy.Rule { return allPools.rule(t, name) }

func (p pools) rule(t *rapid.T, name string) policy.Rule {
	r := policy.Rule{
		Name: name, Reason: "because", Level: drawLevel(t, "level"),
		Operation: maybe(t, p.ops, "operation"), Command: maybe(t, p.cmds, "command"),
		Path: maybe(t, p.paths, "path"), Host: maybe(t, p.hosts, "host"),
	}
	if r.Operation+r.Command+r.Path+r.Host == "" {
		r.Command = rapid.SampledFrom(p.cmds).Draw(t, "command")
	}
	return r
}

func (p pools) entry(t *rapid.T) string {
	name := rapid.SampledFrom(p.names).Draw(t, "capability")
	if rapid.IntRange(0, 2).Draw(t, "plain") == 0 {
		return name
	}
	pool := p.texts
	switch name {
	case "fs.read", "fs.write", "fs.delete":
		pool = p.paths
	case "net.egress":
		pool = p.hosts
	case "proc.exec":
		pool = p.execs
	}
	return name + ":" + rapid.SampledFrom(pool).Draw(t, "scope")
}

func (p pools) profile(t *rapid.T) policy.Profile {
	prof := policy.Profile{
		Base:         rapid.SampledFrom([]string{"", "supervised", "supervised", "autonomous"}).Draw(t, "base"),
		Capabilities: make(map[string]call.Level), Classes: make(map[string]call.Level),
	}
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		prof.Capabilities[p.entry(t)] = drawLevel(t, "level")
	}
	for range rapid.IntRange(0, 3).Draw(t, "classes") {
		prof.Classes[rapid.SampledFrom(policy.Classes()).Draw(t, "class")] = drawLevel(t, "level")
	}
	return prof
}

func draws[T any](t *rapid.T, from []T, label string) *T {
	if rapid.IntRange(0, 2).Draw(t, label+"?") > 0 {
		return nil
	}
	v := rapid.SampledFrom(from).Draw(t, label)
	return &v
}

// drawFile draws a whole policy file.
func drawFile(t *rapid.T) *policy.File { return allPools.file(t) }

func (p pools) file(t *rapid.T) *policy.File {
	f := &policy.File{Version: 1}
	f.Capabilities = map[string]policy.CapabilityDef{"data.attachment": {Sentence: "read attachments"}}
	f.Profiles = map[string]policy.Profile{"mine": p.profile(t)}
	f.Profile = rapid.SampledFrom([]string{"", "supervised", "autonomous", "mine", "mine", "mine"}).Draw(t, "profile")
	f.Isolation = rapid.SampledFrom([]string{"", "none", "container"}).Draw(t, "isolation")
	f.Mode = rapid.SampledFrom([]string{"", "", "enforce", "observe"}).Draw(t, "mode")
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		f.Rules = append(f.Rules, p.rule(t, fmt.Sprintf("r%d", i)))
	}
	f.Operations = make(map[string]call.Level)
	for range rapid.IntRange(0, 2).Draw(t, "operations") {
		f.Operations[rapid.SampledFrom([]string{"delete_element", "*_element", "create_element", "query_*", "search"}).Draw(t, "operation")] = call.Deny
	}
	f.Risk = &policy.Risk{
		ConfirmAt: draws(t, []int{0, 30, 61, 90, 101}, "confirm_at"), DenyAt: draws(t, []int{0, 50, 95}, "deny_at"),
		Irreversible: draws(t, levels, "irreversible"),
	}
	life := policy.Duration(time.Minute)
	f.Limits = &policy.Limits{AsksPerHour: draws(t, []int{1, 60, 100}, "asks"), GrantLife: draws(t, []policy.Duration{life, 5 * life}, "life")}
	f.Danger = &policy.Danger{Strictness: rapid.SampledFrom([]string{"", "", "minimal", "standard", "elevated", "maximum"}).Draw(t, "strictness")}
	f.Autonomy = &policy.Autonomy{RiskTolerance: rapid.SampledFrom([]string{"", "", "conservative", "aggressive"}).Draw(t, "tolerance"), MaxSteps: draws(t, []int{3, 10, 20}, "steps")}
	f.Output = drawOutput(t)
	f.Adjustable = rapid.SampledFrom([][]string{nil, {"profile"}, {"rules", "risk", "output"}, {"profile", "mode", "isolation", "capabilities", "limits"}}).Draw(t, "adjustable")
	return f
}

// edit changes a file a little, so that pairs of files are often close.
func (p pools) edit(t *rapid.T, f *policy.File) *policy.File {
	g := *f
	g.Rules, g.Operations = slices.Clone(f.Rules), maps.Clone(f.Operations)
	mine := f.Profiles["mine"]
	mine.Capabilities, mine.Classes = maps.Clone(mine.Capabilities), maps.Clone(mine.Classes)
	g.Profiles = map[string]policy.Profile{"mine": mine}
	for range rapid.IntRange(1, 2).Draw(t, "edits") {
		switch kind := rapid.IntRange(0, 9).Draw(t, "edit"); {
		case kind == 0:
			g.Rules = append(g.Rules, p.rule(t, fmt.Sprintf("n%d", len(g.Rules))))
		case kind <= 3 && len(g.Rules) > 0:
			g.Rules = p.editRules(t, g.Rules)
		case kind <= 5:
			mine.Capabilities[p.entry(t)] = drawLevel(t, "level")
		case kind <= 7 && len(mine.Capabilities) > 0:
			p.editEntries(t, mine.Capabilities)
		case kind == 8:
			mine.Classes[rapid.SampledFrom(policy.Classes()).Draw(t, "class")] = drawLevel(t, "level")
		default:
			g.Profile = rapid.SampledFrom([]string{"supervised", "autonomous", "mine", "mine"}).Draw(t, "profile")
			g.Operations["delete_element"] = call.Deny
			g.Output = drawOutput(t)
		}
	}
	return &g
}

// editRules drops a rule, changes its level or one of its patterns.
func (p pools) editRules(t *rapid.T, rules []policy.Rule) []policy.Rule {
	i := rapid.IntRange(0, len(rules)-1).Draw(t, "rule")
	r := &rules[i]
	switch kind := rapid.IntRange(0, 6).Draw(t, "edit rule"); {
	case kind == 0:
		return slices.Delete(rules, i, i+1)
	case kind == 1:
		r.Level = drawLevel(t, "level")
	case kind == 2:
		r.Operation = maybe(t, p.ops, "operation")
	case kind <= 4 && r.Path != "":
		r.Path = rapid.SampledFrom(p.paths).Draw(t, "path")
	case r.Host != "":
		r.Host = rapid.SampledFrom(p.hosts).Draw(t, "host")
	default:
		r.Command = rapid.SampledFrom(p.cmds).Draw(t, "command")
	}
	if r.Operation+r.Command+r.Path+r.Host == "" {
		r.Command = rapid.SampledFrom(p.cmds).Draw(t, "command")
	}
	return rules
}

// editEntries drops an entry, changes its level or moves it to another scope.
func (p pools) editEntries(t *rapid.T, entries map[string]call.Level) {
	entry := rapid.SampledFrom(slices.Sorted(maps.Keys(entries))).Draw(t, "entry")
	switch level := entries[entry]; rapid.IntRange(0, 2).Draw(t, "edit entry") {
	case 0:
		delete(entries, entry)
	case 1:
		entries[entry] = drawLevel(t, "level")
	default:
		delete(entries, entry)
		entries[p.entry(t)] = level
	}
}

func drawNeed(t *rapid.T) call.Need {
	n := call.Need{Capability: call.Capability(rapid.SampledFrom(names).Draw(t, "capability")), Inside: rapid.Bool().Draw(t, "inside")}
	pool := texts
	switch n.Capability {
	case call.FSRead, call.FSWrite, call.FSDelete:
		pool = paths
	case call.NetEgress:
		pool = hosts
	case call.ProcExec:
		pool = programs
	}
	n.Scope = rapid.SampledFrom(pool).Draw(t, "scope")
	return n
}

func drawFacts(t *rapid.T) *facts.Facts {
	f := &facts.Facts{
		Workspace:    rapid.SampledFrom([]string{"/w", "/w", "", "/"}).Draw(t, "workspace"),
		Class:        rapid.SampledFrom(append(policy.Classes(), "")).Draw(t, "class"),
		Commands:     rapid.SliceOfN(rapid.SampledFrom(commands), 0, 2).Draw(t, "commands"),
		Risk:         rapid.IntRange(0, 100).Draw(t, "risk"),
		Irreversible: rapid.IntRange(0, 3).Draw(t, "irreversible") == 0,
		Outside:      rapid.IntRange(0, 5).Draw(t, "outside") == 0,
		TakesCode:    rapid.Bool().Draw(t, "code"),
		Change:       rapid.SampledFrom([]facts.Change{facts.MayLoosen, facts.LoosensNothing}).Draw(t, "change"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "needs") {
		f.Needs = append(f.Needs, drawNeed(t))
	}
	if rapid.IntRange(0, 9).Draw(t, "finding") == 0 {
		f.Findings = []facts.Finding{{Severity: rapid.SampledFrom([]facts.Severity{facts.High, facts.Medium, facts.Low}).Draw(t, "severity"), Category: "x", Rule: "x"}}
	}
	return f
}

var nativeNames = func() []string {
	var n []string
	for _, op := range call.Operations() {
		n = append(n, op.Name)
	}
	return n
}()

// drawInput draws a call of any kind with its facts.
func drawInput(t *rapid.T) *policy.Input {
	c := &call.Call{
		Kind:      rapid.SampledFrom([]call.Kind{call.External, call.External, call.External, call.Native, call.Dispatch}).Draw(t, "kind"),
		Surface:   "test",
		Principal: call.Principal{Agent: "a", Session: "s"},
		Operation: rapid.SampledFrom(operations).Draw(t, "operation"),
		Dir:       rapid.SampledFrom([]string{"", "/w", "/w/src"}).Draw(t, "dir"),
	}
	if c.Kind == call.Native {
		c.Operation = rapid.SampledFrom(nativeNames).Draw(t, "native")
		c.ElementType = rapid.SampledFrom(append(call.ElementTypes(), "")).Draw(t, "type")
	}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	return &policy.Input{Call: c, Facts: drawFacts(t), Digest: c.Digest(), Elements: element.Compile(drawElements(t, 3))}
}

func drawElement(t *rapid.T, name string) element.Element {
	list := rapid.SliceOfN(rapid.SampledFrom([]string{
		"create_element", "delete_element", "*", "*_element", "execute_agent", "edit_element", "confirm_operation",
		"verify_challenge", "permission_prompt", "addEntry", "add_entry", "clear", "get_element", "continue_execution",
	}), 0, 2)
	e := element.Element{Type: rapid.SampledFrom(call.ElementTypes()).Draw(t, "element type"), Name: name}
	e.Lists = element.Lists{Allow: list.Draw(t, "allow"), Confirm: list.Draw(t, "confirm"), Deny: list.Draw(t, "deny")}
	types := rapid.SliceOfN(rapid.SampledFrom(append(call.ElementTypes(), "personas")), 0, 2)
	if rapid.IntRange(0, 2).Draw(t, "scoped") == 0 {
		e.Scope = element.Scope{AllowedTypes: types.Draw(t, "allowed"), BlockedTypes: types.Draw(t, "blocked")}
	}
	if rapid.IntRange(0, 5).Draw(t, "broken") == 0 {
		e.Quarantine = "it does not parse"
	}
	return e
}

func drawElements(t *rapid.T, most int) []element.Element {
	var all []element.Element
	for i := range rapid.IntRange(0, most).Draw(t, "elements") {
		all = append(all, drawElement(t, fmt.Sprintf("e%d", i)))
	}
	return all
}

var options = policy.Options{Home: "/home/u"}

// drawLayers draws one to three layers.
func drawLayers(t *rapid.T) []policy.Layer {
	var layers []policy.Layer
	for range rapid.IntRange(0, 3).Draw(t, "layers") {
		layers = append(layers, policy.Layer{
			Scope: policy.Scope(rapid.IntRange(0, 3).Draw(t, "scope")), File: drawFile(t), Trusted: rapid.Bool().Draw(t, "trusted"),
		})
	}
	return layers
}

// everyNeed lists a need for each capability and scope of the pools.
func everyNeed() []call.Need {
	var all []call.Need
	for _, name := range names {
		n := call.Need{Capability: call.Capability(name)}
		pool := texts
		switch n.Capability {
		case call.FSRead, call.FSWrite, call.FSDelete:
			pool = paths
		case call.NetEgress:
			pool = hosts
		case call.ProcExec:
			pool = programs
		}
		for _, n.Scope = range pool {
			for _, n.Inside = range []bool{false, true} {
				all = append(all, n)
			}
		}
	}
	return all
}

// sweep calls f with an external call for every need and every class, and for
// every command, operation and class. What is not swept is drawn.
func sweep(t *rapid.T, f func(*policy.Input)) {
	classes := append(policy.Classes(), "")
	c := &call.Call{Kind: call.External, Surface: "test", Principal: call.Principal{Agent: "a", Session: "s"}, Dir: "/w"}
	in := &policy.Input{Call: c, Facts: &facts.Facts{}, Digest: call.Digest{1}}
	try := func(operation, class, workspace string, commands []string, needs ...call.Need) {
		c.Operation = operation
		*in.Facts = facts.Facts{Class: class, Workspace: workspace, Commands: commands, Needs: needs}
		f(in)
	}
	operation, workspace := rapid.SampledFrom(operations).Draw(t, "operation"), rapid.SampledFrom([]string{"/w", "/w", "/w", ""}).Draw(t, "workspace")
	said := rapid.SliceOfN(rapid.SampledFrom(commands), 0, 2).Draw(t, "commands")
	further := rapid.SliceOfN(rapid.Custom(drawNeed), 0, 1).Draw(t, "further need")
	for _, n := range everyNeed() {
		for _, class := range classes {
			try(operation, class, workspace, said, append([]call.Need{n}, further...)...)
		}
	}
	for _, operation := range operations {
		for _, first := range commands {
			for _, class := range classes {
				try(operation, class, workspace, []string{first}, further...)
				try(operation, class, workspace, append([]string{first}, said...), further...)
			}
		}
	}
}
