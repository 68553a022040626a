package console

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

const logPageSize = 50

// fieldTime is how a browser writes the value of a field for date and time.
const fieldTime = "2006-01-02T15:04"

// choice is one of the fixed values of a filter.
type choice struct {
	Value    string
	Words    string
	Selected bool
}

type logView struct {
	Filter                  url.Values
	Kinds, Levels, Outcomes []choice
	Records                 []admin.Record
	// Older and Newest lead to other pages, "" where there is none.
	Older, Newest string
	Filtered      bool
	Error         string
}

func (c *Console) logPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	q := r.URL.Query()
	page := logView{
		Filter:   q,
		Kinds:    choices(q.Get("kind"), "call", "verdict", "start", "outcome"),
		Levels:   choices(q.Get("level"), call.LevelNames()...),
		Outcomes: choices(q.Get("outcome"), "allowed", "denied", "pending", "succeeded", "failed", "refused", "unknown"),
	}
	filter, err := c.readFilter(q)
	if err != nil {
		page.Error = c.publicText(r, err)
	}
	page.Filtered = filter != admin.RecordFilter{}
	var next string
	if err == nil {
		page.Records, next, err = c.desk.Records(r.Context(), filter, q.Get("cursor"), logPageSize)
		if err != nil {
			return err
		}
	}
	if q.Get("cursor") != "" {
		page.Newest = "/log?" + with(q, "cursor", "")
	}
	if next != "" {
		page.Older = "/log?" + with(q, "cursor", next)
	}
	return c.render(w, r, who, "log", frame{Title: "Log", Nav: "log", Page: page})
}

func choices(selected string, values ...string) []choice {
	list := []choice{{"", "any", selected == ""}}
	known := selected == ""
	for _, v := range values {
		list = append(list, choice{v, v, v == selected})
		known = known || v == selected
	}
	if !known {
		list = append(list, choice{selected, selected, true})
	}
	return list
}

// with returns the query with one value set, or left out if it is empty.
func with(q url.Values, name, value string) string {
	out := url.Values{}
	for k, v := range q {
		if len(v) > 0 && v[0] != "" && k != name {
			out[k] = v
		}
	}
	if value != "" {
		out.Set(name, value)
	}
	return out.Encode()
}

func (c *Console) readFilter(q url.Values) (admin.RecordFilter, error) {
	f := admin.RecordFilter{
		Kind: q.Get("kind"), Principal: strings.TrimSpace(q.Get("agent")), Session: strings.TrimSpace(q.Get("session")),
		Operation: strings.TrimSpace(q.Get("operation")), Level: q.Get("level"), Outcome: q.Get("outcome"), CallID: q.Get("call"),
	}
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			t, err := time.ParseInLocation(fieldTime, text, c.zone)
			if err != nil {
				return f, problem(fmt.Sprintf("%q is not a time: write it like 2006-01-31T15:04.", text))
			}
			*to = t
		}
	}
	return f, nil
}

type recordView struct {
	admin.Record
	HTML     template.HTML
	Timeline []admin.Record
}

func (c *Console) recordPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	rec, err := c.desk.Record(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := recordView{Record: *rec}
	page.HTML, _, _, _ = visibleJSON(jsontext.Value(rec.Body))
	if rec.CallID != "" {
		if page.Timeline, err = c.desk.CallRecords(r.Context(), rec.CallID); err != nil {
			return err
		}
	}
	return c.render(w, r, who, "record", frame{Title: "Record", Nav: "log", Page: page})
}
