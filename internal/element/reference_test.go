package element_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// differences are the answers in which the gate departs from the reference on
// purpose, with the level or endpoint it gives and why.
var differences = map[string]struct{ ours, why string }{
	"operation activate_element":         {"UPDATE CONFIRM_SINGLE_USE pinned", "it changes which policies are in force; free only if it is proven to loosen nothing (W2)"},
	"operation deactivate_element":       {"UPDATE CONFIRM_SINGLE_USE pinned", "it changes which policies are in force; free only if it is proven to loosen nothing (W2)"},
	"operation edit_element":             {"UPDATE CONFIRM_SINGLE_USE pinned", "it may change a policy in force; free only if it is proven to loosen nothing (W2)"},
	"operation confirm_operation":        {"EXECUTE AUTO_APPROVE pinned", "it files a request and grants nothing, so there is nothing to elevate (W1)"},
	"operation verify_challenge":         {"CREATE AUTO_APPROVE pinned", "the recovery path is out of reach of every list, in the resolver itself"},
	"resolve allow edit_element":         {"CONFIRM_SINGLE_USE", "an edit may loosen: no element approves it (W2)"},
	"resolve confirm edit_element":       {"CONFIRM_SINGLE_USE", "a confirm joins and never lowers (W3)"},
	"resolve confirm delete_element":     {"CONFIRM_SINGLE_USE", "a confirm joins and never lowers, pinned operations least of all (W3)"},
	"resolve allow_confirm edit_element": {"CONFIRM_SINGLE_USE", "a confirm joins and never lowers (W3)"},
	"resolve confirm_allow edit_element": {"CONFIRM_SINGLE_USE", "a confirm joins and never lowers (W3)"},
	"external confirm_then_deny":         {"deny", "a deny beats a confirm whatever the order (W4)"},
	"external deny_newline":              {"deny", "every simple command is looked at, newlines or not (W7)"},
	"external deny_read_glob":            {"deny", "file tools have arguments too (W8)"},
}

// absent are operations of the reference that belong to its portfolio and not
// to a gate; a policy that names one loads with a remark.
func absent(name string) bool {
	_, here := call.LookupOperation(name)
	return !here
}

type refElement struct {
	Name       string
	Gatekeeper map[string]any
}

// compileRef makes elements of the reference's policies by way of a file.
func compileRef(t *testing.T, list []refElement) []element.Element {
	t.Helper()
	var out []element.Element
	for _, r := range list {
		front, err := yaml.Marshal(map[string]any{"name": r.Name, "description": "x", "gatekeeper": r.Gatekeeper})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := element.Parse("persona", r.Name, element.Markdown, []byte("---\n"+string(front)+"---\n"))
		if err != nil {
			t.Fatal(err)
		}
		e := doc.Element()
		if e.Quarantine != "" {
			t.Fatalf("%s: %s", r.Name, e.Quarantine)
		}
		out = append(out, e)
	}
	return out
}

// TestReference holds the gate against the reference's answers: it agrees, or
// the table above says why not. A difference that is none any more is an error
// too.
func TestReference(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	mixes := make(map[string][]element.Element)
	met := make(map[string]bool)
	agreed := 0
	compare := func(key, theirs, ours string) {
		t.Helper()
		if theirs == ours {
			agreed++
			return
		}
		d, ok := differences[key]
		met[key] = true
		if !ok || d.ours != ours {
			t.Errorf("%s: the gate says %s, the reference %s, and the table %q", key, ours, theirs, d.ours)
		}
	}
	for line := range strings.Lines(string(data)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		f := strings.Fields(rest)
		switch kind {
		case "operation":
			if absent(f[0]) {
				continue
			}
			op, _ := call.LookupOperation(f[0])
			elevatable := "pinned"
			if op.CanBeElevated {
				elevatable = "elevatable"
			}
			if op.Name == f[0] {
				compare("operation "+f[0], strings.Join(f[1:], " "), fmt.Sprintf("%s %s %s", op.Endpoint, op.Level, elevatable))
			}
		case "mix":
			name, list, _ := strings.Cut(rest, " ")
			var elements []refElement
			if err := json.Unmarshal([]byte(list), &elements); err != nil {
				t.Fatal(err)
			}
			mixes[name] = compileRef(t, elements)
		case "resolve":
			typ := f[2]
			if typ == "-" {
				typ = ""
			}
			compare("resolve "+f[0]+" "+f[1], f[3], element.Compile(mixes[f[0]]).Resolve(f[1], typ, false).Level.String())
		case "external":
			referenceExternal(t, rest, compare)
		}
	}
	for key := range differences {
		if !met[key] {
			t.Errorf("%s is listed as a difference and is none", key)
		}
	}
	if agreed < 200 {
		t.Errorf("only %d answers agree", agreed)
	}
}

// referenceExternal compares one answer about a host's tool: deny, confirm, or
// evaluate where no element objects.
func referenceExternal(t *testing.T, line string, compare func(key, theirs, ours string)) {
	t.Helper()
	var name, tool, behaviour string
	var input json.RawMessage
	var list []refElement
	if err := json.Unmarshal([]byte(line), &[]any{&name, &tool, &input, &list, &behaviour}); err != nil {
		t.Fatal(err)
	}
	c := &call.Call{Kind: call.External, Operation: tool, Args: []byte(input), Dir: "/w"}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	votes := element.Compile(compileRef(t, list)).External(c, facts.Extract(c, nil, &facts.Options{}), false)
	ours := "evaluate"
	if len(votes) > 0 {
		ours = "confirm"
	}
	if slices.ContainsFunc(votes, func(v call.Vote) bool { return v.Level == call.Deny }) {
		ours = "deny"
	}
	compare("external "+name, behaviour, ours)
}
