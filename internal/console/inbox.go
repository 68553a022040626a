package console

import (
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

type inboxView struct {
	Items []*requestView
	Codes codes
	// Recent are the latest requests that were answered.
	Recent []admin.Request
}

func (c *Console) inboxPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	waiting, err := c.pending(r)
	if err != nil {
		return err
	}
	var page inboxView
	for i := range waiting {
		page.Items = append(page.Items, c.view(&waiting[i]))
	}
	if page.Codes, err = c.codes(r, who); err != nil {
		return err
	}
	all, _, err := c.desk.Requests(r.Context(), "", "", 20)
	if err != nil {
		return err
	}
	for _, req := range all {
		if req.State != "pending" && len(page.Recent) < 8 {
			page.Recent = append(page.Recent, req)
		}
	}
	return c.render(w, r, who, "inbox", frame{Title: "Inbox", Nav: "inbox", View: "inbox", Page: page})
}

// cardPage is one card of the inbox by itself, for a page that is open while
// its request is answered elsewhere.
func (c *Console) cardPage(w http.ResponseWriter, r *http.Request, _ visitor) error {
	req, err := c.desk.Request(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	html, err := c.part("card", c.view(req))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(html)) // the browser went away
	return nil
}
