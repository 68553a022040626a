package hook

import "github.com/go-json-experiment/json/jsontext"

// vibe is Mistral Vibe. Its hooks can be strict, which makes a failing hook a
// denial; that is how it is connected. It was not to be had for a run, so what
// is here follows its source and keeps to silence and exit codes.
var vibe = agent{parse: parseVibe, allow: silence}

var vibeMoments = map[string]moment{
	"before_tool": before, "after_tool": after, "post_agent_turn": note,
	"pre_tool_use": before, "post_tool_use": after, "session_start": begin, "session_end": end, "user_prompt_submit": note,
}

func parseVibe(raw []byte) (*event, error) {
	var in struct {
		Event   string         `json:"hook_event_name"`
		Session string         `json:"session_id"`
		Parent  string         `json:"parent_session_id"`
		Dir     string         `json:"cwd"`
		Tool    string         `json:"tool_name"`
		Input   jsontext.Value `json:"tool_input"`
		ID      string         `json:"tool_call_id"`
		Error   string         `json:"tool_error"`
	}
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	e := &event{moment: vibeMoments[in.Event], name: in.Event, ref: in.Session, tool: in.Tool, input: in.Input, id: in.ID, dir: in.Dir}
	if in.Parent != "" { // a sub-agent is part of its parent's session
		e.ref, e.path = in.Parent, in.Session
	}
	if e.moment == after && in.Error != "" {
		e.moment = failed
	}
	return e, nil
}
