package facts

import (
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// guard notes a path that reaches the gate itself: one of its files, or, for
// a change, a directory above them.
func (x *extractor) guard(real string, changes bool, e call.Evidence) {
	if changes && slices.Contains(x.opts.Own.ProjectFiles, path.Base(real)) {
		x.self(e.Where, "a project's policy "+real)
		return
	}
	if changes && x.hookSettings(real) {
		x.self(e.Where, "an agent's hook settings "+real)
		return
	}
	for _, own := range x.opts.Own.Paths {
		if match.Within(own, real) || changes && match.Within(real, own) {
			x.self(e.Where, "the gate's own "+own)
			return
		}
	}
}

// hookSettings says whether a path is one of the files in which agents' hooks
// are written, lies below one that is a directory, or is the agent's own
// directory above it.
func (x *extractor) hookSettings(real string) bool {
	for _, s := range x.opts.Own.Settings {
		if strings.HasSuffix(real, "/"+s) || strings.Contains(real, "/"+s+"/") {
			return true
		}
		if dir, _, nested := strings.Cut(s, "/"); nested && path.Base(real) == dir && dir != ".github" {
			return true
		}
	}
	return false
}

// guardHost notes an address of the gate itself.
func (x *extractor) guardHost(h match.Host, e call.Evidence) {
	for _, own := range x.opts.Own.Listeners {
		host, port, err := net.SplitHostPort(own)
		if err != nil || strconv.Itoa(h.Port) != port {
			continue
		}
		class := h.Class()
		if h.Name == host || class == match.ClassLoopback || class == match.ClassUnspecified {
			x.self(e.Where, "the gate's own address "+own)
			return
		}
	}
}

// mentions looks for the gate's own paths and addresses in every string of a
// call, for tools whose arguments nobody understands. A mention is enough:
// nothing an agent does needs them.
func (x *extractor) mentions(strs []String) {
	if x.call.Kind != call.External {
		return
	}
	for _, s := range strs {
		for _, own := range x.opts.Own.Paths {
			if strings.Contains(s.Text, own) {
				x.self(s.Where, "the gate's own "+own)
			}
		}
		for _, own := range x.opts.Own.Listeners {
			_, port, err := net.SplitHostPort(own)
			if err == nil && mentionsPort(s.Text, port) {
				x.self(s.Where, "the gate's own address "+own)
			}
		}
	}
}

// mentionsPort finds a loopback address with a port in a text.
func mentionsPort(text, port string) bool {
	for rest := text; ; {
		i := strings.Index(rest, ":"+port)
		if i < 0 {
			return false
		}
		start := strings.LastIndexAny(rest[:i], " \t\n\"'/@=(,;|&<>") + 1
		after := rest[i+1+len(port):]
		if after == "" || after[0] < '0' || after[0] > '9' {
			if h, err := match.ParseHost(rest[start:i] + ":" + port); err == nil {
				if c := h.Class(); c == match.ClassLoopback || c == match.ClassUnspecified {
					return true
				}
			}
		}
		rest = rest[i+1:]
	}
}

func (x *extractor) self(where, text string) {
	for _, e := range x.facts.Self {
		if e.Where == where && e.Text == text {
			return
		}
	}
	x.facts.Self = append(x.facts.Self, call.Evidence{Where: where, Text: text})
}

// guardCommand notes a command that names the gate in separate words: its
// port beside a loopback address, its process.
func (x *extractor) guardCommand(c *shell.Command, where string) {
	local := false
	words := make(map[string]bool, len(c.Args))
	for _, a := range c.Args {
		words[a.Text] = true
		if h, err := match.ParseHost(a.Text); err == nil {
			class := h.Class()
			local = local || class == match.ClassLoopback || class == match.ClassUnspecified
		}
	}
	for _, own := range x.opts.Own.Listeners {
		if _, port, err := net.SplitHostPort(own); err == nil && local && words[port] {
			x.self(where, "the gate's own address "+own)
		}
	}
	pid := strconv.Itoa(x.opts.Own.PID)
	if x.opts.Own.PID > 0 && c.Program == "kill" && (words[pid] || words["-"+pid]) {
		x.self(where, "the gate's own process "+pid)
	}
}
