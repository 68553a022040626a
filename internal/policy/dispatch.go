package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// Dispatch says how requests to agent CLIs are judged and run.
type Dispatch struct {
	// Profile is hardened or classic.
	Profile string `toml:"profile,omitempty" json:"profile,omitempty" jsonschema:"How requests are scored: hardened, or classic as the public skill says."`
	// Policy is the threshold where neither a bound nor the caller says
	// anything stricter.
	Policy string `toml:"policy,omitempty" json:"policy,omitempty" jsonschema:"The highest score that is let through: strict (2), balanced (5) or permissive (7). A caller can only ask for a stricter one."`
	// Over is what becomes of a request whose score is over the threshold.
	Over string `toml:"over,omitempty" json:"over,omitempty" jsonschema:"What becomes of a request whose score is over the threshold: deny, or ask a person."`
	// CLIEffects is gated or classic.
	CLIEffects string `toml:"cli_effects,omitempty" json:"cli_effects,omitempty" jsonschema:"gated: every tool call inside the run is decided, too; classic: the CLI runs with the permissive flags of the public skill."`
	// Confine has every run put into a sandbox, whatever a request says.
	Confine *bool `toml:"confine,omitempty" json:"confine,omitempty" jsonschema:"Every run is confined to its directory and its models, whether a request asks for it or not."`
	// Weights and Servers replace points of the score's table.
	Weights map[string]int `toml:"weights,omitempty" json:"weights,omitempty" jsonschema:"Points of factors, such as keywords = 5."`
	Servers map[string]int `toml:"servers,omitempty" json:"servers,omitempty" jsonschema:"Points of MCP servers, such as exa = 4; the star stands for those not named."`
	// Bounds limit the threshold by CLI, agent and workspace.
	Bounds []DispatchBound `toml:"bounds,omitempty" json:"bounds,omitempty" jsonschema:"The strictest and the loosest threshold by CLI, agent and workspace."`
	// MaxRunning and the others bound how many jobs there are.
	MaxRunning       *int `toml:"max_running,omitempty" json:"max_running,omitempty" jsonschema:"How many CLIs run at once."`
	MaxRunningPerCLI *int `toml:"max_running_per_cli,omitempty" json:"max_running_per_cli,omitempty" jsonschema:"How many of one CLI run at once."`
	MaxQueued        *int `toml:"max_queued,omitempty" json:"max_queued,omitempty" jsonschema:"How many requests wait for one that ends."`
}

// DispatchBound holds the threshold between two for some requests. What it
// leaves out it holds for all.
type DispatchBound struct {
	CLI       string `toml:"cli,omitempty" json:"cli,omitempty" jsonschema:"The CLI; any if left out."`
	Principal string `toml:"principal,omitempty" json:"principal,omitempty" jsonschema:"A glob over the names of agents; any if left out."`
	Workspace string `toml:"workspace,omitempty" json:"workspace,omitempty" jsonschema:"A directory; the bound holds for it and all below it."`
	// Floor is the strictest that the operator's own threshold is taken for,
	// Ceiling the loosest. What the caller asks for comes on top and is only
	// ever stricter.
	Floor   string `toml:"floor,omitempty" json:"floor,omitempty" jsonschema:"The strictest that the operator's threshold is taken for here."`
	Ceiling string `toml:"ceiling,omitempty" json:"ceiling,omitempty" jsonschema:"The loosest threshold here."`
	Over    string `toml:"over,omitempty" json:"over,omitempty" jsonschema:"deny or ask, in place of what holds elsewhere."`
}

// DispatchSettings are the resolved values of all layers.
type DispatchSettings struct {
	Profile, Policy, Over, CLIEffects       string
	Confine                                 bool
	Weights, Servers                        map[string]int
	Bounds                                  []DispatchBound
	MaxRunning, MaxRunningPerCLI, MaxQueued int
}

// The words of the dispatch settings, the loosest first.
var (
	dispatchProfiles = []string{risk.Classic, risk.Hardened}
	dispatchPolicies = []string{"permissive", "balanced", "strict"}
	dispatchOvers    = []string{overAsk, overDeny}
	dispatchEffects  = []string{EffectsClassic, EffectsGated}
)

const overAsk, overDeny = "ask", "deny"

// How a CLI is started.
const (
	// EffectsGated has every tool call inside the run decided.
	EffectsGated = "gated"
	// EffectsClassic starts the CLI with the public skill's permissive flags.
	EffectsClassic = "classic"
)

func dispatchDefaults() DispatchSettings {
	return DispatchSettings{
		Profile: risk.Hardened, Policy: risk.DefaultPolicy, Over: overDeny, CLIEffects: EffectsGated,
		MaxRunning: 32, MaxRunningPerCLI: 16, MaxQueued: 128,
	}
}

// Weigh is what the policy gives to the factors of the score.
func (d *DispatchSettings) Weigh() *risk.Weights {
	return &risk.Weights{Points: d.Weights, Servers: d.Servers}
}

// Threshold is the policy that a request is judged by, and the level of one
// whose score is over it. The caller's wish counts where it is stricter.
func (d *DispatchSettings) Threshold(cli, agent, workspace, wanted string) (policy string, over call.Level) {
	policy, over = d.Policy, overLevels[d.Over]
	floor, ceiling, said := "", dispatchPolicies[0], call.AutoApprove
	for i := range d.Bounds {
		b := &d.Bounds[i]
		if !b.holds(cli, agent, workspace) {
			continue
		}
		switch {
		case b.Floor == "":
		case floor == "":
			floor = b.Floor
		default:
			floor = risk.Stricter(floor, b.Floor)
		}
		if b.Ceiling != "" {
			ceiling = risk.Stricter(ceiling, b.Ceiling)
		}
		if b.Over != "" {
			said = call.Join(said, overLevels[b.Over])
		}
	}
	if floor != "" && risk.Stricter(policy, floor) == policy {
		policy = floor
	}
	policy = risk.Stricter(policy, ceiling)
	if wanted != "" {
		policy = risk.Stricter(policy, wanted)
	}
	if said != call.AutoApprove {
		over = said
	}
	return policy, over
}

// overLevels: what is none of the words denies.
var overLevels = map[string]call.Level{overDeny: call.Deny, overAsk: call.ConfirmSingleUse}

func (b *DispatchBound) holds(cli, agent, workspace string) bool {
	if b.CLI != "" && b.CLI != cli {
		return false
	}
	if b.Principal != "" {
		glob, err := match.CompileOp(b.Principal)
		if err != nil || !glob.Match(agent) {
			return err != nil // a file with such a glob is not loaded
		}
	}
	root := path.Clean(b.Workspace)
	return b.Workspace == "" || workspace == root || strings.HasPrefix(workspace, strings.TrimSuffix(root, "/")+"/")
}

// voteDispatch votes the base level of a request to an agent CLI: its score
// against the threshold. Pattern rules come on top.
func (s *Snapshot) voteDispatch(in *Input, buf *Buffer) call.Ballot {
	cli, ok := call.RequestCLI(in.Call.Operation)
	t := in.Facts.Task
	if !ok || t == nil {
		return deny(call.StageSession, "dispatch score", "no request", saying("it is not a request that an agent CLI can be given", in.Facts.TaskProblem))
	}
	start := len(buf.votes)
	buf.prepare(in)
	s.applyRules(in, buf)
	score := &in.Facts.Score
	policy, over := s.Settings.Dispatch.Threshold(cli, in.Call.Principal.Agent, in.Facts.Workspace, t.ApprovalPolicy)
	highest, ok := risk.Threshold(policy)
	v := call.Vote{Stage: call.StageSession, Source: "dispatch score", Rule: policy, Level: call.AutoApprove}
	v.Reason = fmt.Sprintf("its score is %d, and up to %d passes under %s", score.Value, highest, policy)
	if !ok || score.Value > highest {
		v.Level, v.Reason = over, fmt.Sprintf("its score is %d, and %s lets up to %d through: %s", score.Value, policy, highest, strings.Join(scored(score), "; "))
	}
	for _, f := range score.Factors {
		for _, q := range f.Evidence {
			where := "request"
			if q.End > 0 {
				where = fmt.Sprintf("prompt[%d:%d]", q.Start, q.End)
			}
			v.Evidence = append(v.Evidence, call.Evidence{Where: where, Text: fmt.Sprintf("%s %+d: %s", f.Name, f.Points, q.Text)})
		}
	}
	buf.votes = append(buf.votes, v)
	return ballot(call.StageSession, buf.votes[start:len(buf.votes):len(buf.votes)])
}

// scored are the factors that count, with their points.
func scored(s *risk.DispatchScore) (out []string) {
	for _, f := range s.Factors {
		if f.Points != 0 {
			out = append(out, fmt.Sprintf("%s (%+d)", f.Reason, f.Points))
		}
	}
	return out
}

// dispatch merges what the layers say about requests.
func (m *merger) dispatch() {
	set := &m.s.Settings.Dispatch
	if m.opts.DispatchPolicy != "" {
		set.Policy = m.opts.DispatchPolicy
	}
	text := func(key string, dst *string, field func(*Dispatch) *string, order []string) {
		merge(m, "dispatch."+key, dst, word(func(f *File) *string { return ifSet(f.Dispatch, field) }), laterIsStricter(order))
	}
	text("profile", &set.Profile, func(d *Dispatch) *string { return &d.Profile }, dispatchProfiles)
	text("policy", &set.Policy, func(d *Dispatch) *string { return &d.Policy }, dispatchPolicies)
	text("over", &set.Over, func(d *Dispatch) *string { return &d.Over }, dispatchOvers)
	text("cli_effects", &set.CLIEffects, func(d *Dispatch) *string { return &d.CLIEffects }, dispatchEffects)
	merge(m, "dispatch.confine", &set.Confine, number(func(f *File) *bool {
		return ifSet(f.Dispatch, func(d *Dispatch) *bool { return d.Confine })
	}), onIsStricter)
	count := func(key string, dst *int, field func(*Dispatch) *int) {
		merge(m, "dispatch."+key, dst, number(func(f *File) *int { return ifSet(f.Dispatch, field) }), fewerIsStricter)
	}
	count("max_running", &set.MaxRunning, func(d *Dispatch) *int { return d.MaxRunning })
	count("max_running_per_cli", &set.MaxRunningPerCLI, func(d *Dispatch) *int { return d.MaxRunningPerCLI })
	count("max_queued", &set.MaxQueued, func(d *Dispatch) *int { return d.MaxQueued })
	for _, group := range m.groups {
		for i := range group {
			if p := &group[i]; p.File.Dispatch != nil {
				m.bounds(p)
				m.weights(p, "weights", p.File.Dispatch.Weights, &set.Weights, risk.Points)
				m.weights(p, "servers", p.File.Dispatch.Servers, &set.Servers, risk.ServerPoints)
			}
		}
	}
}

// bounds adds a layer's bounds. One that can only tighten every layer may set.
func (m *merger) bounds(p *placed) {
	for i, b := range p.File.Dispatch.Bounds {
		at := join("dispatch", "bounds", strconv.Itoa(i))
		if !b.tightens() && !p.rights.has("dispatch.bounds") {
			m.ignore(p, at, "a bound with a floor or with over = \"ask\" would loosen")
			continue
		}
		m.s.Settings.Dispatch.Bounds = append(m.s.Settings.Dispatch.Bounds, b)
		m.origin("dispatch.bounds", p, at)
	}
}

func (b *DispatchBound) tightens() bool { return b.Floor == "" && b.Over != overAsk }

// weights takes over a layer's points; without the right to loosen only those
// that are more.
func (m *merger) weights(p *placed, name string, from map[string]int, into *map[string]int, builtin func(string) int) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		now, said := (*into)[key]
		if !said {
			now = builtin(key)
		}
		at := join("dispatch", name, key)
		if from[key] < now && !p.rights.has("dispatch."+name) {
			m.ignore(p, at, "%s stays at %d", key, now)
			continue
		}
		if *into == nil {
			*into = make(map[string]int)
		}
		(*into)[key] = from[key]
		m.origin("dispatch."+name, p, at)
	}
}

// dispatch checks what a file says about requests.
func (c *checker) dispatch() {
	d := c.f.Dispatch
	if d == nil {
		return
	}
	c.oneOf(join("dispatch", "profile"), d.Profile, dispatchProfiles)
	c.oneOf(join("dispatch", "policy"), d.Policy, dispatchPolicies)
	c.oneOf(join("dispatch", "over"), d.Over, dispatchOvers)
	c.oneOf(join("dispatch", "cli_effects"), d.CLIEffects, dispatchEffects)
	for _, key := range slices.Sorted(maps.Keys(d.Weights)) {
		if !slices.Contains(risk.WeightNames(), key) {
			c.add(join("dispatch", "weights", key), orList(key, risk.WeightNames()), "unknown factor %q", key)
		}
	}
	for name, weights := range map[string]map[string]int{"weights": d.Weights, "servers": d.Servers} {
		for key, points := range weights {
			if points < 0 || points > 100 {
				c.add(join("dispatch", name, key), "", "points lie between 0 and 100: nothing lowers a score")
			}
		}
	}
	for key, n := range map[string]*int{"max_running": d.MaxRunning, "max_running_per_cli": d.MaxRunningPerCLI, "max_queued": d.MaxQueued} {
		if n != nil && (*n < 0 || *n > 1000) {
			c.add(join("dispatch", key), "", "%s must lie between 0 and 1000", key)
		}
	}
	for i := range d.Bounds {
		c.bound(join("dispatch", "bounds", strconv.Itoa(i)), &d.Bounds[i])
	}
}

func (c *checker) bound(at string, b *DispatchBound) {
	c.oneOf(join(at, "cli"), b.CLI, call.CLIs())
	c.oneOf(join(at, "floor"), b.Floor, dispatchPolicies)
	c.oneOf(join(at, "ceiling"), b.Ceiling, dispatchPolicies)
	c.oneOf(join(at, "over"), b.Over, dispatchOvers)
	if b.Floor == "" && b.Ceiling == "" && b.Over == "" {
		c.add(at, "give a floor, a ceiling or over", "the bound bounds nothing")
	}
	if b.Workspace != "" && !path.IsAbs(b.Workspace) {
		c.add(join(at, "workspace"), "", "the workspace must be an absolute path")
	}
	if b.Principal != "" {
		if _, err := match.CompileOp(b.Principal); err != nil {
			c.add(join(at, "principal"), "", "%v", err)
		}
	}
}

// dispatchLoosens lists in which ways new settings let more through than old.
func dispatchLoosens(old, new *DispatchSettings) (changes []Change) {
	loosened := func(looser bool, key string, a, b any) {
		if looser {
			changes = append(changes, Change{Setting: "dispatch." + key, Old: fmt.Sprint(a), New: fmt.Sprint(b)})
		}
	}
	loosened(laterIsStricter(dispatchProfiles)(old.Profile, new.Profile), "profile", old.Profile, new.Profile)
	loosened(laterIsStricter(dispatchPolicies)(old.Policy, new.Policy), "policy", old.Policy, new.Policy)
	loosened(laterIsStricter(dispatchOvers)(old.Over, new.Over), "over", old.Over, new.Over)
	loosened(laterIsStricter(dispatchEffects)(old.CLIEffects, new.CLIEffects), "cli_effects", old.CLIEffects, new.CLIEffects)
	loosened(onIsStricter(old.Confine, new.Confine), "confine", old.Confine, new.Confine)
	loosened(old.MaxRunning < new.MaxRunning, "max_running", old.MaxRunning, new.MaxRunning)
	loosened(old.MaxRunningPerCLI < new.MaxRunningPerCLI, "max_running_per_cli", old.MaxRunningPerCLI, new.MaxRunningPerCLI)
	loosened(old.MaxQueued < new.MaxQueued, "max_queued", old.MaxQueued, new.MaxQueued)
	loosened(weighsLess(old.Weights, new.Weights, risk.Points), "weights", old.Weights, new.Weights)
	loosened(weighsLess(old.Servers, new.Servers, risk.ServerPoints), "servers", old.Servers, new.Servers)
	kept := slices.ContainsFunc(old.Bounds, func(b DispatchBound) bool { return !slices.Contains(new.Bounds, b) })
	added := slices.ContainsFunc(new.Bounds, func(b DispatchBound) bool { return !b.tightens() && !slices.Contains(old.Bounds, b) })
	loosened(kept || added, "bounds", len(old.Bounds), len(new.Bounds))
	return changes
}

// weighsLess says whether any name has fewer points than before.
func weighsLess(old, new map[string]int, builtin func(string) int) bool {
	points := func(m map[string]int, key string) int {
		if p, ok := m[key]; ok {
			return p
		}
		return builtin(key)
	}
	for _, m := range []map[string]int{old, new} {
		for key := range m {
			if points(new, key) < points(old, key) {
				return true
			}
		}
	}
	return false
}
