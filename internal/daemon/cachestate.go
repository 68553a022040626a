package daemon

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// cacheState lets agents read how much of their own requests came from caches:
// tokens, hashes and sums, and no text.
type cacheState struct {
	store     *store.Store
	flight    *flight.Recorder
	awareness func() flight.Awareness
}

// List lists the addresses, in both spellings of the scheme.
func (c *cacheState) List() (out []mcp.Resource) {
	for _, scheme := range []string{"cache_state://", "cache-state://"} {
		out = append(out,
			mcp.Resource{URI: scheme + "global", Name: "cache state", Description: "The last 24 hours of your requests: hit rate, tokens, estimated savings, by CLI."},
			mcp.Resource{URI: scheme + "session/{sessionId}", Name: "cache state of a session", Description: "One conversation's totals and the remaining life of its cache.", Template: true},
			mcp.Resource{URI: scheme + "prefix/{hash}", Name: "cache state of a prefix", Description: "Totals of one stable prefix hash, by CLI and model.", Template: true})
	}
	return out
}

// Read returns one of them.
func (c *cacheState) Read(ctx context.Context, who call.Principal, uri string) (out jsontext.Value, err error) {
	what, key, ok := flight.CacheURI(uri)
	if !ok {
		return nil, nil
	}
	err = c.store.Read(ctx, func(tx *store.Tx) error {
		var v any
		switch what {
		case "global":
			if v, err = c.flight.Global(tx, who); err != nil {
				return err
			}
		case "session":
			s, err := c.flight.Session(tx, who, key, c.awareness())
			if err != nil || s == nil {
				return err
			}
			v = s
		case "prefix":
			p, err := c.flight.Prefix(tx, who, key)
			if err != nil || p == nil {
				return err
			}
			v = p
		}
		out, err = json.Marshal(v)
		return err
	})
	return out, err
}
