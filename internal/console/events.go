package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

const (
	// pause is the least time between two updates of a page, so that a busy
	// gate does not keep the console busy.
	pause = 150 * time.Millisecond
	// heartbeat is how often an idle stream looks anyway: requests expire
	// without anybody changing anything.
	heartbeat = 10 * time.Second
	// writeWithin is how long a browser may take to read an update.
	writeWithin = 30 * time.Second
)

// stream is one page that is kept up to date.
type stream struct {
	c    *Console
	w    http.ResponseWriter
	r    *http.Request
	ctl  *http.ResponseController
	view string
	id   string
	// sent is the last text of each event, cards and rows what was sent of
	// each item: only what differs is sent again.
	sent  map[string][]byte
	cards map[string]bool
	rows  map[string]string
}

// events keeps one page up to date until it is closed, its person signs out
// or the console closes. While it runs the console counts as open.
func (c *Console) events(w http.ResponseWriter, r *http.Request, _ visitor) error {
	release := c.desk.Present()
	defer release()
	s := &stream{
		c: c, w: w, r: r, ctl: http.NewResponseController(w),
		view: r.URL.Query().Get("view"), id: r.URL.Query().Get("id"),
		sent: make(map[string][]byte), cards: make(map[string]bool), rows: make(map[string]string),
	}
	w.Header().Set("Content-Type", "text/event-stream")
	// A server's timeouts are for pages; not every writer has them.
	_ = s.ctl.SetReadDeadline(time.Time{})
	s.run()
	return nil
}

func (s *stream) run() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		changed := s.c.desk.Changed() // before reading, so that no change is missed
		if name, _ := s.c.signedIn(s.r); name == "" {
			_ = s.send("signedout", struct{}{}, true) // the stream ends either way
			return
		}
		if err := s.update(); err != nil {
			if s.r.Context().Err() == nil {
				s.c.log.Error("console: stream ended", "view", s.view, "err", err)
			}
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-s.c.closed:
			return
		case <-s.r.Context().Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-s.c.closed:
			return
		case <-s.r.Context().Done():
			return
		}
	}
}

// update sends what changed for the page.
func (s *stream) update() error {
	waiting, err := s.c.pending(s.r)
	if err != nil {
		return err
	}
	if err := s.status(len(waiting)); err != nil {
		return err
	}
	switch s.view {
	case "inbox":
		return s.inbox(waiting)
	case "request":
		return s.request()
	case "live":
		return s.live()
	}
	return nil
}

// status is what every page shows.
func (s *stream) status(waiting int) error {
	kill, err := s.c.desk.Kill(s.r.Context())
	if err != nil {
		return err
	}
	policy, err := s.c.desk.Policy(s.r.Context())
	if err != nil {
		return err
	}
	waitingCodes, err := s.c.waitingCodes(s.r)
	if err != nil {
		return err
	}
	return s.send("status", map[string]any{
		"codes": waitingCodes, "pending": waiting, "kill": kill.On, "broken": len(policy.Broken) > 0, "staged": policy.Staged != nil,
	}, false)
}

// inbox sends the ids that wait, and the cards that this stream has not sent.
func (s *stream) inbox(waiting []admin.Request) error {
	type card struct {
		ID   string `json:"id"`
		HTML string `json:"html"`
	}
	ids, cards := []string{}, []card{}
	for i := range waiting {
		id := waiting[i].ID
		ids = append(ids, id)
		if s.cards[id] {
			continue
		}
		html, err := s.c.part("card", s.c.view(&waiting[i]))
		if err != nil {
			return err
		}
		s.cards[id] = true
		cards = append(cards, card{id, html})
	}
	return s.send("inbox", map[string]any{"ids": ids, "cards": cards}, len(cards) > 0)
}

// request sends how far the request on the page has got.
func (s *stream) request() error {
	req, err := s.c.desk.Request(s.r.Context(), s.id)
	if err != nil {
		return err
	}
	return s.send("request", map[string]string{"state": req.State, "text": s.c.answered(req)}, false)
}

// answered says in words how a request ended.
func (c *Console) answered(r *admin.Request) string {
	switch {
	case r.State == "pending":
		return ""
	case r.AnsweredBy == "":
		return titleCase(r.State) + "."
	}
	return fmt.Sprintf("%s by %s at %s.", titleCase(r.State), r.AnsweredBy, c.when(r.Answered))
}

// live sends the rows that are new or changed, oldest first.
func (s *stream) live() error {
	rows, err := s.c.liveRows(s.r)
	if err != nil {
		return err
	}
	type row struct {
		ID   string `json:"id"`
		HTML string `json:"html"`
	}
	var changed []row
	seen := make(map[string]string, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		html, err := s.c.part("row", rows[i])
		if err != nil {
			return err
		}
		if s.rows[rows[i].CallID] != html {
			changed = append(changed, row{rows[i].CallID, html})
		}
		seen[rows[i].CallID] = html
	}
	s.rows = seen
	if len(changed) == 0 {
		return nil
	}
	return s.send("live", changed, true)
}

// send writes an event, unless it says what was said before.
func (s *stream) send(event string, data any, always bool) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if !always && bytes.Equal(body, s.sent[event]) {
		body, event = nil, "" // a heartbeat, so that a dead connection is noticed
	} else {
		s.sent[event] = body
	}
	_ = s.ctl.SetWriteDeadline(time.Now().Add(writeWithin))
	if event == "" {
		_, err = fmt.Fprint(s.w, ":\n\n")
	} else {
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, body)
	}
	if err != nil {
		return err
	}
	return s.ctl.Flush()
}
