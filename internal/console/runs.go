package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
)

const runsPageSize = 50

func (c *Console) runsPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	before := r.URL.Query().Get("before")
	list, err := c.desk.Runs(r.Context(), before, runsPageSize)
	if err != nil {
		return err
	}
	page := struct {
		On, Over []job.Job
		Older    string
		Newest   bool
	}{Newest: before != ""}
	for _, b := range list {
		if b.State.Over() {
			page.Over = append(page.Over, b)
		} else {
			page.On = append(page.On, b)
		}
	}
	if len(list) == runsPageSize {
		page.Older = "/runs?before=" + url.QueryEscape(list[len(list)-1].ID)
	}
	return c.render(w, r, who, "runs", frame{Title: "Runs", Nav: "runs", Page: page})
}

// runView is a run with its answer taken out of what the CLI printed.
type runView struct {
	*admin.Run
	Answer, Failure string
	// Took is how long it ran, 0 while it does.
	Took time.Duration
}

func (c *Console) runPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	run, err := c.desk.Run(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := runView{Run: run, Failure: run.Error}
	var result struct {
		Text  string `json:"text"`
		Error string `json:"error"`
	}
	if len(run.Result) > 0 {
		if err := json.Unmarshal(run.Result, &result); err != nil {
			return err
		}
		page.Answer = result.Text
		if page.Failure == "" {
			page.Failure = result.Error
		}
	}
	if !run.Started.IsZero() && !run.Ended.IsZero() {
		page.Took = run.Ended.Sub(run.Started).Round(100 * time.Millisecond)
	}
	return c.render(w, r, who, "run", frame{Title: "Run of " + run.CLI, Nav: "runs", Page: page})
}

func (c *Console) cancelRun(r *http.Request, who visitor) (done, error) {
	id := r.PathValue("id")
	if err := c.desk.CancelRun(r.Context(), who.actor(), id); err != nil {
		return done{to: "/runs"}, err
	}
	return done{"/runs/" + id, "The run was ended. None of its processes is left.", ""}, nil
}
