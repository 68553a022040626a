package console

import (
	"crypto/rand"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

//go:embed assets templates
var files embed.FS

// Options is what a console is made of. Only Desk is needed.
type Options struct {
	Desk Desk
	// Hosts are the names, with or without a port, under which the console is
	// reached besides the loopback ones.
	Hosts []string
	// Secure says that browsers reach the console over TLS.
	Secure bool
	// Key signs what pages bring back. Without one the console makes its own,
	// and people sign in again after a restart.
	Key []byte
	// Location is the time zone of the pages; nil is the machine's.
	Location *time.Location
	// Log receives what goes wrong; nil discards it.
	Log *slog.Logger
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	desk   Desk
	hosts  map[string]bool
	secure bool
	keys   keyring
	zone   *time.Location
	log    *slog.Logger
	cross  *http.CrossOriginProtection
	pages  map[string]*template.Template
	assets map[string]asset
	mux    *http.ServeMux

	closing sync.Once
	closed  chan struct{}
}

// New makes a console.
func New(opts Options) *Console {
	c := &Console{
		desk: opts.Desk, secure: opts.Secure, zone: opts.Location, log: opts.Log,
		hosts: make(map[string]bool), keys: keyring{opts.Key},
		cross: http.NewCrossOriginProtection(), mux: http.NewServeMux(), closed: make(chan struct{}),
	}
	for _, h := range opts.Hosts {
		c.hosts[strings.ToLower(h)] = true
	}
	if c.zone == nil {
		c.zone = time.Local
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if len(c.keys.key) == 0 {
		c.keys.key = make([]byte, 32)
		rand.Read(c.keys.key) // never fails: crypto/rand ends the process instead
	}
	c.assets = loadAssets()
	c.pages = c.loadPages()
	c.routes()
	return c
}

// Close ends the streams of open pages, so that the server can shut down.
func (c *Console) Close() { c.closing.Do(func() { close(c.closed) }) }

// ServeHTTP refuses what does not come from a page of ours, then serves it.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if why := c.guard(r); why != "" {
		c.log.Warn("console: request refused", "host", r.Host, "origin", r.Header.Get("Origin"), "remote", r.RemoteAddr, "path", r.URL.Path)
		c.refuse(w, r, http.StatusForbidden, "Refused", why)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}

// maxForm holds the largest arguments a call may have, as a form encodes them.
const maxForm = 4 << 20

// routes is the map of the console. What is registered with see needs a
// signed-in person; what is registered with act needs their proof as well.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /assets/{name}", c.serveAsset)
	c.mux.HandleFunc("GET /favicon.ico", c.serveFavicon)
	c.mux.HandleFunc("GET /signin", c.signInPage)
	c.mux.HandleFunc("POST /signin", c.signIn)

	c.see("GET /{$}", c.inboxPage)
	c.see("GET /requests/{id}", c.requestPage)
	c.see("GET /requests/{id}/card", c.cardPage)
	c.see("GET /live", c.livePage)
	c.see("GET /log", c.logPage)
	c.see("GET /log/{id}", c.recordPage)
	c.see("GET /runs", c.runsPage)
	c.see("GET /runs/{id}", c.runPage)
	c.see("GET /sessions", c.sessionsPage)
	c.see("GET /grants", c.grantsPage)
	c.see("GET /budgets", c.budgetsPage)
	c.see("GET /policy", c.policyPage)
	c.see("GET /servers", c.serversPage)
	c.see("GET /elements", c.elementsPage)
	c.see("GET /restore", c.restorePage)
	c.see("GET /restore/{id}", c.restorePointPage)
	c.see("GET /kill", c.killPage)
	c.see("GET /danger", c.dangerPage)
	c.see("GET /people", c.peoplePage)
	c.see("GET /events", c.events)
	c.see("GET /", c.missingPage)

	c.act("POST /requests/{id}/approve", c.approve)
	c.act("POST /requests/{id}/deny", c.deny)
	c.act("POST /requests/{id}/respond", c.respond)
	c.act("POST /runs/{id}/cancel", c.cancelRun)
	c.act("POST /sessions/{id}/end", c.endSession)
	c.act("POST /grants/{id}/revoke", c.revokeGrant)
	c.act("POST /budgets/{id}/revoke", c.revokeBudget)
	c.act("POST /policy/accept", c.acceptPolicy)
	c.act("POST /servers/accept", c.acceptServer)
	c.act("POST /elements/accept", c.acceptElement)
	c.act("POST /elements/release", c.releaseElement)
	c.act("POST /restore/{id}/apply", c.applyRestore)
	c.act("POST /kill", c.setKill)
	c.act("POST /challenges/{id}/release", c.releaseChallenge)
	c.act("POST /challenges/{id}/refuse", c.refuseChallenge)
	c.act("POST /people/totp/confirm", c.confirmTOTP)
	c.mux.HandleFunc("POST /requests/{id}/edit", c.proven(c.edit))
	c.mux.HandleFunc("POST /people/totp", c.proven(c.beginTOTP))
	c.mux.HandleFunc("POST /people/credential", c.proven(c.newCredential))
	c.mux.HandleFunc("POST /signout", c.proven(c.signOut))
}

// visitor is the person a page is made for.
type visitor struct {
	name   string
	cookie string
}

func (v visitor) actor() admin.Actor {
	return admin.Actor{Approver: v.name, Channel: "console", Cookie: v.cookie}
}

// prover is the visitor with the credential that they gave in a form.
func (v visitor) prover(r *http.Request) admin.Actor {
	a := v.actor()
	a.Credential = strings.TrimSpace(r.PostForm.Get("credential"))
	return a
}

// see registers a page for people who are signed in.
func (c *Console) see(pattern string, page func(http.ResponseWriter, *http.Request, visitor) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		name, cookie := c.signedIn(r)
		if name == "" {
			c.askToSignIn(w, r)
			return
		}
		if err := page(w, r, visitor{name, cookie}); err != nil {
			c.fail(w, r, err)
		}
	})
}

// proven wraps what needs the proof of the page besides the cookie.
func (c *Console) proven(do func(http.ResponseWriter, *http.Request, visitor) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, cookie := c.signedIn(r)
		if name == "" {
			c.refuse(w, r, http.StatusUnauthorized, "Not signed in", "Nothing was done: you are not signed in, or no longer.")
			return
		}
		if err := r.ParseForm(); err != nil {
			c.refuse(w, r, http.StatusBadRequest, "Not understood", "Nothing was done: the form was damaged or too large.")
			return
		}
		if !c.keys.proves(cookie, r.PostForm.Get("proof")) {
			c.log.Warn("console: act without proof refused", "approver", name, "remote", r.RemoteAddr, "path", r.URL.Path)
			c.refuse(w, r, http.StatusForbidden, "Sign in again",
				"Nothing was done: this browser could not prove that the page is yours. Sign in again with a new link.")
			return
		}
		if err := do(w, r, visitor{name, cookie}); err != nil {
			c.fail(w, r, err)
		}
	}
}

// done is what an act leads to: a page and a message there.
type done struct {
	to   string
	text string
	tone string
}

// act registers something that a person does. It answers with a redirect, or
// in JSON where a script asked; a failure is a message on the page that d.to
// names.
func (c *Console) act(pattern string, do func(*http.Request, visitor) (done, error)) {
	c.mux.HandleFunc(pattern, c.proven(func(w http.ResponseWriter, r *http.Request, v visitor) error {
		d, err := do(r, v)
		if err != nil {
			d.text, d.tone = c.publicText(r, err), "deny"
		}
		if r.Header.Get("Accept") == "application/json" {
			status := http.StatusOK
			if err != nil {
				status = http.StatusConflict
			}
			return writeJSON(w, status, map[string]string{"text": d.text, "tone": d.tone})
		}
		c.setFlash(w, r, flash{d.tone, d.text})
		http.Redirect(w, r, d.to, http.StatusSeeOther)
		return nil
	}))
}
