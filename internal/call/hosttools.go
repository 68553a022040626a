package call

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The canonical names of what agents' hosts offer. The same file read is the
// same operation whatever the host calls its tool.
const (
	OpShell      = "shell"
	OpInput      = "shell.input"
	OpFileRead   = "file.read"
	OpFileSearch = "file.search"
	OpFileWrite  = "file.write"
	OpFileEdit   = "file.edit"
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

// hostTools folds the tool names of agents' hosts into canonical operations.
// A name that is not here keeps its own and is judged as an unknown tool.
var hostTools = map[string]string{
	"Bash": OpShell, "bash": OpShell, "shell": OpShell, "Shell": OpShell, "local_shell": OpShell,
	"run_shell_command": OpShell, "exec_command": OpShell, "command_execution": OpShell, "execute_bash": OpShell,
	"run_terminal_command": OpShell, "run_terminal_cmd": OpShell, "run_in_terminal": OpShell, "terminal": OpShell,
	"write_stdin": OpInput, "send_to_terminal": OpInput, "write_bash": OpInput,
	"Read": OpFileRead, "read_file": OpFileRead, "view": OpFileRead, "ReadFile": OpFileRead, "read": OpFileRead, "view_file": OpFileRead,
	"Grep": OpFileSearch, "Glob": OpFileSearch, "LS": OpFileSearch, "grep": OpFileSearch, "glob": OpFileSearch,
	"list_directory": OpFileSearch, "search_file_content": OpFileSearch, "list_dir": OpFileSearch, "grep_search": OpFileSearch, "file_search": OpFileSearch,
	"Write": OpFileWrite, "write_file": OpFileWrite, "create_file": OpFileWrite, "write": OpFileWrite,
	"Edit": OpFileEdit, "MultiEdit": OpFileEdit, "NotebookEdit": OpFileEdit, "replace": OpFileEdit, "edit_file": OpFileEdit,
	"search_replace": OpFileEdit, "str_replace": OpFileEdit, "insert": OpFileEdit, "StrReplace": OpFileEdit,
	"replace_string_in_file": OpFileEdit, "multi_replace_string_in_file": OpFileEdit, "insert_edit_into_file": OpFileEdit,
	"apply_patch": OpPatch,
	"WebFetch":    OpWebFetch, "web_fetch": OpWebFetch, "fetch": OpWebFetch, "fetch_webpage": OpWebFetch,
	"WebSearch": OpWebSearch, "web_search": OpWebSearch, "google_web_search": OpWebSearch,
	"Task": OpTask, "Agent": OpTask, "task": OpTask, "spawn_subagent": OpTask, "invoke_agent": OpTask, "runSubagent": OpTask,
	"TodoWrite": OpNote, "TodoRead": OpNote, "update_plan": OpNote, "write_todos": OpNote, "TaskCreate": OpNote, "TaskUpdate": OpNote,
	"TaskGet": OpNote, "TaskList": OpNote, "AskUserQuestion": OpNote, "EnterPlanMode": OpNote, "ExitPlanMode": OpNote, "think": OpNote,
	"todo_write": OpNote, "enter_plan_mode": OpNote, "exit_plan_mode": OpNote, "ask_user_question": OpNote, "update_topic": OpNote,
	"manage_todo_list": OpNote, "update_todo": OpNote, "report_intent": OpNote,
	// What a command that was let through earlier has printed since.
	"BashOutput": OpNote, "TaskOutput": OpNote, "read_bash": OpNote, "get_command_or_subagent_output": OpNote,
	"list_background_processes": OpNote, "read_background_output": OpNote,
}

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
	if !ok {
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
