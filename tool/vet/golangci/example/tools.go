// Package example has a tool that declares what it does and one that does more,
// behind a helper of another file and one of a library.
package example

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

// Right writes what it says it writes.
var Right = tool.New(tool.Spec{
	Name:   "right",
	Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only("./out/**")}, Network: tool.None, Environment: tool.None, Exec: tool.None},
}, func(context.Context, *tool.Env, struct{}) (string, error) { return "", save("out/a") })

// Wrong starts a program besides.
var Wrong = tool.New(tool.Spec{ // want exec
	Name:   "wrong",
	Policy: &tool.Policy{Risk: tool.Low, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only("./out/**")}, Network: tool.None, Environment: tool.None, Exec: tool.None},
}, func(context.Context, *tool.Env, struct{}) (string, error) { return render() })

// Silent declares nothing at all.
var Silent = tool.New(tool.Spec{Name: "silent"}, func(context.Context, *tool.Env, struct{}) (string, error) { // want policy
	return "", save("out/a")
})
