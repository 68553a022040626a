// Echo is an MCP server whose one tool echoes text into a file, by a process
// that the kernel confines to one folder.
package main

import (
	"context"
	"errors"

	"github.com/seed-3ebc6b8a/gatehouse/examples/internal/program"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	Path string `json:"path" gate:"text" jsonschema:"a file; only those under ./out can be written"`
	Text string `json:"text" gate:"text"`
}

// The path has the role of text on purpose: the argument gate lets any through,
// and the kernel is what holds.
var echoToFile = tool.New(tool.Spec{
	Name: "echo_to_file", Description: "Write a line into a file under ./out.",
	Policy: &tool.Policy{
		Risk:       tool.Medium,
		Filesystem: tool.Filesystem{Read: tool.Only("./out/**"), Write: tool.Only("./out/**")},
		Network:    tool.None, Environment: tool.None, Exec: tool.Only("tee"),
	},
}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	res, err := env.Pipe(ctx, []byte(in.Text+"\n"), "tee", "--", in.Path)
	if err != nil {
		return "", err
	}
	if res.ExitCode != 0 {
		return "", errors.New(res.Stderr)
	}
	return "written to " + in.Path, nil
})

var spec = tool.AgentSpec{Name: "echo", Tools: []*tool.Tool{echoToFile}}

func main() { program.Main(spec) }
