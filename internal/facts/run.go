package facts

import (
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// run describes a command in a sandbox by what the sandbox lets through: that is
// all it can do, whatever it is. Without a sandbox it is code that can do
// anything.
func (x *extractor) run() {
	r, err := call.ParseRun(x.call.Args)
	if err != nil {
		x.unknown(err.Error(), true)
		return
	}
	line := strings.Join(r.Command, " ")
	if r.Unconfined {
		x.unknown("runs "+line+" without a sandbox", true)
		x.need(call.ProcExec, "", call.Evidence{Where: "/unconfined", Text: "true"})
		return
	}
	x.facts.Confined = true
	for i, p := range r.Read {
		x.tree(call.FSRead, p, "/read/"+strconv.Itoa(i))
	}
	for i, p := range r.Write {
		x.tree(call.FSWrite, p, "/write/"+strconv.Itoa(i))
	}
	for i, h := range r.Hosts {
		x.declared(h, call.Evidence{Where: "/hosts/" + strconv.Itoa(i), Text: h})
	}
	if r.Public {
		x.need(call.NetEgress, "", call.Evidence{Where: "/public", Text: "every public host"})
	}
	x.facts.Words = "runs " + line + " in a sandbox"
	if len(r.Write) > 0 {
		x.facts.Words += " that can write " + strings.Join(r.Write, ", ")
	}
}

// tree adds the need for a path, or for everything below it.
func (x *extractor) tree(c call.Capability, p, where string) {
	dir, below := strings.CutSuffix(p, "/**")
	if dir == "" {
		dir = "/"
	}
	had := len(x.facts.Needs)
	x.path(c, String{Where: where, Text: dir})
	if !below {
		return
	}
	for i := had; i < len(x.facts.Needs); i++ {
		if n := &x.facts.Needs[i]; n.Capability == c && n.Scope != "" {
			n.Scope = strings.TrimSuffix(n.Scope, "/") + "/**"
		}
	}
}

// declared adds the need for a host pattern of the sandbox. A pattern that is
// no single host is the pattern's own scope.
func (x *extractor) declared(pattern string, e call.Evidence) {
	if strings.Contains(pattern, "*") || strings.Contains(pattern, "/") {
		x.need(call.NetEgress, pattern, e)
		return
	}
	x.host(pattern, e)
}

// connect describes a connection that a process in a sandbox wants to a host
// that was not declared.
func (x *extractor) connect() {
	host, _ := call.StringArg(x.call.Args, "host")
	by, _ := call.StringArg(x.call.Args, "command")
	x.host(host, call.Evidence{Where: "/host", Text: host})
	x.facts.Words = host + " wanted by " + by
}
