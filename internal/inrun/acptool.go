package inrun

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// acpTool is a tool call as the protocol shows it: for people, so that every
// agent puts what is needed to judge it somewhere else.
type acpTool struct {
	ID      string         `json:"toolCallId"`
	Title   string         `json:"title"`
	Kind    string         `json:"kind"`
	Input   jsontext.Value `json:"rawInput"`
	Content []struct {
		Type    string `json:"type"`
		Path    string `json:"path"`
		New     string `json:"newText"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"content"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Meta grokMeta `json:"_meta"`
}

// acpTools read tool calls, by agent.
var acpTools = map[string]func(t *acpTool, dir string) (Tool, error){"gemini": readGemini, "grok": readGrok}

// grokMeta is where Grok names its tool.
type grokMeta struct {
	Tool struct {
		Name string `json:"name"`
	} `json:"x.ai/tool"`
}

var (
	errHidden  = errors.New("the agent shows only part of the tool's input, and what cannot be seen cannot be judged")
	errUnnamed = errors.New("the agent does not say which tool it wants to use")
)

// readGrok takes Grok's own name and input. The input's "variant" says in
// another way which tool it is.
func readGrok(t *acpTool, dir string) (Tool, error) {
	name := t.Meta.Tool.Name
	if name == "" {
		return Tool{}, errUnnamed
	}
	var input map[string]jsontext.Value
	if json.Unmarshal(t.Input, &input) != nil || input == nil {
		return Tool{Name: name}, errHidden
	}
	delete(input, "variant")
	args, err := json.Marshal(input, json.Deterministic(true))
	if err != nil {
		return Tool{Name: name}, errHidden
	}
	return Tool{Name: name, Args: args, Dir: dir}, nil
}

// geminiName is the tool's name in Gemini's id of its use.
func geminiName(id string) string {
	name, _, found := strings.Cut(id, "__")
	if !found {
		return ""
	}
	return name
}

// readGemini makes a call of what Gemini CLI shows, which is not the tool's
// input: a command is the title, a file's new content a diff, what is read the
// location. The kind, which the model does not choose, says which of them
// counts; where none holds the whole input the call is refused.
func readGemini(t *acpTool, dir string) (Tool, error) {
	name := geminiName(t.ID)
	if name == "" {
		return Tool{}, errUnnamed
	}
	out := Tool{Name: name, Dir: dir}
	var args any
	switch t.Kind {
	case "execute":
		out.Name = "run_shell_command"
		args = object{"command": t.Title}
		for _, c := range t.Content {
			if in, found := strings.CutPrefix(c.Content.Text, "[in "); found {
				// Where the folder's name ends cannot be told for sure.
				folder, rest, _ := strings.Cut(in, "]")
				if strings.Contains(rest, "]") && !strings.HasSuffix(rest, " [background]") {
					return out, errHidden
				}
				args = object{"command": t.Title, "dir_path": folder}
			}
		}
	case "edit":
		if len(t.Content) != 1 || t.Content[0].Type != "diff" || t.Content[0].Path == "" {
			return out, errHidden
		}
		out.Name = "write_file"
		args = object{"file_path": t.Content[0].Path, "content": t.Content[0].New}
	case "read":
		if len(t.Locations) != 1 || t.Locations[0].Path == "" {
			return out, errHidden
		}
		out.Name = "read_file"
		args = object{"file_path": t.Locations[0].Path}
	case "search":
		// It looks nowhere but in the workspace.
		out.Name = "search_file_content"
		args = object{"pattern": t.Title, "path": dir}
	case "fetch", "think", "switch_mode", "other", "":
		return readGeminiOther(t, out)
	default:
		return out, errHidden
	}
	text, err := json.Marshal(args, json.Deterministic(true))
	out.Args = text
	return out, err
}

// readGeminiOther takes tools whose input is the content, as JSON, while it is
// short; and those that do nothing but talk.
func readGeminiOther(t *acpTool, out Tool) (Tool, error) {
	for _, c := range t.Content {
		if v := jsontext.Value(c.Content.Text); v.Kind() == '{' && v.IsValid() {
			out.Args = v
			return out, nil
		}
	}
	_, words, _ := strings.Cut(t.Title, `"`)
	words = strings.TrimSuffix(words, `"`)
	var args any
	switch {
	case strings.HasSuffix(words, "...") || strings.HasSuffix(t.Title, "..."):
		return out, errHidden // it was cut
	case out.Name == "google_web_search" && words != "":
		args = object{"query": words}
	case out.Name == "web_fetch" && words != "":
		args = object{"prompt": words}
	case len(t.Content) > 0:
		return out, errHidden
	default:
		args = object{"shown": t.Title}
	}
	shown, err := json.Marshal(args)
	out.Args = shown
	return out, err
}
