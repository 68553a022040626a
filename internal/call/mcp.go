package call

import "strings"

// What agents ask of an MCP server behind the gate is an external call. A tool
// is called mcp__SERVER__TOOL, as agents' hosts call it; the other requests that
// are decided on are called mcp__SERVER:METHOD, which no tool can be.
const (
	MCPPrompt    = "prompts/get"
	MCPRead      = "resources/read"
	MCPComplete  = "completion/complete"
	MCPSubscribe = "resources/subscribe"
	MCPListen    = "subscriptions/listen"
)

const mcpPrefix = "mcp__"

// MCPServerName is what an MCP server can be called here. It leaves out the
// underscore and the plus sign, which separate a server's name from its tools'
// names and its resources' addresses.
const MCPServerName = `^[a-z][a-z0-9-]{0,31}$`

// MCPTool is the operation of a call to a tool of an MCP server.
func MCPTool(server, tool string) string { return mcpPrefix + server + "__" + tool }

// MCPRequest is the operation of another request to an MCP server.
func MCPRequest(server, method string) string { return mcpPrefix + server + ":" + method }

// SplitMCP takes such an operation apart.
func SplitMCP(operation string) (server, method, tool string, ok bool) {
	rest, ok := strings.CutPrefix(operation, mcpPrefix)
	if !ok {
		return "", "", "", false
	}
	if server, tool, ok = strings.Cut(rest, "__"); ok && server != "" && !strings.Contains(server, ":") {
		return server, "", tool, tool != ""
	}
	server, method, ok = strings.Cut(rest, ":")
	return server, method, "", ok && server != "" && method != ""
}
