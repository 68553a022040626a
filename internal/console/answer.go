package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// minShown is how long a call must have been on screen before it can be
// approved, so that nobody approves what slid under the cursor.
const minShown = time.Second

// answerForm is what every form about a request carries.
type answerForm struct {
	id    string
	shown call.Digest
	text  string
	back  done
}

func readAnswer(r *http.Request) (answerForm, error) {
	f := answerForm{id: r.PathValue("id"), text: strings.TrimSpace(r.PostForm.Get("text"))}
	f.back.to = "/requests/" + f.id
	if err := f.shown.UnmarshalText([]byte(r.PostForm.Get("digest"))); err != nil {
		return f, problem("The answer does not say which call was on screen. Open the request again.")
	}
	return f, nil
}

func (c *Console) approve(r *http.Request, who visitor) (done, error) {
	f, err := readAnswer(r)
	if err != nil {
		return f.back, err
	}
	at, ok := c.keys.shownAt(r.PostForm.Get("token"), f.id, f.shown)
	if !ok {
		return f.back, problem("The page is from before the gate was started, or shows another call. Look at the call again.")
	}
	if time.Since(at) < minShown {
		return f.back, problem("The call was on screen for less than a second. Look at it, then approve.")
	}
	offer, err := strconv.Atoi(r.PostForm.Get("offer"))
	if err != nil {
		return f.back, problem("The answer does not say what was approved. Open the request again.")
	}
	req, err := c.desk.Request(r.Context(), f.id)
	if err != nil {
		return f.back, err
	}
	if req.State == "pending" && (req.Call == nil || c.view(req).TooLong) {
		return f.back, problem("The call cannot be shown whole, so it cannot be approved.")
	}
	yes := admin.Approval{Shown: f.shown, ShownAt: at, Offer: offer, Code: strings.TrimSpace(r.PostForm.Get("code"))}
	if r.PostForm.Get("never") == "yes" {
		p, err := c.desk.ApproveForGood(r.Context(), who.actor(), f.id, yes)
		if err != nil {
			return f.back, err
		}
		return done{"/policy", "Approved. The rule " + p.Rule + " is written and waits to be accepted.", "allow"}, nil
	}
	if err := c.desk.Approve(r.Context(), who.actor(), f.id, yes); err != nil {
		return f.back, err
	}
	words := "once"
	if offer > 0 && offer < len(req.Offers) {
		words = "for the session: " + req.Offers[offer].Words
	}
	return done{"/", "Approved " + words + ".", "allow"}, nil
}

func (c *Console) deny(r *http.Request, who visitor) (done, error) {
	f, err := readAnswer(r)
	if err != nil {
		return f.back, err
	}
	if err := c.desk.Deny(r.Context(), who.actor(), f.id, f.shown, f.text); err != nil {
		return f.back, err
	}
	return done{"/", "Denied. The agent is told so.", "deny"}, nil
}

func (c *Console) respond(r *http.Request, who visitor) (done, error) {
	f, err := readAnswer(r)
	if err != nil {
		return f.back, err
	}
	if f.text == "" {
		return f.back, problem("An answer in words needs words.")
	}
	if err := c.desk.Respond(r.Context(), who.actor(), f.id, f.shown, f.text); err != nil {
		return f.back, err
	}
	return done{"/", "Answered. The call does not run; the agent reads your words.", ""}, nil
}

// edit makes a new request of other arguments. What was wrong with them is
// shown on the page of the request, with the text as the person left it.
func (c *Console) edit(w http.ResponseWriter, r *http.Request, who visitor) error {
	id, text := r.PathValue("id"), r.PostForm.Get("args")
	newID, err := c.makeEdit(r, who, text)
	if err == nil {
		c.setFlash(w, r, flash{"", "This is the edited call. It was judged anew; nothing has run yet."})
		http.Redirect(w, r, "/requests/"+newID, http.StatusSeeOther)
		return nil
	}
	why := c.publicText(r, invalidEdit(err))
	v, err := c.showRequest(r, who, id)
	if err != nil {
		return err
	}
	v.Form, v.EditError = text, why
	return c.render(w, r, who, "request", frame{Title: v.Title, Nav: "inbox", View: "request", ViewID: id, Page: v, Status: http.StatusConflict})
}

func (c *Console) makeEdit(r *http.Request, who visitor, text string) (newID string, err error) {
	f, err := readAnswer(r)
	if err != nil {
		return "", err
	}
	args, err := call.Canonical([]byte(text))
	if err != nil {
		return "", err
	}
	return c.desk.Edit(r.Context(), who.actor(), f.id, f.shown, args)
}

// invalidEdit says what is wrong with edited arguments; what it says is about
// the person's own text.
func invalidEdit(err error) error {
	var invalid *call.InvalidError
	if errors.As(err, &invalid) {
		return problem("Not edited: the arguments " + invalid.Problem + ".")
	}
	return err
}
