// Command vibe stands in for Mistral Vibe in the tests of dispatch, because Vibe
// itself is not on the registry that the other CLIs come from. It does what
// Vibe's source (2.18) says that Vibe does in programmatic mode, as far as a
// gate is concerned: its flags, its home (VIBE_HOME) with config.toml and
// hooks.toml, the agents that decide what may run, hooks before and after every
// tool with their strict flag, one JSON message a line, and the session on disk.
//
// It is no Vibe: a test against it shows that the gate's half of the bargain
// works, and nothing about Vibe's half.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// vibe is one run.
type vibe struct {
	home, agent, session, dir string
	enabled                   list
	config                    config
	hooks                     []hook
	messages                  []message
	streaming                 bool
	prompt, completion        int
}

type config struct {
	Active    string `toml:"active_model"`
	Providers []struct {
		Name string `toml:"name"`
		Base string `toml:"api_base"`
		Key  string `toml:"api_key_env_var"`
	} `toml:"providers"`
	Logging struct {
		Enabled *bool `toml:"enabled"`
	} `toml:"session_logging"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []use  `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
	Name    string `json:"name,omitempty"`
	Session string `json:"session_id,omitempty"`
}

type use struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func run() error {
	v := &vibe{home: os.Getenv("VIBE_HOME")}
	if v.home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		v.home = filepath.Join(user, ".vibe")
	}
	prompt, resume, err := v.flags()
	if err != nil {
		return err
	}
	if err := v.read(); err != nil {
		return err
	}
	if err := v.begin(resume); err != nil {
		return err
	}
	v.say(message{Role: "user", Content: prompt})
	for {
		answer, err := v.ask()
		if err != nil {
			return err
		}
		v.say(answer)
		if len(answer.Calls) == 0 {
			break
		}
		for _, c := range answer.Calls {
			v.say(message{Role: "tool", Content: v.use(c), CallID: c.ID, Name: c.Function.Name})
		}
	}
	return v.end()
}

// flags reads the command line. The prompt of -p may be left out; it is then
// read from standard input.
func (v *vibe) flags() (prompt, resume string, err error) {
	var args []string
	for _, a := range os.Args[1:] {
		if a == "-p" || a == "--prompt" {
			a = "-p="
		}
		args = append(args, a)
	}
	f := flag.NewFlagSet("vibe", flag.ContinueOnError)
	f.StringVar(&prompt, "p", "", "")
	f.StringVar(&prompt, "prompt", "", "")
	f.StringVar(&v.agent, "agent", "auto-approve", "")
	f.StringVar(&v.dir, "workdir", "", "")
	f.StringVar(&resume, "resume", "", "")
	f.Var(&v.enabled, "enabled-tools", "")
	f.Bool("trust", false, "")
	f.Int("max-turns", 0, "")
	f.Float64("max-price", 0, "")
	output := f.String("output", "text", "")
	version := f.Bool("version", false, "")
	if err := f.Parse(args); err != nil {
		return "", "", err
	}
	if *version {
		fmt.Println("vibe 2.18.4 (a stand-in)")
		os.Exit(0)
	}
	if !slices.Contains([]string{"default", "plan", "chat", "explore", "accept-edits", "auto-approve"}, v.agent) {
		return "", "", fmt.Errorf("agent %q not found", v.agent)
	}
	v.streaming = *output == "streaming"
	if v.dir != "" {
		if err := os.Chdir(v.dir); err != nil {
			return "", "", err
		}
	}
	if v.dir, err = os.Getwd(); err != nil {
		return "", "", err
	}
	if prompt == "" {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return "", "", err
		}
		prompt = string(text)
	}
	return prompt, resume, nil
}

// read reads the settings. A hook that is not as it must be is left out, and
// that is only said.
func (v *vibe) read() error {
	data, err := os.ReadFile(filepath.Join(v.home, "config.toml"))
	if err == nil {
		err = toml.Unmarshal(data, &v.config)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if model := os.Getenv("VIBE_ACTIVE_MODEL"); model != "" {
		v.config.Active = model
	}
	v.hooks, err = readHooks(filepath.Join(v.home, "hooks.toml"))
	return err
}

// say adds a message to the conversation and prints it.
func (v *vibe) say(m message) {
	v.messages = append(v.messages, m)
	if !v.streaming {
		return
	}
	m.Session = v.session
	text, err := json.Marshal(m)
	if err == nil {
		fmt.Println(string(text))
	}
}

// ask asks the model what is next.
func (v *vibe) ask() (message, error) {
	if len(v.config.Providers) == 0 {
		return message{}, errors.New("no provider is configured")
	}
	p := v.config.Providers[0]
	var tools []any
	for _, name := range []string{"bash", "read_file", "write_file"} {
		if len(v.enabled) == 0 || slices.Contains(v.enabled, name) {
			tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name}})
		}
	}
	body, err := json.Marshal(map[string]any{"model": v.config.Active, "messages": v.messages, "tools": tools})
	if err != nil {
		return message{}, err
	}
	req, err := http.NewRequest(http.MethodPost, p.Base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv(p.Key))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	var out struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out.Choices) == 0 {
		return message{}, fmt.Errorf("the model answered %s: %w", resp.Status, err)
	}
	v.prompt, v.completion = v.prompt+out.Usage.Prompt, v.completion+out.Usage.Completion
	return out.Choices[0].Message, nil
}

// use runs a tool, if the hooks and the agent let it, and returns what the model
// is told.
func (v *vibe) use(c use) string {
	name := c.Function.Name
	if reason, denied := v.before(c); denied {
		return "<tool_error>" + name + " was denied: " + reason + "</tool_error>"
	}
	if v.agent != "auto-approve" && name != "read_file" && (v.agent != "accept-edits" || name != "write_file") {
		return "<tool_error>" + name + " needs an approval that nobody can give</tool_error>"
	}
	result, err := tool(name, c.Function.Arguments)
	v.after(c, result, err)
	if err != nil {
		return "<tool_error>" + err.Error() + "\n" + result + "</tool_error>"
	}
	return result
}

// tool does what a tool does.
func tool(name, arguments string) (string, error) {
	var in struct{ Command, Path, Content string }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", err
	}
	switch name {
	case "bash":
		out, err := exec.Command("bash", "-c", in.Command).CombinedOutput()
		return string(out), err
	case "read_file":
		out, err := os.ReadFile(in.Path)
		return string(out), err
	case "write_file":
		return "written", os.WriteFile(in.Path, []byte(in.Content), 0o644)
	}
	return "", fmt.Errorf("unknown tool %q", name)
}

// begin starts a session or goes on with one.
func (v *vibe) begin(resume string) error {
	if resume == "" {
		v.session = fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(os.Getpid()), time.Now().UnixNano()&0xffffffffffff)
		return nil
	}
	found, err := filepath.Glob(filepath.Join(v.home, "logs", "session", "session_*_"+resume[:min(8, len(resume))]))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("session %s not found", resume)
	}
	v.session = resume
	data, err := os.ReadFile(filepath.Join(found[len(found)-1], "messages.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &v.messages)
}

// end prints the last answer and writes the session down, unless that is
// turned off.
func (v *vibe) end() error {
	if !v.streaming {
		fmt.Println(v.messages[len(v.messages)-1].Content)
	}
	if v.config.Logging.Enabled != nil && !*v.config.Logging.Enabled {
		return nil
	}
	dir := filepath.Join(v.home, "logs", "session", "session_"+time.Now().UTC().Format("20060102_150405")+"_"+v.session[:8])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	meta := map[string]any{"session_id": v.session, "stats": map[string]any{
		"session_prompt_tokens": v.prompt, "session_completion_tokens": v.completion, "session_cost": 0.0,
	}}
	for name, value := range map[string]any{"meta.json": meta, "messages.json": v.messages} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
