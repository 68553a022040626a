package policy

import (
	"slices"
	"time"
)

// CacheAwareness says what is known about the caches of model providers. It
// decides nothing.
type CacheAwareness struct {
	WarnOnTTLExpiry     *bool `toml:"warn_on_ttl_expiry,omitempty" json:"warn_on_ttl_expiry,omitempty" jsonschema:"Whether answers warn when the provider's cache of the conversation is within 30 s of its end."`
	AnthropicTTLSeconds *int  `toml:"anthropic_ttl_seconds,omitempty" json:"anthropic_ttl_seconds,omitempty" jsonschema:"How long Anthropic's cache holds a prompt: 300 or 3600."`
}

// CacheSettings are the resolved values of all layers.
type CacheSettings struct {
	Warn bool
	TTL  time.Duration
}

// cacheLives are the seconds for which Anthropic sells its cache.
var cacheLives = []int{300, 3600}

func (m *merger) cacheAwareness() {
	set := &m.s.Settings.Cache
	merge(m, "cache_awareness.warn_on_ttl_expiry", &set.Warn, number(func(f *File) *bool {
		return ifSet(f.CacheAwareness, func(c *CacheAwareness) *bool { return c.WarnOnTTLExpiry })
	}), onIsStricter)
	seconds := int(set.TTL / time.Second)
	merge(m, "cache_awareness.anthropic_ttl_seconds", &seconds, number(func(f *File) *int {
		return ifSet(f.CacheAwareness, func(c *CacheAwareness) *int { return c.AnthropicTTLSeconds })
	}), fewerIsStricter)
	set.TTL = time.Duration(seconds) * time.Second
}

func (c *checker) cacheAwareness() {
	a := c.f.CacheAwareness
	if a != nil && a.AnthropicTTLSeconds != nil && !slices.Contains(cacheLives, *a.AnthropicTTLSeconds) {
		c.add(join("cache_awareness", "anthropic_ttl_seconds"), "", "Anthropic's cache holds for 300 or 3600 seconds")
	}
}
