package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

const (
	// liveRecords is how far back the feed looks.
	liveRecords = 200
	// maxSummed is the largest body the feed reads for a summary: it looks at
	// every record on every change.
	maxSummed = 32 << 10
)

// liveRow is one call in the feed: what it was and how far it has got.
type liveRow struct {
	CallID    string
	RecordID  string
	Time      time.Time
	Agent     string
	Session   string
	Operation string
	Summary   string
	Level     string
	// Verdict is allowed, denied or pending, Outcome how its effect ended.
	Verdict, Outcome string
}

func (c *Console) livePage(w http.ResponseWriter, r *http.Request, who visitor) error {
	rows, err := c.liveRows(r)
	if err != nil {
		return err
	}
	return c.render(w, r, who, "live", frame{Title: "Live", Nav: "live", View: "live", Page: rows})
}

// liveRows gathers the newest records by call, the newest call first.
func (c *Console) liveRows(r *http.Request) ([]*liveRow, error) {
	records, _, err := c.desk.Records(r.Context(), admin.RecordFilter{}, "", liveRecords)
	if err != nil {
		return nil, err
	}
	var rows []*liveRow
	byCall := make(map[string]*liveRow)
	for i := range records {
		rec := &records[i]
		if rec.CallID == "" {
			continue
		}
		row := byCall[rec.CallID]
		if row == nil {
			row = &liveRow{CallID: rec.CallID}
			byCall[rec.CallID] = row
			rows = append(rows, row)
		}
		row.add(rec)
	}
	return rows, nil
}

// add takes what a record says; records come newest first, so what is known
// already is newer.
func (row *liveRow) add(rec *admin.Record) {
	agent, _, _ := strings.Cut(rec.Principal, "/")
	row.RecordID, row.Time = rec.ID, rec.Time
	row.Agent, row.Session = first(row.Agent, agent), first(row.Session, rec.Session)
	row.Operation, row.Level = first(row.Operation, rec.Operation), first(row.Level, rec.Level)
	row.Summary = first(row.Summary, summary(rec.Body))
	switch rec.Outcome {
	case "allowed", "denied", "pending":
		row.Verdict = first(row.Verdict, rec.Outcome)
	case "succeeded", "failed", "refused", "unknown":
		row.Outcome = first(row.Outcome, rec.Outcome)
	}
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// telling are the arguments that say most about a call, the most telling first.
var telling = []string{"command", "cmd", "file_path", "path", "url", "query", "element_name", "name", "prompt"}

// summary picks what says most about a call from the body of its record. The
// record is already redacted.
func summary(body []byte) string {
	var rec struct {
		Call struct {
			Args json.RawMessage `json:"args"`
		} `json:"call"`
	}
	if len(body) > maxSummed || json.Unmarshal(body, &rec) != nil {
		return ""
	}
	return shorten(telltale(jsontext.Value(rec.Call.Args)))
}

// telltale returns the argument that says most, or all of them as JSON.
func telltale(args jsontext.Value) string {
	for _, name := range telling {
		if text, ok := call.StringArg(args, name); ok && text != "" {
			return text
		}
	}
	if text := string(args); text != "{}" {
		return text
	}
	return ""
}

// shorten keeps a text on one row of a list; the record has all of it.
func shorten(s string) string {
	const most = 200
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + "…"
}
