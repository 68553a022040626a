package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

// folder is where the examples work.
func folder() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		panic(err)
	}
	return dir
}

// A tool says once what it may touch. What lies outside is denied before the
// executor runs, with a reason that the model can read.
func ExampleNew() {
	dir := folder()
	defer os.RemoveAll(dir)

	type input struct {
		Path string `json:"path" gate:"write"`
		Text string `json:"text" gate:"text"`
	}
	report := tool.New(tool.Spec{
		Name: "write_report", Description: "Write a report under ./reports.",
		Policy: &tool.Policy{
			Risk:       tool.Medium,
			Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only("./reports/**")},
			Network:    tool.None, Environment: tool.None, Exec: tool.None,
		},
	}, func(_ context.Context, env *tool.Env, in input) (string, error) {
		return "written", env.WriteFile(in.Path, []byte(in.Text))
	})

	agent, err := tool.NewAgent(tool.AgentSpec{Name: "reporter", Tools: []*tool.Tool{report}, Workspace: dir})
	if err != nil {
		panic(err)
	}
	run := agent.Invoke()
	out := run.Call(context.Background(), "write_report", json.RawMessage(`{"path": "reports/may.md", "text": "all well"}`))
	fmt.Println(string(out.Output))
	out = run.Call(context.Background(), "write_report", json.RawMessage(`{"path": "reports/../../../etc/passwd", "text": "x"}`))
	fmt.Println(out.Denied, strings.Contains(out.Reason, "/etc/passwd"))
	// Output:
	// "written"
	// true true
}

// Constraints say when and how often; the model is told what it has to do.
func ExampleConstraints() {
	step := func(name string, c tool.Constraints) *tool.Tool {
		return tool.New(tool.Spec{Name: name, Constraints: c}, func(context.Context, *tool.Env, struct{}) (string, error) { return name + " done", nil })
	}
	agent, err := tool.NewAgent(tool.AgentSpec{Name: "releaser", Tools: []*tool.Tool{
		step("fetch", tool.Constraints{}),
		step("commit", tool.Constraints{MaxInvocations: 1, OnlyAfter: []string{"fetch"}}),
	}})
	if err != nil {
		panic(err)
	}
	run := agent.Invoke()
	for _, name := range []string{"commit", "fetch", "commit", "commit"} {
		out := run.Call(context.Background(), name, json.RawMessage(`{}`))
		fmt.Println(string(out.Output) + out.Reason)
	}
	// Output:
	// commit may only run after fetch, which has not completed successfully in this invocation
	// "fetch done"
	// "commit done"
	// commit may run 1 times in one invocation, and has
}

// An interceptor looks at every call before it runs. What it rewrites is held
// against the policy again.
func ExampleInterceptor() {
	greet := tool.New(tool.Spec{Name: "greet", Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None}}},
		func(_ context.Context, _ *tool.Env, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "hello " + in.Name, nil
		})
	agent, err := tool.NewAgent(tool.AgentSpec{Name: "greeter", Tools: []*tool.Tool{greet}, Interceptors: []tool.Interceptor{
		func(_ context.Context, c tool.Call) tool.Intercept {
			if strings.Contains(string(c.Args), "mallory") {
				return tool.Rewrite(json.RawMessage(`{"name": "/etc/passwd"}`))
			}
			return tool.Proceed()
		},
	}})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"alice", "mallory"} {
		out := agent.Invoke().Call(context.Background(), "greet", json.RawMessage(`{"name": "`+name+`"}`))
		fmt.Println(string(out.Output), out.Denied)
	}
	// Output:
	// "hello alice" false
	//  true
}

// What is wrong with a set of tools is reported at once, before any of them
// runs.
func ExampleNewAgent() {
	nop := func(context.Context, *tool.Env, struct{}) (string, error) { return "", nil }
	_, err := tool.NewAgent(tool.AgentSpec{
		Name: "builder",
		Tools: []*tool.Tool{
			tool.New(tool.Spec{Name: "fetch", Constraints: tool.Constraints{Forbidden: true, ForceAtStep: 1}}, nop),
			tool.New(tool.Spec{Name: "build", Constraints: tool.Constraints{OnlyAfter: []string{"fecth"}}}, nop),
		},
		Grants: &tool.Grants{Allow: []string{"build"}},
		Budget: map[string]int64{"maxToolCals": 5},
	})
	fmt.Println(err)
	// Output:
	// tool fetch: forbidden and forced at step 1 contradict each other
	// tool build: onlyAfter names "fecth", which is no tool here; did you mean "fetch"?
	// agent builder: grants: fetch is used and not granted
	// agent builder: budget: there is no limit "maxToolCals"; did you mean "maxToolCalls"?
}

// A composite tool names its parts; each call of one is a call of its own.
func ExampleEnv_Call() {
	nop := func(_ context.Context, _ *tool.Env, in struct {
		Page string `json:"page"`
	}) (string, error) {
		return "up: " + in.Page, nil
	}
	upload := tool.New(tool.Spec{Name: "upload", Constraints: tool.Constraints{MaxInvocations: 1}}, nop)
	publish := tool.New(tool.Spec{Name: "publish", Parts: []string{"upload"}}, func(ctx context.Context, env *tool.Env, in struct {
		Pages []string `json:"pages"`
	}) ([]string, error) {
		var done []string
		for _, p := range in.Pages {
			if _, err := env.Call(ctx, "upload", map[string]string{"page": p}); err != nil {
				return done, err
			}
			done = append(done, p)
		}
		return done, nil
	})
	agent, err := tool.NewAgent(tool.AgentSpec{Name: "publisher", Tools: []*tool.Tool{publish, upload}})
	if err != nil {
		panic(err)
	}
	out := agent.Invoke().Call(context.Background(), "publish", json.RawMessage(`{"pages": ["a", "b"]}`))
	fmt.Println(out.Err)
	// Output:
	// upload was denied: upload may run 1 times in one invocation, and has
}
