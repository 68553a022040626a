package console

import (
	"net/http"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

func (c *Console) sessionsPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	all, err := c.desk.Sessions(r.Context())
	if err != nil {
		return err
	}
	var page struct{ Open, Ended []admin.Session }
	for _, s := range all {
		if s.Ended == "" {
			page.Open = append(page.Open, s)
		} else {
			page.Ended = append(page.Ended, s)
		}
	}
	return c.render(w, r, who, "sessions", frame{Title: "Sessions", Nav: "sessions", Page: page})
}

func (c *Console) endSession(r *http.Request, who visitor) (done, error) {
	d := done{"/sessions", "Session ended. It takes no more calls.", ""}
	return d, c.desk.EndSession(r.Context(), who.actor(), r.PathValue("id"))
}

func (c *Console) grantsPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	all, err := c.desk.Grants(r.Context())
	if err != nil {
		return err
	}
	return c.render(w, r, who, "grants", frame{Title: "Grants", Nav: "grants", Page: all})
}

func (c *Console) revokeGrant(r *http.Request, who visitor) (done, error) {
	d := done{"/grants", "Grant revoked. The next such call asks again.", ""}
	return d, c.desk.RevokeGrant(r.Context(), who.actor(), r.PathValue("id"))
}

func (c *Console) policyPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	factor, err := c.hasFactor(r, who)
	if err != nil {
		return err
	}
	return c.render(w, r, who, "policy", frame{Title: "Policy", Nav: "policy", Page: struct{ Factor bool }{factor}})
}

func (c *Console) acceptPolicy(r *http.Request, who visitor) (done, error) {
	d := done{"/policy", "Accepted. The new policy is in force.", "allow"}
	var hash call.Digest
	if err := hash.UnmarshalText([]byte(r.PostForm.Get("hash"))); err != nil {
		return d, problem("The form does not say which change was shown. Open the page again.")
	}
	return d, c.desk.AcceptPolicy(r.Context(), who.actor(), hash, strings.TrimSpace(r.PostForm.Get("code")))
}

func (c *Console) killPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	return c.render(w, r, who, "kill", frame{Title: "Kill switch", Nav: "kill"})
}

func (c *Console) setKill(r *http.Request, who visitor) (done, error) {
	d := done{to: "/kill"}
	on, reason := r.PostForm.Get("on") == "true", strings.TrimSpace(r.PostForm.Get("reason"))
	switch {
	case r.PostForm.Get("sure") != "yes":
		return d, problem("Nothing was changed: tick the box to say that you are sure.")
	case on && reason == "":
		return d, problem("Nothing was changed: say why, for whoever finds it on.")
	case on:
		d.text, d.tone = "The kill switch is on. Every call is denied, and what the gate started is ended.", "deny"
	default:
		d.text, d.tone = "The kill switch is off. Calls are decided by policy again.", "allow"
	}
	return d, c.desk.SetKill(r.Context(), who.actor(), on, reason)
}

type peopleView struct {
	Approvers []admin.Approver
	Agents    []admin.Agent
	Factor    bool
	// URI and Secret are a second factor that waits to be confirmed; Retry
	// asks for its code once more.
	URI, Secret string
	Retry       bool
	// Credential is a new credential for the terminal, shown once.
	Credential string
}

func (c *Console) peoplePage(w http.ResponseWriter, r *http.Request, who visitor) error {
	return c.showPeople(w, r, who, peopleView{Retry: r.URL.Query().Has("retry")})
}

func (c *Console) showPeople(w http.ResponseWriter, r *http.Request, who visitor, page peopleView) error {
	var err error
	if page.Approvers, err = c.desk.Approvers(r.Context()); err != nil {
		return err
	}
	if page.Agents, err = c.desk.Agents(r.Context()); err != nil {
		return err
	}
	for _, a := range page.Approvers {
		page.Factor = page.Factor || a.Name == who.name && a.TOTP
	}
	return c.render(w, r, who, "people", frame{Title: "People and agents", Nav: "people", Page: page})
}

// beginTOTP shows the secret in the answer itself: it is shown once, and is
// in no address and no cookie.
func (c *Console) beginTOTP(w http.ResponseWriter, r *http.Request, who visitor) error {
	uri, secret, err := c.desk.BeginTOTP(r.Context(), who.prover(r))
	if err != nil {
		return err
	}
	return c.showPeople(w, r, who, peopleView{URI: uri, Secret: secret})
}

func (c *Console) confirmTOTP(r *http.Request, who visitor) (done, error) {
	if err := c.desk.ConfirmTOTP(r.Context(), who.actor(), strings.TrimSpace(r.PostForm.Get("code"))); err != nil {
		return done{to: "/people?retry=1#totp"}, err
	}
	return done{"/people", "The second factor is set up.", "allow"}, nil
}

// newCredential shows a new credential for the terminal in the answer itself,
// once. The old one is void from then on, and so is every open console.
func (c *Console) newCredential(w http.ResponseWriter, r *http.Request, who visitor) error {
	credential, err := c.desk.NewCredential(r.Context(), who.prover(r))
	if err != nil {
		return err
	}
	return c.showPeople(w, r, who, peopleView{Credential: credential})
}
