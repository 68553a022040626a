// Package shapes makes tools in every way a program may.
package shapes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	t "github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	Path string `json:"path"`
}

func run(ctx context.Context, env *tool.Env, in input) (string, error) {
	return "", exec.Command(in.Path).Run()
}

func pure(ctx context.Context, env *tool.Env, in input) (string, error) { return in.Path, nil }

var execPolicy = &tool.Policy{Exec: tool.Only("git")}

var named = tool.New(tool.Spec{Name: "named", Policy: &tool.Policy{}}, run) // want: exec

var aliased = t.New(t.Spec{Name: "aliased", Policy: &t.Policy{Exec: t.None}}, run) // want: exec

var explicit = tool.New[input, string](tool.Spec{Name: "explicit", Policy: &tool.Policy{Exec: tool.All}}, run) // want:

type service struct{ client *http.Client }

func (s *service) fetch(ctx context.Context, env *tool.Env, in input) (string, error) {
	r, err := s.client.Get(in.Path)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
}

var svc = &service{client: &http.Client{}}

var method = tool.New(tool.Spec{Name: "method", Policy: &tool.Policy{Exec: tool.All}}, svc.fetch) // want: network

var methodDeclared = tool.New(tool.Spec{Name: "method_declared", Policy: &tool.Policy{Network: tool.Only("a.example")}}, svc.fetch) // want:

func register(name string, p *tool.Policy, f func(context.Context, *tool.Env, input) (string, error)) *tool.Tool {
	return tool.New(tool.Spec{Name: name, Policy: p}, f)
}

var (
	registeredWrong = register("registered_wrong", &tool.Policy{Network: tool.None}, run) // want: exec
	registeredRight = register("registered_right", execPolicy, run)                       // want:
	registeredPure  = register("registered_pure", &tool.Policy{}, pure)                   // want:
	registeredNone  = register("registered_none", nil, run)                               // want: exec
)

func local() *tool.Tool {
	p := tool.Policy{Exec: tool.Only("git")}
	spec := tool.Spec{Name: "local", Policy: &p}
	return tool.New(spec, run) // want:
}

func localWrong() *tool.Tool {
	p := tool.Policy{Exec: tool.None}
	spec := tool.Spec{Name: "local_wrong"}
	spec.Policy = &p
	f := run
	return tool.New(spec, f) // want: exec
}

func computed() tool.Policy { return tool.Policy{Exec: tool.Only(os.Args...)} }

func unreadable() *tool.Tool {
	p := computed()
	return tool.New(tool.Spec{Name: "unreadable", Policy: &p}, run) // want: policy.unreadable
}

func changed(wide bool) *tool.Tool {
	p := tool.Policy{Exec: tool.None}
	if wide {
		p.Exec = tool.All
	}
	return tool.New(tool.Spec{Name: "changed", Policy: &p}, run) // want: policy.unreadable
}

var executors = map[string]func(context.Context, *tool.Env, input) (string, error){"a": pure, "b": run}

func unknownExecutor(key string) *tool.Tool {
	return tool.New(tool.Spec{Name: "unknown_executor", Policy: &tool.Policy{}}, executors[key]) // want: opaque
}

func made(dir string) func(context.Context, *tool.Env, input) (string, error) {
	return func(ctx context.Context, env *tool.Env, in input) (string, error) {
		return "", os.WriteFile(dir+in.Path, nil, 0o600)
	}
}

var fromMaker = tool.New(tool.Spec{Name: "from_maker", Policy: &tool.Policy{}}, made("/x")) // want: write

func get(c *http.Client, u string) (string, error) {
	r, err := c.Get(u)
	if err != nil {
		return "", err
	}
	return r.Status, r.Body.Close()
}

// The client of the Env may be handed on; one of one's own may not.
var handedOn = tool.New(tool.Spec{Name: "handed_on", Policy: &tool.Policy{}}, func(ctx context.Context, env *tool.Env, in input) (string, error) { // want:
	return get(env.HTTP(), in.Path)
})

var handedOwn = tool.New(tool.Spec{Name: "handed_own", Policy: &tool.Policy{}}, func(ctx context.Context, env *tool.Env, in input) (string, error) { // want: network
	return get(http.DefaultClient, in.Path)
})

var process = tool.Process(tool.Spec{Name: "process", Policy: execPolicy}, func(in input) []string { return []string{"git", in.Path} }) // want:

var processReads = tool.Process(tool.Spec{Name: "process_reads", Policy: execPolicy}, func(in input) []string { // want: read
	b, _ := os.ReadFile(in.Path)
	return []string{"git", string(b)}
})

func inLoop() (out []*tool.Tool) {
	for _, name := range []string{"a", "b"} {
		out = append(out, tool.New(tool.Spec{Name: name, Policy: &tool.Policy{}}, run)) // want: exec
	}
	return out
}

func wrapped(f func(context.Context, *tool.Env, input) (string, error)) func(context.Context, *tool.Env, input) (string, error) {
	return func(ctx context.Context, env *tool.Env, in input) (string, error) {
		fmt.Println("before")
		return f(ctx, env, in)
	}
}

var decorated = tool.New(tool.Spec{Name: "decorated", Policy: &tool.Policy{}}, wrapped(run)) // want: exec

// Two executors under one decorator are charged with each other: a known limit.
var decoratedPure = tool.New(tool.Spec{Name: "decorated_pure", Policy: &tool.Policy{}}, wrapped(pure)) // want: exec
