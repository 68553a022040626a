// Package tool is for authors of tools in Go: declare once what a tool may
// touch, and the gate enforces it, CI reviews it, and go vet holds the code
// against it.
//
//	var Report = tool.New(tool.Spec{
//		Name:   "write_report",
//		Policy: &tool.Policy{Risk: tool.Medium, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only("/srv/reports/**")}},
//	}, func(ctx context.Context, env *tool.Env, in struct {
//		Path string `json:"path" gate:"write"`
//		Text string `json:"text" gate:"text"`
//	}) (string, error) {
//		return "written", env.WriteFile(in.Path, []byte(in.Text))
//	})
//
// The executor gets its access through [Env]: files within its globs, an HTTP
// client bound to its hosts, its variables, processes that are confined. What
// lies outside the declaration is refused there and told to the gate, so the
// easy way to write a tool is the confined way. Ambient access (os, net/http)
// still works, as in any Go program: the gatehouse-vet checker reports it where
// the policy does not declare it.
//
// A program of tools calls sandbox.MaybeLaunch first thing in main if it starts
// processes. Nothing here opens the gate's store: a tool is a client.
//
// Start reading at [New], then [Env].
package tool
