package hook

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// confined says whether an allowed call must run in the gate's sandbox.
func confined(ans *gate.Answer) bool {
	return slices.Contains(ans.Decision.Requires, call.Guarantee{Name: "confined"})
}

var errCannotConfine = errors.New("it was allowed confined, and this agent cannot be given another command")

// confine gives the input a command that runs the original in the gate's
// sandbox: it may write the working directory and reach no host.
func (h *Hooks) confine(a *agent, e *event, edited jsontext.Value) (jsontext.Value, error) {
	if !a.rewrites || h.opts.Program == "" || call.FoldTool(e.tool) != call.OpShell {
		return nil, errCannotConfine
	}
	if edited == nil {
		edited = e.input
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(edited, &members); err != nil {
		return nil, errCannotConfine
	}
	var command string
	if err := json.Unmarshal(members["command"], &command); err != nil {
		return nil, errCannotConfine
	}
	text, err := json.Marshal(quote(h.opts.Program) + " run --write . -- sh -c " + quote(command))
	if err != nil {
		return nil, errCannotConfine
	}
	members["command"] = text
	out, err := json.Marshal(members)
	if err != nil {
		return nil, errCannotConfine
	}
	return call.Canonical(out)
}

// quote writes a word for a shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
