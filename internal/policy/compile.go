package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// Options are what a policy depends on besides its files.
type Options struct {
	// Home is what "~" stands for. Files that use it need it.
	Home string
	// Isolation is what the operator stated when starting the gate: none,
	// container or vm; "" if nothing. A machine's file counts before it.
	Isolation string
	// Launcher says that agents run inside the gate's own launcher, which is
	// as good as a stated isolation.
	Launcher bool
	// Knowledge is what the user's own files say about programs, nil for what
	// comes with the gate; KnowledgeHash identifies it.
	Knowledge     *knowledge.Base
	KnowledgeHash call.Digest
	// Tools are the files in which tools are declared.
	Tools []argument.File
	// DispatchPolicy is the threshold for requests to agent CLIs where no file
	// names one, as the operator set it when starting the gate; "" is balanced.
	DispatchPolicy string
}

// origin is where a setting's value came from.
type origin struct {
	scope  string
	source string
}

var builtIn = origin{scope: "default", source: "built in"}

// Default returns the policy where there is no file at all.
func Default() *Snapshot {
	s, err := Compile(nil, Options{})
	if err != nil {
		return new(Snapshot) // which denies; a test holds that it does not come to this
	}
	return s
}

func defaults() Settings {
	return Settings{
		Profile:             profileSupervised,
		Isolation:           "none",
		RiskConfirmAt:       61,
		Irreversible:        call.ConfirmSingleUse,
		PendingPerSession:   5,
		PendingPerPrincipal: 20,
		AsksPerHour:         60,
		RequestLife:         15 * time.Minute,
		GrantLife:           120 * time.Second,
		SessionGrantLife:    12 * time.Hour,
		TaintLife:           12 * time.Hour,
		RestorePointMiB:     64,
		RestoreTotalMiB:     1024,
		RestorePoints:       500,
		RestoreAge:          14 * 24 * time.Hour,
		Strictness:          StrictnessStandard,
		RiskTolerance:       "moderate",
		MaxSteps:            10,
		Dispatch:            dispatchDefaults(),
		Cache:               CacheSettings{TTL: 5 * time.Minute},
	}
}

// Compile merges layers into a snapshot. Their order does not matter: the
// scopes say which is above which. A lower layer tightens freely; what it
// tries to loosen without the right to is left out and listed in the
// snapshot's Ignored. If anything is wrong in a file the error is [Problems].
func Compile(layers []Layer, opts Options) (*Snapshot, error) {
	layers, problems := checkLayers(layers, opts)
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	lib, err := newLibrary(layers, opts.Home)
	if err != nil {
		return nil, err
	}
	groups, ignored := place(layers)
	m := merger{
		groups: groups, opts: opts, lib: lib,
		s: &Snapshot{Settings: defaults(), Ignored: ignored, voters: allVoters, origins: make(map[string]origin), home: opts.Home, Knowledge: opts.Knowledge, knowledgeHash: opts.KnowledgeHash},
	}
	m.explainLayers()
	m.statedIsolation()
	m.scalars()
	m.dispatch()
	m.cacheAwareness()
	m.hosts()
	m.output()
	m.lists()
	defs := m.definitions()
	m.profiles(defs)
	m.capabilities(defs)
	m.tools()
	m.rules()
	m.operations()
	if err := m.declare().orNil(); err != nil {
		return nil, err
	}
	if err := m.lib.problems.orNil(); err != nil {
		return nil, err
	}
	m.s.Ignored = m.s.Ignored.sorted()
	m.s.Hash = m.s.hash()
	return m.s, nil
}

// checkLayers checks the files and names those that were not read from
// anywhere after their layer.
func checkLayers(layers []Layer, opts Options) ([]Layer, Problems) {
	var problems Problems
	if opts.Isolation != "" && !slices.Contains(isolations, opts.Isolation) {
		problems = append(problems, Problem{
			File: commandLine, Message: "isolation cannot be " + strconv.Quote(opts.Isolation), Hint: orList(opts.Isolation, isolations),
		})
	}
	named := make([]Layer, 0, len(layers))
	for _, l := range layers {
		if l.File == nil || l.Scope > ScopeMachine {
			problems = append(problems, Problem{File: l.Scope.String(), Message: "the layer has no file or no scope"})
			continue
		}
		if l.File.name == "" {
			f := *l.File
			f.name = l.Scope.String() + " policy"
			l.File = &f
		}
		problems = append(problems, l.File.check(nil)...)
		named = append(named, l)
	}
	return named, problems
}

// commandLine names what the operator said when starting the gate.
const commandLine = "command line"

// merger puts layers together, from the strongest to the weakest.
type merger struct {
	s      *Snapshot
	groups [][]placed
	opts   Options
	lib    *library
	// stated says that the isolation is what the operator said.
	stated bool
}

// explainLayers notes which files there are and what each may do.
func (m *merger) explainLayers() {
	for _, group := range m.groups {
		for _, p := range group {
			m.s.layers = append(m.s.layers, LayerInfo{
				Scope: p.Scope, File: p.File.name, Digest: p.File.digest, Trusted: p.Trusted, MayLoosen: p.rights.list(),
			})
		}
	}
}

func (m *merger) ignore(p *placed, path, format string, args ...any) {
	problem := p.File.problem(path, "", format, args...)
	problem.Hint = "the " + p.Scope.String() + " layer may not loosen this"
	if p.Scope == ScopeProject && !p.Trusted {
		problem.Hint = "a project's file loosens nothing until it is trusted"
	}
	m.s.Ignored = append(m.s.Ignored, problem)
}

func (m *merger) origin(key string, p *placed, path string) {
	m.s.origins[key] = origin{scope: p.Scope.String(), source: p.File.source(path)}
}

// definitions collects the words for capabilities. The layer above has the
// say: a lower one cannot call something else what it names.
func (m *merger) definitions() map[call.Capability]CapabilityDef {
	defs := make(map[call.Capability]CapabilityDef)
	for _, group := range m.groups {
		for i := range group {
			for _, name := range slices.Sorted(maps.Keys(group[i].File.Capabilities)) {
				c := call.Capability(name)
				if def := defs[c]; def.Sentence == "" {
					defs[c] = CapabilityDef{Sentence: group[i].File.Capabilities[name].Sentence}
				}
			}
		}
	}
	return defs
}

// profiles chooses the profiles in force. A layer that may loosen the profile
// replaces what is above it; any other adds its own, and the strictest counts.
func (m *merger) profiles(defs map[call.Capability]CapabilityDef) {
	none := &File{name: builtIn.source}
	base, ok := m.lib.compile(profileSupervised, none, ScopeMachine, defs)
	if !ok {
		return
	}
	base.source = builtIn.source
	inForce := []profile{base}
	m.s.origins["profile"] = builtIn
	for _, group := range m.groups {
		var chosen, added []profile
		for i := range group {
			p := &group[i]
			if p.File.Profile == "" {
				continue
			}
			prof, ok := m.lib.compile(p.File.Profile, p.File, p.Scope, defs)
			if !ok {
				continue
			}
			m.refuse(&prof)
			if p.rights.has("profile") {
				chosen = append(chosen, prof)
				m.origin("profile", p, "profile")
				continue
			}
			if prof.refused != "" {
				// It was made for another place; refusing every call here
				// would only make people switch the gate off.
				m.ignore(p, "profile", "the profile %s is left out: agents do not run isolated here", prof.name)
				continue
			}
			if loosens := profilesLoosen(inForce, []profile{prof}); len(loosens) > 0 {
				m.ignore(p, "profile", "the profile %s would loosen %s", prof.name, loosens[0].Setting)
			}
			added = append(added, prof)
			m.origin("profile", p, "profile")
		}
		byName := func(a, b profile) int { return strings.Compare(a.name, b.name) }
		slices.SortFunc(chosen, byName)
		slices.SortFunc(added, byName)
		if len(chosen) > 0 {
			inForce = chosen
		}
		inForce = prune(append(inForce, added...))
	}
	m.s.profiles = inForce
	names := make([]string, len(inForce))
	for i := range inForce {
		names[i] = inForce[i].name
	}
	m.s.Settings.Profile = strings.Join(names, " + ")
}

// refuse keeps a profile that was made for isolation from taking effect
// without one.
func (m *merger) refuse(p *profile) {
	if p.confines && m.s.Settings.Isolation == "none" && !m.opts.Launcher {
		p.refused = "the profile " + p.name + " takes effect only where agents run isolated: state isolation = \"container\" or \"vm\" if they do, or use the profile " + profileSupervised
	}
}

// prune drops profiles that another one in force makes superfluous.
func prune(profiles []profile) []profile {
	var kept []profile
	for i := range profiles {
		redundant := false
		for j := range profiles {
			if i == j || len(profilesLoosen(profiles[i:i+1], profiles[j:j+1])) > 0 {
				continue
			}
			// Of two that say the same the first stays.
			same := len(profilesLoosen(profiles[j:j+1], profiles[i:i+1])) == 0
			redundant = redundant || !same || j < i
		}
		if !redundant {
			kept = append(kept, profiles[i])
		}
	}
	return kept
}

// rules collects the rules of all layers. Those that object always count,
// those that approve only from a layer that may loosen.
func (m *merger) rules() {
	for _, group := range m.groups {
		for i := range group {
			p := &group[i]
			for j, spec := range p.File.Rules {
				path := join("rules", strconv.Itoa(j))
				if spec.Level == call.AutoApprove && !p.rights.has("rules") {
					m.ignore(p, path, "the rule %q would approve what is asked about", spec.Name)
					continue
				}
				r, errs := compileRule(spec, p.File.source(path), m.opts.Home)
				for field, err := range errs {
					m.lib.problems = append(m.lib.problems, p.File.problem(join(path, field), "", "%v", err))
				}
				m.s.rules = append(m.s.rules, r)
			}
		}
	}
	slices.SortFunc(m.s.rules, compareRules)
}

// compareRules orders rules by what they say, so that the order in which they
// are written shows nowhere.
func compareRules(a, b rule) int {
	return cmp.Or(
		strings.Compare(a.spec.Name, b.spec.Name), strings.Compare(a.spec.Operation, b.spec.Operation),
		strings.Compare(a.spec.Command, b.spec.Command), strings.Compare(a.spec.Path, b.spec.Path),
		strings.Compare(a.spec.Host, b.spec.Host), cmp.Compare(a.spec.Level, b.spec.Level),
		strings.Compare(a.spec.Reason, b.spec.Reason), strings.Compare(a.source, b.source),
	)
}

// operations collects the native operations that any layer denies.
func (m *merger) operations() {
	for _, group := range m.groups {
		for i := range group {
			f := group[i].File
			for _, name := range slices.Sorted(maps.Keys(f.Operations)) {
				d, err := denyNamed(name)
				if err != nil {
					m.lib.problems = append(m.lib.problems, f.problem(join("operations", name), "", "%v", err))
					continue
				}
				d.rule, d.source = name, f.source(join("operations", name))
				m.s.operations = append(m.s.operations, d)
			}
		}
	}
	slices.SortFunc(m.s.operations, func(a, b operationDeny) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), strings.Compare(a.source, b.source))
	})
}

// denyNamed matches an operation by its name, an alias or a glob over either.
func denyNamed(name string) (operationDeny, error) {
	glob, err := match.CompileOp(name)
	if err != nil {
		return operationDeny{}, err
	}
	denied := make(map[string]bool)
	ops := call.Operations()
	for i := range ops {
		if glob.Match(ops[i].Name) || slices.ContainsFunc(ops[i].Aliases, glob.Match) {
			denied[ops[i].Name] = true
		}
	}
	return operationDeny{matches: func(op string) bool { return denied[op] }}, nil
}
