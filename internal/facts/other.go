package facts

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// codeFields are the names of arguments that hold code to be run.
var codeFields = fields("code script command cmd expression query sql statement javascript js python function eval program commands shell")

// urlFields are the names of arguments that hold an address.
var urlFields = fields("url uri href link endpoint host hostname base_url baseUrl server domain website webhook_url callback_url")

// other describes a tool that the gate does not know, such as one of an MCP
// server. What its arguments are is guessed from their names and from what
// the server says about them; both are claims, so they can add needs and take
// none away, and the call stays unknown.
func (x *extractor) other(strs []String) {
	x.untrusted = true
	hints := x.hints()
	code := false
	for _, s := range strs {
		if s.Key {
			continue
		}
		switch role := hints.role(s); {
		case role == roleCode:
			code = true
		case role == rolePath:
			x.path(call.FSRead, s)
		case role == roleURL:
			x.host(s.Text, call.Evidence{Where: s.Where, Text: s.Text})
		}
	}
	x.hinted(strs)
	x.unknown("uses a tool that the gate does not know: "+x.call.Operation, code)
	if code {
		x.need(call.ProcExec, "", call.Evidence{Where: "operation", Text: "takes code"})
	}
	if x.call.Tool == nil {
		return
	}
	claim := call.Evidence{Where: "operation", Text: "the server says so of " + x.call.Operation}
	if x.call.Tool.Destructive {
		x.facts.Irreversible = true
		x.need(call.FSDelete, "", claim)
	}
	if x.call.Tool.OpenWorld {
		x.need(call.NetEgress, "", claim)
	}
}

// role is what an argument of an unknown tool is.
type role uint8

const (
	roleData role = iota
	rolePath
	roleURL
	roleCode
)

// hints are the roles of arguments by what a tool's schema says of them.
type hints map[string]role

// hints reads the schema that came with the call, if one did.
func (x *extractor) hints() hints {
	if x.call.Tool == nil || len(x.call.Tool.Schema) == 0 {
		return nil
	}
	h := make(hints)
	about := make(map[string]string) // what the schema says of each property
	for _, s := range Strings(x.call.Tool.Schema) {
		if s.Key {
			continue
		}
		if name, ok := property(s.Where); ok && (s.Name == "description" || s.Name == "format" || s.Name == "title") {
			about[name] += " " + strings.ToLower(s.Text)
		}
	}
	for name, text := range about {
		switch {
		case containsAny(text, " sql", "code to", "script to", "command to", "javascript", "python code", "expression to evaluate"):
			h[name] = roleCode
		case containsAny(text, "uri", "url", "hostname"):
			h[name] = roleURL
		case containsAny(text, "path", "file name", "filename", "directory"):
			h[name] = rolePath
		}
	}
	return h
}

// property takes the name of a property out of a pointer into a schema:
// /properties/NAME/description.
func property(pointer string) (string, bool) {
	rest, ok := strings.CutPrefix(pointer, "/properties/")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "/")
	return name, ok
}

func containsAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// role says what an argument is, the worst of what its name and the schema
// say of it.
func (h hints) role(s String) role {
	r := h[s.Name]
	switch {
	case codeFields[s.Name]:
		r = max(r, roleCode)
	case urlFields[s.Name] || strings.Contains(s.Text, "://"):
		r = max(r, roleURL)
	case pathFields[s.Name] || looksLikePath(s.Text):
		r = max(r, rolePath)
	}
	return r
}

// looksLikePath says whether a text can only be meant as a path.
func looksLikePath(text string) bool {
	return (strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "~/")) &&
		!strings.ContainsAny(text, "\n\r")
}
