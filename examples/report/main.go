// Report is an MCP server whose one tool writes reports under ./reports.
package main

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/examples/internal/program"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	Path string `json:"path" gate:"write" jsonschema:"where to write it, such as reports/may.md"`
	Text string `json:"text" gate:"text" jsonschema:"the report in Markdown"`
}

var writeReport = tool.New(tool.Spec{
	Name: "write_report", Description: "Write a report as a Markdown file under ./reports.",
	Policy: &tool.Policy{
		Risk:       tool.Medium,
		Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only("./reports/**/*.md")},
		Network:    tool.None, Environment: tool.None, Exec: tool.None,
	},
	Constraints: tool.Constraints{MaxInvocations: 20},
}, func(_ context.Context, env *tool.Env, in input) (string, error) {
	return "written to " + in.Path, env.WriteFile(in.Path, []byte(in.Text))
})

var spec = tool.AgentSpec{Name: "report", Tools: []*tool.Tool{writeReport}}

func main() { program.Main(spec) }
