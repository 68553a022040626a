package connect

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// entry makes what goes into the list of an event; nil takes the gate out.
type entry func(event string) any

// Hosts give the end of a session a few seconds at most.
const (
	endTimeout  = 3
	endDeadline = 2
)

// times are the host's time-out and the hook's own deadline for an event.
func times(event string) (timeout, deadline int) {
	if strings.EqualFold(event, "SessionEnd") {
		return endTimeout, endDeadline
	}
	return hostTimeout, ownDeadline
}

// commonEntry is an entry in the form that Claude Code made common. The
// time-out is in seconds, or in the parts of one that unit says.
func commonEntry(h *Hook, agent string, unit int) entry {
	if h == nil {
		return nil
	}
	return func(event string) any {
		timeout, deadline := times(event)
		return map[string]any{"matcher": "*", "hooks": []any{
			map[string]any{"type": "command", "command": h.command(agent, deadline), "timeout": timeout * unit},
		}}
	}
}

// jsonFile edits a settings file that is one JSON object with hooks in it.
func jsonFile(path, agent string, events []string, e entry, more func(o *object, was object) error) edit {
	return edit{path, func(old, before []byte) ([]byte, error) {
		o, err := parseObject(old)
		if err != nil {
			return nil, err
		}
		was, err := parseObject(before)
		if err != nil {
			return nil, err
		}
		if err := jsonHooks(&o, agent, events, e); err != nil {
			return nil, err
		}
		if more != nil {
			if err := more(&o, was); err != nil {
				return nil, err
			}
		}
		return o.format()
	}}
}

// jsonHooks puts an entry into the lists of events under "hooks", in place of
// what an earlier connect put there, or takes that out if there is no entry.
func jsonHooks(o *object, agent string, events []string, made entry) error {
	hooks, err := parseObject(o.get("hooks"))
	if err != nil {
		return err
	}
	for _, m := range hooks.clone() { // entries of earlier versions, wherever they are
		entries, err := list(m.value)
		if err != nil {
			return err
		}
		kept := withoutOurs(entries, agent)
		switch {
		case len(kept) == 0:
			hooks.drop(m.name)
		case len(kept) < len(entries):
			if err := hooks.set(m.name, kept); err != nil {
				return err
			}
		}
	}
	for _, event := range events {
		if made == nil {
			break
		}
		entries, err := list(hooks.get(event))
		if err != nil {
			return err
		}
		value, err := encode(made(event))
		if err != nil {
			return err
		}
		if err := hooks.set(event, append(entries, value)); err != nil {
			return err
		}
	}
	if len(hooks) == 0 {
		o.drop("hooks")
		return nil
	}
	return o.set("hooks", hooks)
}

func (o object) clone() object { return append(object(nil), o...) }

// withoutOurs leaves out the entries whose command is the gate's.
func withoutOurs(entries []jsontext.Value, agent string) []jsontext.Value {
	kept := []jsontext.Value{}
	for _, e := range entries {
		var entry struct {
			Command string `json:"command"`
			Bash    string `json:"bash"`
			Hooks   []struct {
				Command string `json:"command"`
			} `json:"hooks"`
		}
		mine := false
		if json.Unmarshal(e, &entry) == nil {
			mine = ours(entry.Command, agent) || ours(entry.Bash, agent)
			for _, h := range entry.Hooks {
				mine = mine || ours(h.Command, agent)
			}
		}
		if !mine {
			kept = append(kept, e)
		}
	}
	return kept
}
