package element

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// lifecycle are operations that an agent needs to run and to stop, whatever
// its list of tools says.
var lifecycle = []string{
	"execute_agent", "record_execution_step", "get_execution_state", "get_gathered_data", "complete_execution", "continue_execution",
	"abort_execution", "prepare_handoff", "resume_from_handoff", "confirm_operation", "introspect", "get_capabilities",
}

// tools makes a policy of the list of tools that an agent without a policy of
// its own names: operations of endpoints that it does not list are denied, and
// so are hosts' tools if it lists some of them.
func (l *linter) tools(n *yaml.Node, e *Element) {
	if n == nil {
		return
	}
	allowed, denied := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode {
		allowed, denied = nil, nil
		for key, v := range l.members(n, "tools", "allowed", "denied", "required", "optional") {
			switch key {
			case "allowed":
				allowed = v
			case "denied":
				denied = v
			}
		}
	}
	if allowed != nil {
		endpoints, others := splitTools(l.list("tools", allowed))
		e.External.Only = others
		if len(endpoints) > 0 {
			e.Lists.Deny = append(e.Lists.Deny, operationsOf(func(op *call.Operation) bool { return !slices.Contains(endpoints, op.Endpoint) })...)
		}
	}
	if denied != nil {
		endpoints, others := splitTools(l.list("tools.denied", denied))
		e.External.Deny = append(e.External.Deny, others...)
		e.Lists.Deny = append(e.Lists.Deny, operationsOf(func(op *call.Operation) bool { return slices.Contains(endpoints, op.Endpoint) })...)
	}
}

// splitTools sorts the gate's own endpoints from other tools.
func splitTools(list []string) (endpoints []call.Endpoint, others []string) {
	for _, tool := range list {
		name, own := strings.CutPrefix(tool, "mcp_aql_")
		var e call.Endpoint
		if own && e.UnmarshalText([]byte(strings.ToUpper(name))) == nil {
			endpoints = append(endpoints, e)
			continue
		}
		if tool == "mcp_aql" {
			endpoints = append(endpoints, call.Endpoints()...)
			continue
		}
		others = append(others, tool)
	}
	return endpoints, others
}

// operationsOf lists operations that a list of tools can deny.
func operationsOf(which func(*call.Operation) bool) []string {
	var out []string
	for _, op := range call.Operations() {
		if which(&op) && !op.Ungatable && !slices.Contains(lifecycle, op.Name) {
			out = append(out, op.Name)
		}
	}
	return out
}
