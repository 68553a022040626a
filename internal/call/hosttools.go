package call

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The canonical names of what agents' hosts offer. The same file read is the
// same operation whatever the host calls its tool.
const (
	OpShell      = "shell"
	OpInput      = "shell.input"
	OpCode       = "code.run"
	OpFileRead   = "file.read"
	OpFileSearch = "file.search"
	OpFileWrite  = "file.write"
	OpFileEdit   = "file.edit"
	OpFileMove   = "file.move"
	OpFileDelete = "file.delete"
	OpPatch      = "file.patch"
	OpWebFetch   = "web.fetch"
	OpWebSearch  = "web.search"
	OpTask       = "agent.task"
	OpNote       = "agent.note"
	OpPlan       = "agent.plan"
	// OpRun is a command in a sandbox of the gate's, OpConnect a connection
	// that it wants and that was not declared.
	OpRun     = "run"
	OpConnect = "net.connect"
)

// tools are the names that hosts give to their tools, by what they do: Claude
// Code, Codex, Gemini CLI, Grok, Mistral Vibe, Cursor, VS Code and Copilot,
// Windsurf, OpenHands, SWE-agent. A name that is not here keeps its own and is
// judged as an unknown tool; so is one whose meaning differs between hosts.
var tools = map[string]string{
	OpShell: `Bash bash shell Shell local_shell shell_command run_shell_command exec_command command_execution execute_bash
		run_terminal_command run_terminal_cmd run_in_terminal terminal run_command execute_command`,
	// Text for something that runs already.
	OpInput: `write_stdin send_to_terminal write_bash send_command_input`,
	// Code that the host runs itself, where no command line shows.
	OpCode: `execute_ipython_cell run_notebook_cell NotebookExecute runTests run_tests run_task create_and_run_task js_repl python`,
	OpFileRead: `Read read_file ReadFile read view view_file NotebookRead view_image read_many_files view_line_range view_code_item
		LSP open`,
	OpFileSearch: `Grep Glob LS grep glob list_directory search_file_content list_dir grep_search file_search grep_files find_by_name
		codebase_search semantic_search list_code_usages search_dir search_file find_file`,
	OpFileWrite: `Write write_file create_file write create write_to_file create_directory`,
	OpFileEdit: `Edit MultiEdit NotebookEdit replace edit_file edit search_replace str_replace insert insert_edit_into_file
		replace_string_in_file multi_replace_string_in_file replace_file_content edit_notebook_file edit_notebook StrReplace`,
	OpFileMove:   `move_file rename_file`,
	OpFileDelete: `delete_file Delete`,
	OpPatch:      `apply_patch file_change`,
	OpWebFetch:   `WebFetch web_fetch fetch fetch_webpage read_url_content open_simple_browser browser_preview`,
	OpWebSearch:  `WebSearch web_search google_web_search search_web`,
	OpTask:       `Task Agent task spawn_agent runSubagent delegate_to_agent spawn_subagent invoke_agent`,
	// What an agent writes down for itself, asks its person, or hears from
	// what it has started: nothing of it reaches the world.
	OpNote: `TodoWrite TodoRead todo_write todo update_plan write_todos manage_todo_list TaskCreate TaskUpdate TaskGet TaskList
		TaskOutput BashOutput read_bash get_terminal_output command_status read_terminal KillShell KillBash TaskStop stop_bash
		AskUserQuestion ask_user ask_user_question request_user_input EnterPlanMode ExitPlanMode enter_plan_mode exit_plan_mode
		think report_intent update_topic update_todo get_command_or_subagent_output list_background_processes
		read_background_output finish submit goto scroll_up scroll_down suggested_responses get_errors wait`,
}

// variants are tools that do one thing or another as an argument says.
var variants = map[string]struct {
	field string
	ops   map[string]string
}{
	"str_replace_editor":          {"command", editorCommands},
	"str_replace_based_edit_tool": {"command", editorCommands},
	// A true is_input sends the text to what runs in the terminal already.
	"execute_bash": {"is_input", map[string]string{"true": OpInput}},
}

var editorCommands = map[string]string{
	"view": OpFileRead, "create": OpFileWrite, "str_replace": OpFileEdit, "insert": OpFileEdit, "undo_edit": OpFileEdit,
}

// common are names of notes that other tools may well have, with an effect. They
// are taken for notes only where they say nothing but words.
var common = map[string]bool{"finish": true, "submit": true, "wait": true, "goto": true, "scroll_up": true, "scroll_down": true}

// bare says that arguments are no more than a line that starts with the tool's
// own name, as SWE-agent writes them, or words about the work.
func bare(args jsontext.Value, name string) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(args))
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return false
		}
		field := key.String()
		value, err := dec.ReadValue()
		if err != nil {
			return false
		}
		line := strings.Trim(string(value), `"`)
		switch field {
		case "message", "thought", "summary", "task_completed":
		case "command":
			if line != name && !strings.HasPrefix(line, name+" ") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// SurfaceMCP is the surface on which tools of MCP servers are called.
const SurfaceMCP = "mcp"

// hostTools folds names into operations.
var hostTools = func() map[string]string {
	m := make(map[string]string)
	for op, names := range tools {
		for name := range strings.FieldsSeq(names) {
			m[name] = op
		}
	}
	return m
}()

// HostOperations lists the operations that a tool can be said to be.
func HostOperations() []string { return slices.Sorted(maps.Keys(tools)) }

// FoldTool returns the canonical operation that a host's tool is called by, or
// the name itself if it is not the name of such a tool.
func FoldTool(name string) string {
	if op, ok := hostTools[name]; ok {
		return op
	}
	return name
}

// HostTools yields the names of hosts' tools with their operations.
func HostTools() iter.Seq2[string, string] { return maps.All(hostTools) }

// noteFields are arguments without effect: free text that a model words anew
// at every try. They move to the note, so that a retry matches its approval.
var noteFields = map[string][]string{
	OpShell: {"description", "justification"},
}

// NoteFields lists the names of arguments without effect.
func NoteFields() []string {
	var names []string
	for _, fields := range noteFields {
		names = append(names, fields...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// foldHostTool gives an external call its canonical operation.
func (c *Call) foldHostTool() error {
	op, ok := hostTools[c.Operation]
	if v, varies := variants[c.Operation]; varies {
		if is, found := v.ops[scalarArg(c.Args, v.field)]; found {
			op, ok = is, true
		}
	}
	if !ok || c.Surface == SurfaceMCP || strings.HasPrefix(c.Surface, SurfaceMCP+":") {
		return nil // what a server calls its tools is its own claim, not a host's name
	}
	if op == OpNote && common[c.Operation] && !bare(c.Args, c.Operation) {
		return nil
	}
	c.Operation = op
	for _, name := range noteFields[op] {
		text, ok := StringArg(c.Args, name)
		if !ok {
			continue
		}
		args, err := withoutMember(c.Args, name)
		if err != nil {
			return err
		}
		c.Args = args
		if c.Note == "" {
			c.Note = text
		}
	}
	return nil
}

// scalarArg returns a member of the arguments that is a string, or the literal
// text of another single value; "" if it is neither.
func scalarArg(args jsontext.Value, name string) string {
	if text, ok := StringArg(args, name); ok {
		return text
	}
	dec := jsontext.NewDecoder(bytes.NewReader(args))
	if _, err := dec.ReadToken(); err != nil {
		return ""
	}
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		found := key.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return ""
		}
		if found {
			return string(value)
		}
	}
	return ""
}

// withoutMember returns a canonical object without one of its members.
func withoutMember(args jsontext.Value, name string) (jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(args))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out)
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if key.String() == name {
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		if err := enc.WriteToken(key); err != nil {
			return nil, err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if err := enc.WriteValue(value); err != nil {
			return nil, err
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, err
	}
	return jsontext.Value(bytes.TrimSpace(out.Bytes())), nil
}
