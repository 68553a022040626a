package hook

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// windsurf is Windsurf's Cascade. It takes an exit code and nothing else.
var windsurf = agent{parse: parseWindsurf, allow: silence}

var windsurfMoments = map[string]moment{
	"pre_run_command": before, "pre_write_code": before, "pre_read_code": before, "pre_mcp_tool_use": before,
	"post_run_command": after, "post_write_code": after, "post_read_code": after, "post_mcp_tool_use": after,
	"pre_user_prompt": note, "post_cascade_response": note, "post_setup_worktree": note,
}

func parseWindsurf(raw []byte) (*event, error) {
	var in struct {
		Event   string `json:"agent_action_name"`
		Session string `json:"trajectory_id"`
		Info    struct {
			Command   string         `json:"command_line"`
			Dir       string         `json:"cwd"`
			File      string         `json:"file_path"`
			Edits     jsontext.Value `json:"edits"`
			Server    string         `json:"mcp_server_name"`
			Tool      string         `json:"mcp_tool_name"`
			Arguments jsontext.Value `json:"mcp_tool_arguments"`
		} `json:"tool_info"`
	}
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	e := &event{moment: windsurfMoments[in.Event], name: in.Event, ref: in.Session, dir: in.Info.Dir}
	var err error
	switch in.Event {
	case "pre_run_command", "post_run_command":
		e.tool = "shell"
		e.input, err = json.Marshal(map[string]string{"command": in.Info.Command})
	case "pre_read_code", "post_read_code":
		e.tool = "read_file"
		e.input, err = json.Marshal(map[string]string{"file_path": in.Info.File})
	case "pre_write_code", "post_write_code":
		e.tool = "write_file"
		e.input, err = json.Marshal(struct {
			File  string         `json:"file_path"`
			Edits jsontext.Value `json:"edits,omitzero"`
		}{in.Info.File, in.Info.Edits})
	case "pre_mcp_tool_use", "post_mcp_tool_use":
		e.tool = "mcp__" + in.Info.Server + "__" + in.Info.Tool
		e.input, err = unquote(in.Info.Arguments)
	}
	return e, err
}
