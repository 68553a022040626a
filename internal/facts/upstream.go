package facts

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// upstreamReads says in words what the requests of MCP do that only read.
var upstreamReads = map[string]string{
	call.MCPPrompt: "reads a prompt", call.MCPRead: "reads a resource", call.MCPComplete: "asks for completions",
	call.MCPSubscribe: "watches a resource", call.MCPListen: "listens for changes",
}

// upstream describes a request to an MCP server behind the gate. What a tool
// there does nobody here can tell: what its arguments name counts, and beyond
// that only a rule that names the tool speaks for it.
func (x *extractor) upstream(strs []String) bool {
	server, method, tool, ok := call.SplitMCP(x.call.Operation)
	switch {
	case !ok:
		return false
	case tool != "":
		x.other(strs)
		x.facts.Words = "uses the tool " + tool + " of the MCP server " + server
		return true
	}
	words, reads := upstreamReads[method]
	if !reads {
		return false
	}
	x.facts.Class, x.facts.Words = "safe", words+" of the MCP server "+server
	for _, s := range strs {
		if file, ok := strings.CutPrefix(s.Text, "file://"); ok && !s.Key {
			x.path(call.FSRead, String{Text: file, Where: s.Where})
		}
	}
	return true
}
