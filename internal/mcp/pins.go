package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// survey is what an upstream's tools are, compared with their pins.
type survey struct {
	*upstream.Comparison
	texts   map[string]string // definitions in canonical form
	at      time.Time
	changed uint64
}

const (
	// pinAge is how long a comparison is good for before a call.
	pinAge = 5 * time.Minute
	// maxPages and maxTools bound what an upstream can make the gate read.
	maxPages, maxTools = 100, 10_000
)

// same says whether a definition is the one that was compared.
func (s *survey) same(name string, raw jsontext.Value) bool {
	text, err := canonical(raw)
	return err == nil && s.texts[name] == text
}

func canonical(raw jsontext.Value) (string, error) {
	v := slices.Clone(raw)
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return string(v), err
}

// denied refuses a request before it is decided on, with the reason in words
// for the model.
type denied string

// Error says why.
func (d denied) Error() string { return "Denied: " + string(d) + "." }

// trusted says whether a tool is defined as it was pinned, and returns the
// digest of its definition.
func (x *exchange) trusted(ctx context.Context, t *target, l *live, tool string) (string, error) {
	s, err := x.survey(ctx, t, l)
	if err != nil {
		return "", err
	}
	if digest := s.Good[tool]; digest != "" {
		return digest, nil
	}
	reason := s.Hidden[tool]
	if reason == "" {
		reason = s.Hidden[""]
	}
	if reason == "" {
		return "", denied(fmt.Sprintf("the MCP server %s has no tool %q", t.name, tool))
	}
	return "", denied(fmt.Sprintf("the tool %q of the MCP server %s is not available: %s, and nobody has accepted it yet. "+
		"Tell the person you work for; `gatehouse upstream diff %s` shows them what changed", tool, t.name, reason, t.name))
}

// survey asks the upstream for all its tools and compares them with the pins,
// unless that was done a moment ago and nothing has changed since.
func (x *exchange) survey(ctx context.Context, t *target, l *live) (*survey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := x.front.opts.Upstreams.Changed()
	if s := l.seen; s != nil && s.changed == changed && time.Since(s.at) < pinAge {
		return s, nil
	}
	seen, texts, err := x.tools(ctx, t, l)
	if err != nil {
		return nil, fmt.Errorf("the tools of the MCP server %s cannot be compared with what was pinned: %w", t.name, err)
	}
	if t.placed != nil {
		seen = append(seen, upstream.Definition{Kind: upstream.Origin, Text: t.placed.origin})
	}
	cmp, err := x.front.opts.Upstreams.Compare(ctx, t.pinName(x.who), seen)
	if err != nil {
		return nil, err
	}
	if cmp.Hidden[""] != "" {
		cmp.Good = nil // it is another server
	}
	// Comparing may have pinned something, which is a change of our own.
	l.seen = &survey{Comparison: cmp, texts: texts, at: time.Now(), changed: x.front.opts.Upstreams.Changed()}
	return l.seen, nil
}

// pinName is the name under which an upstream's pins are kept. A server that an
// agent wraps in place is that agent's, whatever it calls it.
func (t *target) pinName(who Who) string {
	if t.placed != nil {
		return who.Principal.Agent + "/" + t.name
	}
	return t.name
}

// tools walks the upstream's list of tools.
func (x *exchange) tools(ctx context.Context, t *target, l *live) (seen []upstream.Definition, texts map[string]string, err error) {
	texts = map[string]string{}
	cursor := jsontext.Value(nil)
	for page := range maxPages {
		r, err := x.asOurselves(ctx, l, "tools/list", strconv.Itoa(page), cursor)
		if err != nil {
			return nil, nil, err
		}
		if r.Result.IsZero() {
			if string(wire.Member(r.Value(r.Error), "code")) == strconv.Itoa(codeNoMethod) {
				break // a server without tools
			}
			return nil, nil, errors.New(wire.Text(wire.Member(r.Value(r.Error), "message")))
		}
		list, err := wire.ParseList(r, "tools", "name")
		if err != nil {
			return nil, nil, err
		}
		for _, it := range list.Items {
			text, err := canonical(it.Of(r.Raw))
			if err != nil {
				return nil, nil, err
			}
			if _, twice := texts[it.Name]; twice || it.Name == "" || len(texts) >= maxTools {
				return nil, nil, fmt.Errorf("the tool %q is there twice, has no name, or is one too many", it.Name)
			}
			texts[it.Name] = text
			seen = append(seen, upstream.Definition{Kind: upstream.Tool, Name: it.Name, Text: text, Objection: objection([]byte(text))})
		}
		if cursor = list.Value("nextCursor"); cursor.Kind() != '"' {
			break
		}
		if page == maxPages-1 {
			return nil, nil, errors.New("the list of tools does not end")
		}
	}
	return append(seen, upstream.Definition{Kind: upstream.Surveyed, Text: "yes"}), texts, nil
}

// asOurselves makes a request of the gate's own to an upstream.
func (x *exchange) asOurselves(ctx context.Context, l *live, method, number string, cursor jsontext.Value) (*wire.Message, error) {
	params := map[string]jsontext.Value{"cursor": cursor}
	if x.modern {
		meta := map[string]jsontext.Value{}
		for _, name := range []string{metaVersion, metaClient, metaCapabilities} {
			meta[name] = x.message.Value(x.message.Meta(name))
		}
		params["_meta"] = wire.Set(jsontext.Value("{}"), meta)
	}
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":"gatehouse-` + method + `-` + number + `","method":"` + method + `","params":` + string(wire.Set(jsontext.Value("{}"), params)) + `}`))
	if err != nil {
		return nil, err
	}
	header := x.forward(m)
	for name := range header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			header.Del(name)
		}
	}
	got := &capture{}
	if err := l.conn.Send(ctx, m, header, got); err != nil {
		return nil, err
	}
	if got.response == nil {
		return nil, fmt.Errorf("the upstream did not answer (%s)", http.StatusText(got.status))
	}
	return got.response, nil
}

// objection says what content validation has against a text that a model
// will read as a description, "" for nothing.
func objection(text []byte) string {
	found, err := content.ScanJSON(text, nil)
	if err != nil {
		return err.Error()
	}
	for _, f := range found {
		if serious(f) {
			return content.Explain(f.Rule)
		}
	}
	return ""
}

// pinInstructions leaves out of a response the server's instructions if they
// are not as they were pinned.
func (x *exchange) pinInstructions(ctx context.Context, t *target, r *wire.Message) []byte {
	if r.Result.IsZero() {
		return r.Raw
	}
	result := r.Value(r.Result)
	change := map[string]jsontext.Value{}
	for name, v := range private {
		if wire.Member(result, name) != nil {
			change[name] = v
		}
	}
	if text := wire.Member(result, "instructions"); !t.own {
		d := upstream.Definition{Kind: upstream.Instructions, Text: wire.Text(text)}
		if text != nil {
			d.Objection = objection(text)
		}
		cmp, err := x.front.opts.Upstreams.Compare(ctx, t.pinName(x.who), []upstream.Definition{d})
		if err != nil || !cmp.Instructions {
			change["instructions"] = nil
		}
	}
	if len(change) == 0 {
		return r.Raw
	}
	return r.WithResult(change)
}
