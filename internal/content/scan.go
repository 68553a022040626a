package content

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// scanner is compiled when it is first needed; a hook that never scans does not pay for it.
var scanner = sync.OnceValue(func() *engine {
	return newEngine(injectionRules(), credentialRules(), commandRules(), pathRules())
})

// Scan reports what is wrong with a text, in the order of the text. It never changes it.
func Scan(text string, opts *Options) []Finding {
	s := newState(scanner(), opts)
	defer s.release()
	s.load(text)
	return s.out
}

// Explain says a rule in words; for an unknown name it returns the name.
func Explain(name string) string {
	if what, ok := unicodeRules[name]; ok {
		return what
	}
	switch name {
	case ruleTooLong:
		return "too long to be looked at"
	case denseRule.name:
		return "so full of keywords that it was not looked at whole"
	}
	for _, r := range scanner().rules {
		if r.name == name {
			return r.what
		}
	}
	return name
}

const ruleTooLong = "limit.size"

// state is one scan; its buffers serve all strings of a call.
type state struct {
	eng    *engine
	opts   *Options
	out    []Finding
	from   int // findings of the current text start here
	counts map[ruleCount]int
	places map[string][]int // per rule, the findings of the current text
	lines  int              // up to here direction controls have been judged
	fold   [maxDepth + 1]match.Folded
	mem    [maxDepth + 1]scratch
	all    bool // keep every finding: redaction must not stop at a bound
	runs   [maxDepth]decoder
}

type ruleCount struct {
	rule string
	sev  Severity
}

// states keeps the memory of scans for the next ones; what is in it is overwritten before it is read.
var states = sync.Pool{New: func() any {
	return &state{counts: map[ruleCount]int{}, places: map[string][]int{}}
}}

// keepMemory is the largest buffer worth keeping.
const keepMemory = 4 << 20

func newState(eng *engine, opts *Options) *state {
	s := states.Get().(*state)
	s.eng, s.opts, s.out, s.all = eng, opts, nil, false
	return s
}

// release gives the memory back; the findings stay with the caller.
func (s *state) release() {
	s.out = nil
	for _, f := range s.fold {
		if cap(f.Text) > keepMemory {
			return
		}
	}
	states.Put(s)
}

// load scans one more text.
func (s *state) load(text string) {
	s.from = len(s.out)
	s.lines = 0
	clear(s.counts)
	clear(s.places)
	if len(text) > s.opts.maxBytes() {
		s.out = append(s.out, Finding{Category: Limit, Severity: Critical, Rule: ruleTooLong, End: len(text), Form: FormPlain})
		return
	}
	s.text(text, view{})
	slices.SortStableFunc(s.out[s.from:], func(a, b Finding) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return strings.Compare(a.Rule, b.Rule)
	})
}

// A view says how a text relates to the original: how often it was decoded, by what, and which
// original bytes a span of it stands for.
type view struct {
	depth int
	codes string
	lift  func(start, end int) (int, int) // nil: the text is the original
}

func (v view) span(start, end int) (int, int) {
	if v.lift == nil {
		return start, end
	}
	return v.lift(start, end)
}

// text scans a text in all its forms.
func (s *state) text(text string, v view) {
	form := FormPlain
	if v.depth > 0 {
		form = formDecoded + v.codes
	}
	s.eng.scan(text, &s.mem[v.depth], func(r *rule, start, end int, sev Severity) {
		s.report(r, start, end, sev, v, form)
	})
	if ascii := isASCII(text); !ascii {
		s.perceived(text, v)
	} else if v.depth == 0 {
		s.controls(text)
	}
	if v.depth < maxDepth && (s.opts == nil || !s.opts.NoDecode) {
		s.encoded(text, v)
	}
}

// perceived scans the text as a reader perceives it.
func (s *state) perceived(text string, v view) {
	f := &s.fold[v.depth]
	f.Load(text)
	if v.depth == 0 {
		s.marks(text, f.Marks)
	}
	form := FormNormalised
	if v.depth > 0 {
		form = formDecoded + v.codes + "+" + FormNormalised
	}
	for _, part := range f.Changed(foldContext, foldContext) {
		from := part[0]
		for from > 0 && part[0]-from < 64 && alnum(f.Text[from-1]) {
			from-- // do not cut a word in two
		}
		s.eng.scan(borrow(f.Text[from:part[1]]), &s.mem[v.depth], func(r *rule, start, end int, sev Severity) {
			s.perceive(text, r, f.Source(from+start), f.Source(from+end), sev, v, form)
		})
	}
}

// foldContext is how much unchanged text around a folded character is read again with it.
const foldContext = 512

// perceive reports what appeared in text[start:end] once it was folded.
func (s *state) perceive(text string, r *rule, start, end int, sev Severity, v view, form string) {
	if start >= end || !s.all && isASCII(text[start:end]) {
		return // the plain form showed it already
	}
	if r.cat == Injection && v.depth == 0 && match.Disguised(text[start:end]) {
		sev = min(Critical, sev+1) // nobody disguises an order by accident
	}
	s.report(r, start, end, sev, v, form)
}

// report adds a finding unless the same rule reported the same place already.
func (s *state) report(r *rule, start, end int, sev Severity, v view, form string) {
	from, to := v.span(start, end)
	if s.all {
		s.out = append(s.out, Finding{Category: r.cat, Severity: sev, Rule: r.name, Start: from, End: to, Form: form})
		return
	}
	if s.counts[ruleCount{r.name, sev}] >= maxPerRule {
		return
	}
	for _, i := range s.places[r.name] {
		f := &s.out[i]
		if f.Start < to && from < f.End {
			if f.Severity < sev {
				f.Severity, f.Form = sev, form
			}
			return
		}
	}
	s.add(Finding{Category: r.cat, Severity: sev, Rule: r.name, Start: from, End: to, Form: form})
}

// add keeps a finding unless its rule was reported often enough: no rule is dropped, so the worst
// severity of a text never depends on the bound.
func (s *state) add(f Finding) {
	k := ruleCount{f.Rule, f.Severity}
	if s.counts[k]++; s.counts[k] <= maxPerRule {
		s.places[f.Rule] = append(s.places[f.Rule], len(s.out))
		s.out = append(s.out, f)
	}
}

// encoded scans what the encodings in a text stand for.
func (s *state) encoded(text string, v view) {
	s.runs[v.depth].blocks(text, func(code string, start, end int, decoded string) {
		from, to := v.span(start, end)
		s.text(decoded, v.into(code, func(int, int) (int, int) { return from, to }))
	})
	s.runs[v.depth].escapes(text, func(e escaped) {
		s.text(e.text, v.into(e.codes, func(start, end int) (int, int) {
			return v.span(e.source(start), e.source(end))
		}))
	})
}

func (v view) into(code string, lift func(int, int) (int, int)) view {
	if v.codes != "" {
		code = v.codes + "+" + code
	}
	return view{depth: v.depth + 1, codes: code, lift: lift}
}

// isASCII looks at eight bytes at a time.
func isASCII(s string) bool {
	for len(s) >= 8 {
		if (s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7])&utf8.RuneSelf != 0 {
			return false
		}
		s = s[8:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
