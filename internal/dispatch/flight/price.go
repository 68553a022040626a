package flight

import (
	_ "embed" // the price table
	"math"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

//go:embed prices.json
var pricesFile []byte

// Price is what a million tokens of a model cost, in dollars. Cached is what
// part of the input price a token from the cache costs.
type Price struct {
	Prefix string  `json:"prefix"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	Cached float64 `json:"cached"`
}

// Prices is the price table with the day it was true.
type Prices struct {
	AsOf     string  `json:"as_of"`
	Currency string  `json:"currency"`
	Per      string  `json:"per"`
	Models   []Price `json:"models"`
}

// PriceTable is the table that ships.
var PriceTable = sync.OnceValue(func() *Prices {
	p := &Prices{}
	if err := json.Unmarshal(pricesFile, p, json.RejectUnknownMembers(true)); err != nil {
		return &Prices{} // a test reads the file; without prices nothing has a derived cost
	}
	return p
})

// Find returns a model's price: that of the longest prefix of its name.
func (p *Prices) Find(model string) (Price, bool) {
	var best Price
	for _, m := range p.Models {
		if strings.HasPrefix(strings.ToLower(model), m.Prefix) && len(m.Prefix) > len(best.Prefix) {
			best = m
		}
	}
	return best, best.Prefix != ""
}

// micros are millionths of a dollar, in which sums stay exact.
func micros(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

func dollars(micros int64) float64 { return float64(micros) / 1e6 }

// cost is what tokens cost by the table, in millionths of a dollar, and what
// the cache saved of it.
func (p *Prices) cost(model string, u Usage) (cost, saved int64, known bool) {
	m, known := p.Find(model)
	if !known {
		return 0, 0, false
	}
	read := float64(u.CacheReadTokens) * m.Input
	fresh := float64(u.InputTokens+u.CacheCreationTokens) * m.Input
	// A price per million tokens is a millionth of a dollar per token.
	return int64(math.Round(fresh + read*m.Cached + float64(u.OutputTokens)*m.Output)), int64(math.Round(read * (1 - m.Cached))), true
}
