package inrun

import (
	"context"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Drive holds a conversation with a started CLI: in is its standard input, out
// its standard output, and log gets the lines that tell what happened. It
// returns when the turn is over or nothing more can come of it, and has then
// closed in, at which the CLI ends by itself; first it writes down what a later
// turn goes on with.
type Drive func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error

// Ask decides one tool call. It may take as long as a person takes; the context
// ends when the CLI takes its question back or the conversation ends.
type Ask func(ctx context.Context, t Tool) Verdict

// Tool is a tool call that a CLI asks about.
type Tool struct {
	// Name is the host's own name of the tool.
	Name string
	// Args is a JSON object.
	Args jsontext.Value
	// Dir is where the call would run.
	Dir string
	// ID is the host's id of this use.
	ID string
	// Session is the host's name of the conversation.
	Session string
	// Path names the sub-agent that asks, "" for the main one.
	Path string
	// Rewrites says that the channel can have something else run than this.
	Rewrites bool
}

// Verdict answers a question. Its zero value refuses.
type Verdict struct {
	Answer Answer
	// Why is for the model: what to do in place of a call that was refused.
	Why string
	// Args, if set, is what is to run in place of what was asked about. Where
	// a channel cannot say that, the call is refused.
	Args jsontext.Value
	// Ended, if set, is called once for a call that was let run, with how it
	// ended.
	Ended func(Outcome)
}

// Answer is yes or no, and no unless it says yes.
type Answer uint8

// The answers.
const (
	Refuse Answer = iota
	Run
)

// Outcome is how a call ended that was let run.
type Outcome uint8

// The outcomes. Unknown is that of a call whose end was not told; Refused that
// of one that the host did not run after all.
const (
	Unknown Outcome = iota
	Succeeded
	Failed
	Refused
)

// String is the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// CodexStart is how a conversation with Codex begins.
type CodexStart struct {
	Prompt string
	// Dir is the working directory.
	Dir string
	// Model is left to the settings if "".
	Model string
	// Sandbox is Codex's own: read-only, workspace-write or danger-full-access.
	Sandbox string
	// Session is the thread to go on with, "" for a new one. Fork goes on in a
	// copy of it.
	Session string
	Fork    bool
}

// ACPStart is how a conversation over the Agent Client Protocol begins.
type ACPStart struct {
	// Host is gemini or grok.
	Host   string
	Prompt string
	// Dir is the working directory.
	Dir string
	// Session is the session to go on with, "" for a new one. See [GeminiKeep]
	// for one of Gemini CLI's.
	Session string
}

// Line is one line of the log of [Codex] and [ACP].
type Line struct {
	// Type says what the line tells and which members it has:
	//
	//	session  Session, and Model, Sandbox, Approval where the CLI tells them
	//	text     Text: a whole message of the model
	//	tool     ID, Name: a call was let run
	//	ended    ID, Name, Outcome: it ended
	//	denied   ID, Name, Text: a call was refused, and why
	//	usage    Usage: of the turn so far; the last one counts
	//	note     Text: something else that was printed
	//	end      Stop, and Text where it ended with an error; the last line
	Type     string `json:"type"`
	Session  string `json:"session,omitzero"`
	Model    string `json:"model,omitzero"`
	Sandbox  string `json:"sandbox,omitzero"`
	Approval string `json:"approval,omitzero"`
	Text     string `json:"text,omitzero"`
	ID       string `json:"id,omitzero"`
	Name     string `json:"name,omitzero"`
	Outcome  string `json:"outcome,omitzero"`
	Usage    *Usage `json:"usage,omitzero"`
	// Stop is the reason that the CLI gives: end_turn, max_tokens, refusal,
	// cancelled, failed, interrupted.
	Stop string `json:"stop,omitzero"`
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_output_tokens"`
}
