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
	opGlobs  = []string{"Bash", "Read", "mcp__*", "mcp__github__push", "*", "?ash"}
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

	operations = []string{"Bash", "Read", "mcp__github__push", "mcp__x__y", "WebFetch"}
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

func drawLevel(t *rapid.T, label string) call.Level { return rapid.SampledFrom(levels).Draw(t, label) }

func maybe(t *rapid.T, from []string, label string) string {
	if rapid.Bool().Draw(t, label+"?") {
		return rapid.SampledFrom(from).Draw(t, label)
	}
	return ""
}

func drawRule(t *rapid.T, name string) policy.Rule {
	r := policy.Rule{
		Name: name, Reason: "because", Level: drawLevel(t, "level"),
		Operation: maybe(t, opGlobs, "operation"), Command: maybe(t, cmdGlobs, "command"),
		Path: maybe(t, pathGlob, "path"), Host: maybe(t, hostGlob, "host"),
	}
	if r.Operation+r.Command+r.Path+r.Host == "" {
		r.Command = rapid.SampledFrom(cmdGlobs).Draw(t, "command")
	}
	return r
}

func drawEntry(t *rapid.T) string {
	name := rapid.SampledFrom(names).Draw(t, "capability")
	if rapid.Bool().Draw(t, "plain") {
		return name
	}
	pool := textGlob
	switch name {
	case "fs.read", "fs.write", "fs.delete":
		pool = pathGlob
	case "net.egress":
		pool = hostGlob
	case "proc.exec":
		pool = execGlob
	}
	return name + ":" + rapid.SampledFrom(pool).Draw(t, "scope")
}

func drawProfile(t *rapid.T) policy.Profile {
	p := policy.Profile{
		Base:         rapid.SampledFrom([]string{"", "supervised", "supervised", "autonomous"}).Draw(t, "base"),
		Capabilities: make(map[string]call.Level), Classes: make(map[string]call.Level),
	}
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		p.Capabilities[drawEntry(t)] = drawLevel(t, "level")
	}
	for range rapid.IntRange(0, 3).Draw(t, "classes") {
		p.Classes[rapid.SampledFrom(policy.Classes()).Draw(t, "class")] = drawLevel(t, "level")
	}
	return p
}

func draws[T any](t *rapid.T, from []T, label string) *T {
	if rapid.IntRange(0, 2).Draw(t, label+"?") > 0 {
		return nil
	}
	v := rapid.SampledFrom(from).Draw(t, label)
	return &v
}

// drawFile draws a whole policy file.
func drawFile(t *rapid.T) *policy.File {
	f := &policy.File{Version: 1}
	f.Capabilities = map[string]policy.CapabilityDef{"data.attachment": {Sentence: "read attachments"}}
	f.Profiles = map[string]policy.Profile{"mine": drawProfile(t)}
	f.Profile = rapid.SampledFrom([]string{"", "supervised", "autonomous", "mine", "mine", "mine"}).Draw(t, "profile")
	f.Isolation = rapid.SampledFrom([]string{"", "none", "container"}).Draw(t, "isolation")
	f.Mode = rapid.SampledFrom([]string{"", "", "enforce", "observe"}).Draw(t, "mode")
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		f.Rules = append(f.Rules, drawRule(t, fmt.Sprintf("r%d", i)))
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
	f.Adjustable = rapid.SampledFrom([][]string{nil, {"profile"}, {"rules", "risk"}, {"profile", "mode", "isolation", "capabilities", "limits"}}).Draw(t, "adjustable")
	return f
}

// drawEdit changes a file a little, so that pairs of files are often close.
func drawEdit(t *rapid.T, f *policy.File) *policy.File {
	g := *f
	g.Rules, g.Operations = slices.Clone(f.Rules), maps.Clone(f.Operations)
	mine := f.Profiles["mine"]
	mine.Capabilities, mine.Classes = maps.Clone(mine.Capabilities), maps.Clone(mine.Classes)
	g.Profiles = map[string]policy.Profile{"mine": mine}
	for range rapid.IntRange(0, 3).Draw(t, "edits") {
		switch rapid.IntRange(0, 10).Draw(t, "edit") {
		case 0:
			g.Rules = append(g.Rules, drawRule(t, fmt.Sprintf("n%d", len(g.Rules))))
		case 1:
			if len(g.Rules) > 0 {
				i := rapid.IntRange(0, len(g.Rules)-1).Draw(t, "i")
				g.Rules = slices.Delete(g.Rules, i, i+1)
			}
		case 2:
			if len(g.Rules) > 0 {
				r := &g.Rules[rapid.IntRange(0, len(g.Rules)-1).Draw(t, "i")]
				r.Level = drawLevel(t, "level")
			}
		case 3, 4:
			if len(g.Rules) > 0 {
				r := &g.Rules[rapid.IntRange(0, len(g.Rules)-1).Draw(t, "i")]
				switch {
				case r.Path != "":
					r.Path = rapid.SampledFrom(pathGlob).Draw(t, "path")
				case r.Host != "":
					r.Host = rapid.SampledFrom(hostGlob).Draw(t, "host")
				case r.Command != "":
					r.Command = rapid.SampledFrom(cmdGlobs).Draw(t, "command")
				default:
					r.Operation = rapid.SampledFrom(opGlobs).Draw(t, "operation")
				}
			}
		case 5, 6:
			mine.Capabilities[drawEntry(t)] = drawLevel(t, "level")
		case 7:
			if len(mine.Capabilities) > 0 {
				delete(mine.Capabilities, rapid.SampledFrom(slices.Sorted(maps.Keys(mine.Capabilities))).Draw(t, "entry"))
			}
		case 8:
			mine.Classes[rapid.SampledFrom(policy.Classes()).Draw(t, "class")] = drawLevel(t, "level")
		case 9:
			g.Operations["delete_element"] = call.Deny
		case 10:
			g.Profile = rapid.SampledFrom([]string{"supervised", "autonomous", "mine"}).Draw(t, "profile")
		}
	}
	return &g
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
