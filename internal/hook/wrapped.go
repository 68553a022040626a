package hook

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// Place is where a host runs what it is let run.
type Place struct {
	// Rewrites says that the host takes another input than it asked about.
	Rewrites bool
	// Inside says that the host itself runs in a sandbox of the gate's: what it
	// starts is held already, and no other sandbox can be made in there.
	Inside bool
	// Launcher are the words that start the gatehouse command, which runs what
	// must run confined; none if this machine has no sandbox.
	Launcher []string
}

// NotRun is why a host cannot be given what was let through.
type NotRun struct {
	Detail  string // for the record
	Message string // for the model
}

// Wraps says whether the gate can put a sandbox around a host's commands here.
func (p Place) Wraps() bool { return p.Rewrites && !p.Inside && len(p.Launcher) > 0 }

// Input is what a host is given to run for a call that was let through: the
// call as a person edited it, or in a sandbox of the gate's; nil is the call as
// it is. Where the host cannot do that, or nothing holds what must be held, it
// runs nothing.
func (p Place) Input(ans *gate.Answer, original jsontext.Value) (jsontext.Value, *NotRun) {
	var edited jsontext.Value
	if ans.Edited != nil {
		edited = ans.Edited.Args
	}
	switch {
	case ans.Edited != nil && !p.Rewrites:
		// It was allowed as edited, and this host would run the original.
		return nil, &NotRun{"the host cannot be given another input",
			"Not run: it was approved with changes that this agent cannot be given. Make this call instead: " + string(edited)}
	case ans.Run != nil:
		var err error
		if edited, err = wrapped(original, slices.Concat(p.Launcher, ans.Run)); err != nil {
			return nil, &NotRun{"the command could not be put into a sandbox", "Not run: " + err.Error() + "."}
		}
	case slices.Contains(ans.Requires, call.Guarantee{Name: "confined"}) && !p.Inside:
		return nil, &NotRun{"nothing confines it", "Not run: it was allowed only confined, and nothing confines it here."}
	}
	return withNotes(edited, original), nil
}

// wrapped puts another command line in place of the one in a tool's input,
// in the form in which the host gave it: one text, or a list of words.
func wrapped(input jsontext.Value, argv []string) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	for _, name := range []string{"command", "cmd", "CommandLine"} {
		old, ok := members[name]
		if !ok {
			continue
		}
		var value any = line(argv)
		if old.Kind() == '[' {
			value = argv
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members[name] = text
		return json.Marshal(members, json.Deterministic(true))
	}
	return nil, errors.New("the command is not where it should be, so it cannot be put into a sandbox")
}

// line writes words as a shell reads them back.
func line(argv []string) string {
	quoted := make([]string, len(argv))
	for i, w := range argv {
		quoted[i] = shell.Quote(w)
	}
	return strings.Join(quoted, " ")
}

// withNotes gives an edited input the members back that were left out of the
// call because they have no effect: hosts refuse an input without them.
func withNotes(edited, original jsontext.Value) jsontext.Value {
	if edited == nil {
		return nil
	}
	var have, had map[string]jsontext.Value
	if json.Unmarshal(edited, &have) != nil || json.Unmarshal(original, &had) != nil {
		return edited
	}
	for _, name := range call.NoteFields() {
		if v, ok := had[name]; ok && have[name] == nil {
			have[name] = v
		}
	}
	out, err := json.Marshal(have)
	if err != nil {
		return edited
	}
	if out, err = call.Canonical(out); err != nil {
		return edited
	}
	return out
}
