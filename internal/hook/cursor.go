package hook

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// cursor is the Cursor editor and its CLI. Only the older events of commands
// and MCP tools hold to "ask"; the general one does not.
var cursor = agent{parse: parseCursor, allow: allowCursor, ask: askCursor}

var cursorMoments = map[string]moment{
	"preToolUse": before, "beforeShellExecution": before, "beforeMCPExecution": before, "beforeReadFile": before,
	"postToolUse": after, "afterShellExecution": after, "afterMCPExecution": after, "postToolUseFailure": failed,
	"sessionStart": begin, "sessionEnd": end,
	"beforeSubmitPrompt": note, "afterFileEdit": note, "stop": note, "subagentStop": note, "afterAgentResponse": note, "afterAgentThought": note, "preCompact": note,
}

func parseCursor(raw []byte) (*event, error) {
	var in struct {
		Event   string         `json:"hook_event_name"`
		Session string         `json:"conversation_id"`
		Roots   []string       `json:"workspace_roots"`
		Dir     string         `json:"cwd"`
		Tool    string         `json:"tool_name"`
		Input   jsontext.Value `json:"tool_input"`
		ID      string         `json:"tool_use_id"`
		Command string         `json:"command"`
		File    string         `json:"file_path"`
	}
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	e := &event{moment: cursorMoments[in.Event], name: in.Event, ref: in.Session, tool: in.Tool, id: in.ID, dir: in.Dir}
	if e.dir == "" && len(in.Roots) > 0 {
		e.dir = in.Roots[0]
	}
	var err error
	switch in.Event {
	case "beforeShellExecution", "afterShellExecution":
		e.tool, e.asks = "Shell", in.Event == "beforeShellExecution"
		e.input, err = json.Marshal(map[string]string{"command": in.Command})
	case "beforeReadFile":
		e.tool = "Read"
		e.input, err = json.Marshal(map[string]string{"file_path": in.File})
	case "beforeMCPExecution", "afterMCPExecution":
		e.tool, e.asks = "mcp__"+in.Tool, in.Event == "beforeMCPExecution"
		e.input, err = unquote(in.Input)
	default:
		e.input, err = unquote(in.Input)
	}
	return e, err
}

// unquote reads arguments that a host wrapped into a string.
func unquote(v jsontext.Value) (jsontext.Value, error) {
	if v.Kind() != '"' {
		return v, nil
	}
	var inner string
	if err := json.Unmarshal(v, &inner); err != nil {
		return nil, err
	}
	return jsontext.Value(inner), nil
}

type cursorAnswer struct {
	Permission string `json:"permission"`
	User       string `json:"user_message,omitzero"`
	Agent      string `json:"agent_message,omitzero"`
}

func allowCursor(*event, jsontext.Value, string) Reply {
	return say(cursorAnswer{Permission: "allow"})
}

func askCursor(_ *event, why string) Reply {
	return say(cursorAnswer{Permission: "ask", User: why, Agent: why})
}
