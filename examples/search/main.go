// Search is an MCP server whose one tool searches the workspace with grep, in a
// sandbox that can read the workspace and write nothing.
package main

import (
	"github.com/seed-3ebc6b8a/gatehouse/examples/internal/program"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	Pattern string `json:"pattern" gate:"text" jsonschema:"a basic regular expression"`
	Under   string `json:"under,omitempty" gate:"read" jsonschema:"the directory to search; the whole workspace if it is left out"`
}

var searchRepository = tool.Process(tool.Spec{
	Name: "search_repository", Description: "Search the files of the workspace.",
	Policy: &tool.Policy{
		Risk:       tool.Low,
		Filesystem: tool.Filesystem{Read: tool.Only("./**"), Write: tool.None},
		Network:    tool.None, Environment: tool.None, Exec: tool.Only("grep"),
	},
}, func(in input) []string {
	under := in.Under
	if under == "" {
		under = "."
	}
	return []string{"grep", "--recursive", "--line-number", "--binary-files=without-match", "--max-count=50", "-e", in.Pattern, "--", under}
})

var spec = tool.AgentSpec{Name: "search", Tools: []*tool.Tool{searchRepository}}

func main() { program.Main(spec) }
