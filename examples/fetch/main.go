// Fetch is an MCP server whose one tool reads pages of the hosts it declares.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/examples/internal/program"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type input struct {
	URL string `json:"url" gate:"url" jsonschema:"the page to read"`
}

// maxPage is how much of a page the model gets.
const maxPage = 64 << 10

var fetchPage = tool.New(tool.Spec{
	Name: "fetch_page", Description: "Read a page of the Go documentation.",
	Policy: &tool.Policy{
		Risk:       tool.Medium,
		Filesystem: tool.Filesystem{Read: tool.None, Write: tool.None},
		Network:    tool.Only("go.dev:443", "pkg.go.dev:443", "127.0.0.1:7879"), // the last one: a mirror on this machine
		Exec:       tool.None, Environment: tool.None,
	},
}, func(ctx context.Context, env *tool.Env, in input) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
	if err != nil {
		return "", err
	}
	resp, err := env.HTTP().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the host answered %s", resp.Status)
	}
	page, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	return string(page), err
})

var spec = tool.AgentSpec{Name: "fetch", Tools: []*tool.Tool{fetchPage}}

func main() { program.Main(spec) }
