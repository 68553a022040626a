package canary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Step is one tool call of the script.
type Step struct {
	// Command is run with the host's shell tool, whatever that is called.
	Command string
	// Tool and Input are any other call.
	Tool  string
	Input jsontext.Value
	// Make, if set, makes the step of what came back so far.
	Make func(results []string) Step
}

// Model is a scripted model. It is safe for concurrent use.
type Model struct {
	server *http.Server
	url    string
	done   chan struct{}

	mu      sync.Mutex
	steps   []Step
	base    int // the results that a conversation had before the script, -1 while it is not known
	cleanup []func() error
	turns   int
	offered []string
	results []string
	prompts []string
}

// Start starts a model that makes the calls in order. Close it.
func Start(steps ...Step) (*Model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Model{base: -1, steps: steps, url: "http://" + l.Addr().String(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", fixed(`{"input_tokens":42}`))
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	mux.HandleFunc("GET /v1/models", fixed(`{"object":"list","data":[{"id":"scripted","object":"model"}],"models":[]}`))
	mux.HandleFunc("POST /v1beta/models/{call}", m.generate)
	mux.HandleFunc("/{$}", func(http.ResponseWriter, *http.Request) {}) // whether anyone is there
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(m.done)
		_ = m.server.Serve(l) // it ends with Close
	}()
	return m, nil
}

// Close stops the model and removes what was made for its runs.
func (m *Model) Close() error {
	err := m.server.Close()
	<-m.done
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, clean := range m.cleanup {
		err = errors.Join(err, clean())
	}
	return err
}

// later does something when the model is closed.
func (m *Model) later(clean func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanup = append(m.cleanup, clean)
}

// Play has the model make other calls from now on, in whatever conversation
// comes next.
func (m *Model) Play(steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps, m.base, m.results, m.prompts = steps, -1, nil, nil
}

// URL is where the model listens.
func (m *Model) URL() string { return m.url }

// Results are what the host answered to the calls, as the model saw it.
func (m *Model) Results() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.results)
}

// Prompts are what the host said to the model besides results, as it saw it
// last: the prompts, and what it was told about them.
func (m *Model) Prompts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.prompts)
}

// Offered are the names of the tools that the host offered last.
func (m *Model) Offered() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.offered)
}

// final is what the model says when its script is over.
const final = "The script is over."

// turn notes what came back and returns the next call, nil when there is none
// or the host does not offer its tool.
func (m *Model) turn(offered, results, prompts []string) (step *Step, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	if len(offered) > 0 {
		m.offered = offered
		if m.base < 0 {
			m.base = len(results) // what went before is no part of the script
		}
	}
	results = results[min(max(m.base, 0), len(results)):]
	if len(results) > len(m.results) {
		m.results = results
	}
	if len(prompts) > len(m.prompts) {
		m.prompts = prompts
	}
	if len(results) >= len(m.steps) {
		return nil, m.turns
	}
	s := m.steps[len(results)]
	if s.Make != nil {
		s = s.Make(results)
	}
	if s.Command != "" {
		s = shellStep(offered, s.Command)
	}
	if !slices.Contains(offered, s.Tool) {
		return nil, m.turns
	}
	return &s, m.turns
}

// id names a call. A host may go on with a session on another model, and takes
// two calls with one name for the same.
func (m *Model) id(kind string, n int) string {
	return fmt.Sprintf("%s_%s_%d", kind, m.url[strings.LastIndexByte(m.url, ':')+1:], n)
}

// shells are the shell tools of hosts and the argument that takes the command.
var shells = []struct{ tool, argument string }{
	{"Bash", "command"}, {"run_terminal_command", "command"}, {"run_shell_command", "command"}, {"exec_command", "cmd"},
	{"shell_command", "command"}, {"bash", "command"},
}

// shellStep is a command as a call of the host's shell tool.
func shellStep(offered []string, command string) Step {
	for _, s := range shells {
		if !slices.Contains(offered, s.tool) {
			continue
		}
		input := map[string]string{s.argument: command}
		if s.argument == "command" {
			input["description"] = "a step of the script"
		}
		text, err := json.Marshal(input, json.Deterministic(true))
		if err != nil {
			return Step{}
		}
		return Step{Tool: s.tool, Input: text}
	}
	return Step{}
}

// maxRequest bounds what a host may send; theirs are a few hundred kilobytes.
const maxRequest = 32 << 20

// receive reads a request, of which only the named members matter.
func receive(w http.ResponseWriter, req *http.Request, into any) bool {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func fixed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body) // a host that hangs up learns nothing
	}
}

// stream writes server-sent events.
type stream struct{ w io.Writer }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w}
}

func (s stream) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	_, _ = fmt.Fprintf(s.w, "%sdata: %s\n\n", name, text) // a host that hangs up learns nothing
}

// object is a JSON object whose members are written in no particular order.
type object = map[string]any

// text is what a tool's result says, whatever form it has.
func text(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(v, &parts) == nil {
		var all []string
		for _, p := range parts {
			all = append(all, p.Text)
		}
		return strings.Join(all, "\n")
	}
	return string(v)
}

// Wait waits until the model has seen so many results, or the context ends.
func (m *Model) Wait(ctx context.Context, results int) error {
	for len(m.Results()) < results {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("%d of %d results", len(m.Results()), results))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
