package console

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// serversView is the page of MCP servers behind the gate.
type serversView struct {
	Servers []admin.Upstream
	// Groups are what waits, by server.
	Groups []waitingGroup
}

// waitingGroup is what one server says about itself that waits for a person.
type waitingGroup struct {
	Upstream string
	Digest   string
	Pins     []waitingPin
}

// waitingPin is one definition, old against new, line by line.
type waitingPin struct {
	upstream.Pin
	Lines []diffLine
}

// diffLine is a line of a definition; Sign is "+" for a new one, "-" for one
// that is gone, " " for one that stays.
type diffLine struct{ Sign, Text string }

func (c *Console) serversPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	var page serversView
	var err error
	if page.Servers, err = c.desk.Upstreams(r.Context()); err != nil {
		return err
	}
	all, err := c.desk.Differences(r.Context(), "")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, p := range all.Waiting {
		if seen[p.Upstream] {
			continue
		}
		seen[p.Upstream] = true
		one, err := c.desk.Differences(r.Context(), p.Upstream)
		if err != nil {
			return err
		}
		g := waitingGroup{Upstream: p.Upstream, Digest: one.Digest}
		for _, p := range one.Waiting {
			g.Pins = append(g.Pins, waitingPin{p, diffLines(p.Was, p.Text)})
		}
		page.Groups = append(page.Groups, g)
	}
	return c.render(w, r, who, "servers", frame{Title: "MCP servers", Nav: "servers", Page: page})
}

func (c *Console) acceptServer(r *http.Request, who visitor) (done, error) {
	d := done{"/servers", "Accepted. Agents see it from now on.", "allow"}
	return d, c.desk.AcceptUpstream(r.Context(), who.actor(), r.PostForm.Get("upstream"), r.PostForm.Get("tool"), r.PostForm.Get("digest"))
}

// diffLines shows two definitions as one: lines that both have in their
// order, those of one alone marked.
func diffLines(old, now string) []diffLine {
	a, b := definitionLines(old), definitionLines(now)
	// common[i][j] is how many lines a[i:] and b[j:] share, in order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, diffLine{"-", a[i]})
			i++
		default:
			out = append(out, diffLine{"+", b[j]})
			j++
		}
	}
	return out
}

// maxDiffLines bounds the work of comparing; what is longer is shown whole,
// old and then new.
const maxDiffLines = 2000

func definitionLines(text string) []string {
	if text == "" {
		return nil
	}
	v := jsontext.Value(text)
	if v.Indent() != nil {
		v = jsontext.Value(text) // instructions are plain text
	}
	lines := strings.Split(string(v), "\n")
	if len(lines) > maxDiffLines {
		return []string{text}
	}
	return lines
}
