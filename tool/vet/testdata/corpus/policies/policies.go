// Package policies holds policies that another package uses.
package policies

import "github.com/seed-3ebc6b8a/gatehouse/tool"

var Writer = &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Write: tool.Only("/out/**")}}

var Nothing = tool.Policy{Risk: tool.Low, Network: tool.None}
