package aql

import (
	"context"
	"time"
)

// Record is a line of the log that is about one of the caller's own calls.
type Record struct {
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Call      string    `json:"call_id,omitzero"`
	Operation string    `json:"operation,omitzero"`
	Level     string    `json:"level,omitzero"`
	Outcome   string    `json:"outcome,omitzero"`
}

// RecordQuery selects records of one agent.
type RecordQuery struct {
	Agent                           string
	Kind, Operation, Level, Outcome string
	Cursor                          string
	Limit                           int
}

// Log is the operations that read the caller's own part of the log.
type Log struct {
	// Records lists records, newest first, and where the next ones start.
	Records func(ctx context.Context, q RecordQuery) (list []Record, next string, err error)
}

// Operations lists the group.
func (g *Log) Operations() []Operation {
	return []Operation{
		Op("query_logs", g.logs),
		Op("query_metrics", g.metrics),
	}
}

type logParams struct {
	Kind      string `json:"kind,omitzero" about:"call or outcome"`
	Operation string `json:"operation,omitzero" about:"only this operation"`
	Level     string `json:"level,omitzero" about:"only calls of this level"`
	Outcome   string `json:"outcome,omitzero" about:"allowed, denied, pending, succeeded, failed, refused or unknown"`
	Cursor    string `json:"cursor,omitzero" about:"next of the page before"`
	Limit     int    `json:"limit,omitzero" about:"up to 200; 50 if left out"`
}

// Records is the answer to query_logs.
type Records struct {
	Records []Record `json:"records"`
	Next    string   `json:"next,omitzero"`
}

func (g *Log) logs(ctx context.Context, j *Job, p logParams) (any, error) {
	if p.Limit <= 0 || p.Limit > 200 {
		p.Limit = 50
	}
	list, next, err := g.Records(ctx, RecordQuery{
		Agent: j.Principal.Agent, Kind: p.Kind, Operation: p.Operation, Level: p.Level, Outcome: p.Outcome, Cursor: p.Cursor, Limit: p.Limit,
	})
	return Records{Records: list, Next: next}, err
}

// Metrics counts the caller's newest records.
type Metrics struct {
	Records   int            `json:"records"`
	Since     time.Time      `json:"since,omitzero"`
	ByLevel   map[string]int `json:"by_level"`
	ByOutcome map[string]int `json:"by_outcome"`
}

// counted is how many records the counters look back.
const counted = 1000

func (g *Log) metrics(ctx context.Context, j *Job, _ None) (any, error) {
	list, _, err := g.Records(ctx, RecordQuery{Agent: j.Principal.Agent, Limit: counted})
	out := Metrics{Records: len(list), ByLevel: make(map[string]int), ByOutcome: make(map[string]int)}
	for _, r := range list {
		if r.Level != "" {
			out.ByLevel[r.Level]++
		}
		out.ByOutcome[r.Outcome]++
		out.Since = r.Time
	}
	return out, err
}
