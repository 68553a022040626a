package mcp

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// words are the members of a prompt, a resource or a template that a model
// reads as a description. Sizes and times change all the time and are not
// pinned.
var words = []string{"name", "title", "description", "arguments"}

// compareOffers holds a list of prompts, resources or templates against what
// was pinned, and says what of it is withheld.
func (x *exchange) compareOffers(ctx context.Context, t *target, kind string, list *wire.List) (map[upstream.Offer]string, error) {
	var seen []upstream.Definition
	for _, it := range list.Items {
		raw := jsontext.Value(it.Of(list.Raw()))
		said := map[string]jsontext.Value{}
		for _, name := range words {
			if v := wire.Member(raw, name); v != nil {
				said[name] = v
			}
		}
		text, err := canonical(wire.Set(jsontext.Value("{}"), said))
		if err != nil {
			return nil, err
		}
		seen = append(seen, upstream.Definition{Kind: kind, Name: it.Name, Text: text, Objection: objection([]byte(text))})
	}
	if len(seen) > maxTools {
		return nil, fmt.Errorf("the MCP server %s lists too much at once", t.name)
	}
	cmp, err := x.front.opts.Upstreams.Compare(ctx, t.pinName(x.who), seen)
	if err != nil {
		return nil, err
	}
	return cmp.Withheld, nil
}

// offered refuses a request for a prompt or a resource whose words wait to be
// accepted.
func (x *exchange) offered(ctx context.Context, t *target, m *wire.Message) error {
	var offer upstream.Offer
	switch m.Method {
	case "prompts/get":
		offer = upstream.Offer{Kind: upstream.Prompt, Name: m.String("name")}
	case "resources/read", "resources/subscribe":
		offer = upstream.Offer{Kind: upstream.Resource, Name: m.String("uri")}
	default:
		return nil
	}
	withheld, err := x.front.opts.Upstreams.Withheld(ctx, t.pinName(x.who))
	if err != nil {
		return err
	}
	if reason := withheld[offer]; reason != "" {
		return denied(fmt.Sprintf("the %s %q of the MCP server %s is not available: %s, and nobody has accepted it yet. "+
			"Tell the person you work for; `gatehouse upstream diff %s` shows them what changed", offer.Kind, offer.Name, t.name, reason, t.name))
	}
	return nil
}
