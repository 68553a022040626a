package hook

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

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
