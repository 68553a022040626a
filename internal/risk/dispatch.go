package risk

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

//go:embed dispatch.toml
var dispatchText []byte

// The profiles of the dispatch score.
const (
	// Classic scores exactly as the public skill says.
	Classic = "classic"
	// Hardened never scores lower, and reads what Classic overlooks.
	Hardened = "hardened"
)

// Profiles lists the profiles of the dispatch score.
func Profiles() []string { return []string{Hardened, Classic} }

// DefaultPolicy is the threshold where nobody names one.
const DefaultPolicy = "balanced"

// Policies lists the names of the thresholds, the strictest first.
func Policies() []string { return []string{"strict", "balanced", "permissive"} }

// Threshold is the highest score that a policy lets through; false if there is
// no policy of that name.
func Threshold(policy string) (highest int, ok bool) {
	highest, ok = dispatchTable().Thresholds[policy]
	return highest, ok
}

// Stricter returns the stricter of two policies. A name that is none of them
// counts as the strictest.
func Stricter(a, b string) string {
	order := Policies()
	i, j := max(slices.Index(order, a), 0), max(slices.Index(order, b), 0)
	return order[min(i, j)]
}

// Dispatch is a request to an agent CLI as far as its risk is concerned.
type Dispatch struct {
	Prompt string
	// Bypass names the flags with which the caller switches the CLI's own
	// checks off.
	Bypass   []string
	FullAuto bool
	// Servers are the MCP servers that the request wants.
	Servers []string
	// AllowedTools is nil where the request has no such list.
	AllowedTools    []string
	DisallowedTools []string
}

// Factor is one line of the table that applied to a request.
type Factor struct {
	Name   string `json:"name"`
	Points int    `json:"points"`
	Reason string `json:"reason"`
	// Evidence are the words of the request that it rests on.
	Evidence []Quote `json:"evidence,omitzero"`
}

// Quote is a place in the prompt, or the name of a field.
type Quote struct {
	Text string `json:"text"`
	// Start and End are the bytes of the prompt; both 0 for a field.
	Start int `json:"start,omitzero"`
	End   int `json:"end,omitzero"`
}

// DispatchScore is the risk of a request.
type DispatchScore struct {
	Value   int      `json:"score"`
	Profile string   `json:"profile"`
	Factors []Factor `json:"factors,omitzero"`
	// Review says that the request asks for a review.
	Review bool `json:"review,omitzero"`
}

// Reasons are the factors in words.
func (s *DispatchScore) Reasons() []string {
	out := []string{}
	for _, f := range s.Factors {
		out = append(out, f.Reason)
	}
	return out
}

// Weights are an operator's own points, by the names of the table.
type Weights struct {
	Points  map[string]int
	Servers map[string]int
}

// WeightNames lists the factors that can be given other points.
func WeightNames() []string { return slices.Sorted(maps.Keys(dispatchTable().Points)) }

// dispatchData is dispatch.toml.
type dispatchData struct {
	Points     map[string]int `toml:"points"`
	Servers    map[string]int `toml:"servers"`
	Thresholds map[string]int `toml:"thresholds"`
	Classic    struct {
		Keywords []string `toml:"keywords"`
		Review   []string `toml:"review"`
	} `toml:"classic"`
	Hardened struct {
		Keywords   []string `toml:"keywords"`
		Review     []string `toml:"review"`
		Programs   []string `toml:"programs"`
		Statements []string `toml:"statements"`
	} `toml:"hardened"`

	keywords, review, moreKeywords, moreReview, programs map[string]bool
	statements                                           map[string][]string
}

// dispatchTable reads the table on first use. A mistake in it is one of this
// repository, and the tests find it.
var dispatchTable = sync.OnceValue(func() *dispatchData {
	var d dispatchData
	dec := toml.NewDecoder(bytes.NewReader(dispatchText))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		panic(fmt.Sprintf("risk: dispatch.toml: %v", err))
	}
	d.keywords, d.review = setOf(d.Classic.Keywords), setOf(d.Classic.Review)
	d.moreKeywords, d.moreReview = setOf(d.Classic.Keywords, d.Hardened.Keywords), setOf(d.Classic.Review, d.Hardened.Review)
	d.programs = setOf(d.Hardened.Programs)
	d.statements = map[string][]string{}
	for _, s := range d.Hardened.Statements {
		first, second, _ := strings.Cut(s, " ")
		d.statements[first] = append(d.statements[first], second)
	}
	return &d
})

func setOf(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, w := range slices.Concat(lists...) {
		set[w] = true
	}
	return set
}

// OfDispatch scores a request under a profile; one that is not known is
// Hardened.
func OfDispatch(r *Dispatch, profile string, weights *Weights) DispatchScore {
	sc := scorer{table: dispatchTable(), weights: weights}
	var text reading
	if profile == Classic {
		text = readClassic(r.Prompt)
	} else {
		profile, text = Hardened, readHardened(r.Prompt)
		text.toolFold = true
	}
	sc.out.Profile, sc.out.Review = profile, len(text.review) > 0
	sc.flags(r)
	sc.servers(r.Servers)
	sc.tools(r, &text)
	if len(text.keywords) > 0 {
		sc.add("keywords", "the prompt has sensitive or destructive words: "+some(text.keywords), text.keywords...)
	}
	if sc.out.Review && len(text.suppression) > 0 {
		sc.add("review_suppression", "a review is told not to use tools", text.suppression...)
	}
	sc.commands(text.commands)
	return sc.out
}

type scorer struct {
	table   *dispatchData
	weights *Weights
	out     DispatchScore
}

func (sc *scorer) add(name, reason string, evidence ...Quote) {
	points := sc.table.Points[name]
	if sc.weights != nil {
		if p, ok := sc.weights.Points[name]; ok {
			points = p
		}
	}
	sc.note(name, points, reason, evidence)
}

func (sc *scorer) note(name string, points int, reason string, evidence []Quote) {
	sc.out.Value += points
	sc.out.Factors = append(sc.out.Factors, Factor{Name: name, Points: points, Reason: reason, Evidence: evidence})
}

func (sc *scorer) flags(r *Dispatch) {
	if len(r.Bypass) > 0 {
		sc.add("bypass", "the caller switches the CLI's own checks off: "+strings.Join(r.Bypass, ", "), fields(r.Bypass)...)
	}
	if r.FullAuto {
		sc.add("full_auto", "the CLI is to work on without asking", Quote{Text: "fullAuto"})
	}
	if len(r.Bypass) > 0 && r.FullAuto {
		sc.add("bypass_full_auto", "checks off and no asking, both at once", Quote{Text: "fullAuto"}, Quote{Text: r.Bypass[0]})
	}
}

func fields(names []string) (out []Quote) {
	for _, n := range names {
		out = append(out, Quote{Text: n})
	}
	return out
}

// servers counts each MCP server once, in the order of their names.
func (sc *scorer) servers(wanted []string) {
	wanted = slices.Compact(slices.Sorted(slices.Values(wanted)))
	for _, name := range wanted {
		points, known := sc.table.Servers[name]
		if !known {
			points = sc.table.Servers["*"]
		}
		if sc.weights != nil {
			if p, ok := sc.weights.Servers[name]; ok {
				points = p
			} else if p, ok := sc.weights.Servers["*"]; ok && !known {
				points = p
			}
		}
		if points > 0 {
			sc.note("server."+name, points, "the MCP server "+name+" is wanted", []Quote{{Text: name}})
		}
	}
}

func (sc *scorer) tools(r *Dispatch, text *reading) {
	if r.AllowedTools != nil && len(r.AllowedTools) == 0 {
		if sc.out.Review {
			sc.add("review_no_tools", "a review without any tool: allowedTools is empty, and reviewers need tools", Quote{Text: "allowedTools"})
		} else {
			sc.add("no_tools", "no tool permissions requested", Quote{Text: "allowedTools"})
		}
	}
	if len(r.DisallowedTools) == 0 {
		return
	}
	if critical := criticalTools(r.DisallowedTools, text.toolFold); sc.out.Review && len(critical) > 0 {
		sc.add("review_critical", "a review without "+strings.Join(critical, ", ")+", which reviewers need", fields(critical)...)
		return
	}
	sc.add("restricted", "some tools are taken away", fields(r.DisallowedTools)...)
}

// critical are the tools without which nobody reviews.
var critical = []string{"Read", "Grep", "Glob", "Bash"}

// criticalTools are those of the critical tools that a list of patterns such
// as "Bash(git:*)" takes away. Folded, the names that other hosts have for the
// same tools count, too.
func criticalTools(patterns []string, fold bool) (out []string) {
	for _, c := range critical {
		for _, p := range patterns {
			name, _, _ := strings.Cut(p, "(")
			name, _, _ = strings.Cut(name, ":")
			name = strings.TrimSpace(name)
			same := name == c
			if fold && !same {
				same = strings.EqualFold(name, c) || c != "Glob" && call.FoldTool(name) != name && call.FoldTool(name) == call.FoldTool(c)
			}
			if same {
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// commands scores the worst of the commands that the prompt holds.
func (sc *scorer) commands(found []found) {
	var risky, destructive []Quote
	for i := range found {
		switch f := &found[i]; {
		case f.class == shell.ClassDestructive:
			destructive = append(destructive, f.quote)
		case f.risk >= askAt:
			risky = append(risky, f.quote)
		}
	}
	switch {
	case len(destructive) > 0:
		sc.add("command_destructive", "the prompt holds a command that destroys: "+some(destructive), append(destructive, risky...)...)
	case len(risky) > 0:
		sc.add("command", "the prompt holds a command that a person would be asked about: "+some(risky), risky...)
	}
}

// askAt is the risk from which on a person is asked about a command.
const askAt = 61

// some names the first few quotes.
func some(quotes []Quote) string {
	var out []string
	for _, q := range quotes {
		if len(out) == 3 {
			return strings.Join(out, ", ") + " …"
		}
		if !slices.Contains(out, q.Text) {
			out = append(out, q.Text)
		}
	}
	return strings.Join(out, ", ")
}

// ServerPoints is what the table gives to an MCP server.
func ServerPoints(name string) int {
	t := dispatchTable()
	if p, ok := t.Servers[name]; ok {
		return p
	}
	return t.Servers["*"]
}

// Points is what the table gives to a factor.
func Points(factor string) int { return dispatchTable().Points[factor] }

// Suppresses says whether a prompt forbids the use of tools, as a profile
// reads it.
func Suppresses(prompt, profile string) bool {
	if profile == Classic {
		return len(readClassic(prompt).suppression) > 0
	}
	return len(readHardened(prompt).suppression) > 0
}
