package hook

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// moment says what an event tells. The zero value is none, and blocks.
type moment uint8

const (
	_ moment = iota
	// before asks whether a call may run.
	before
	// prompt says that the host is about to ask about a call itself.
	prompt
	// after tells that a call has run, failed that it ran and failed, and
	// refused that the host did not run it.
	after
	failed
	refused
	// begin and end are those of a session.
	begin
	end
	// note is anything else that happens and stops nothing.
	note
)

// event is an agent's event in the one form.
type event struct {
	moment moment
	// name is the host's own name of the event.
	name string
	// ref is the host's name of the session.
	ref string
	// path is the sub-agent, "" for the main one.
	path string
	// tool, input and id are the call: the host's name of the tool, its
	// arguments, and the host's id of this use, if it has one.
	tool  string
	input jsontext.Value
	id    string
	// dir is the working directory.
	dir string
	// plan says that the host is in a mode in which nothing may be changed.
	plan bool
	// asks says that the host's own question would reach a person now.
	asks bool
	// fixed says that this host, other than its like, runs the input it asked
	// about and no other.
	fixed bool
}

// use names the call for the log: by the host's id, or by what it is where the
// host has none.
func (e *event) use() string {
	if e.id != "" {
		return e.id
	}
	return call.HostUse(e.ref, e.tool, e.input)
}

// agent is what is particular about one agent.
type agent struct {
	// parse reads an event.
	parse func(raw []byte) (*event, error)
	// allow lets a call run, with other input than it came with if edited is
	// not nil.
	allow func(e *event, edited jsontext.Value, why string) Reply
	// ask leaves the question to the host; nil where it cannot ask.
	ask func(e *event, why string) Reply
	// later ends the run until someone has answered; nil where there is no
	// such thing.
	later func(e *event, why string) Reply
	// explain says why a call is blocked, on standard output, where the host
	// tells the model nothing of standard error; nil elsewhere.
	explain func(why string) []byte
	// rewrites says that the host runs the input that allow gives it.
	rewrites bool
	// nameless says that the host may leave its session without a name; it is
	// then the process's.
	nameless bool
}

// agents are the agents there are, by the name on the hook's command line.
var agents = map[string]agent{
	"claude": claude, "codex": codex, "gemini": gemini, "grok": grok, "vibe": vibe, "cursor": cursor, "copilot": copilot, "windsurf": windsurf,
}

// Names lists the agents whose hooks are understood.
func Names() []string {
	return []string{"claude", "codex", "gemini", "grok", "vibe", "cursor", "copilot", "windsurf"}
}

// Reply is what the hook prints and how it ends.
type Reply struct {
	Stdout, Stderr []byte
	Exit           int
}

// blocked is the exit code that every agent takes for "do not run it".
const blocked = 2

// block refuses, in words for the agent.
func block(why string) Reply { return Reply{Stderr: []byte(why + "\n"), Exit: blocked} }

// silence says nothing, which lets the host go on.
func silence(*event, jsontext.Value, string) Reply { return Reply{} }

// say prints JSON.
func say(v any) Reply {
	text, err := json.Marshal(v)
	if err != nil {
		return block("Denied: the answer could not be written.")
	}
	return Reply{Stdout: append(text, '\n')}
}

// read parses an event strictly into an envelope, whose unknown members are
// left alone.
func read(raw []byte, envelope any) error {
	if err := json.Unmarshal(raw, envelope); err != nil {
		return fmt.Errorf("the event is not strict JSON of the expected form: %w", err)
	}
	return nil
}

var (
	errNoSession = errors.New("the event names no session")
	errNoTool    = errors.New("the event names no tool")
	errNoHost    = errors.New("no agent is among the processes that sent the event")
)

// check refuses events that lack what their moment needs, and brings the input
// into its canonical form.
func (e *event) check() error {
	if e.moment == 0 {
		return fmt.Errorf("%q is no event that the gate knows", e.name)
	}
	switch e.moment {
	case before, prompt, after, failed, refused:
		if e.tool == "" {
			return errNoTool
		}
		input, err := call.Canonical(e.input)
		if err != nil {
			return err
		}
		e.input = input
	}
	return nil
}
