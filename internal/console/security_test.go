package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
)

// everyPage and everyAct are the whole console.
var everyPage = []string{
	"/", "/requests/r-7c21", "/requests/r-7c21/card", "/live", "/log", "/log/rec-001", "/sessions", "/grants", "/budgets",
	"/policy", "/kill", "/people", "/events", "/nowhere",
}

var everyAct = []string{
	"/requests/r-7c21/approve", "/requests/r-7c21/deny", "/requests/r-7c21/respond", "/requests/r-7c21/edit", "/sessions/s-4f1c/end",
	"/grants/g-1/revoke", "/budgets/b-1/revoke", "/policy/accept", "/kill", "/people/totp", "/people/totp/confirm", "/people/credential", "/signout",
}

func TestForeignHostIsRefused(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{Hosts: []string{"gate.example.com", "box.lan:8443"}})
	for host, ok := range map[string]bool{
		"127.0.0.1:7878": true, "localhost:7878": true, "localhost": true, "[::1]:7878": true, "[::1]": true, "127.8.8.8:1": true,
		"gate.example.com": true, "GATE.example.com:443": true, "box.lan:8443": true,
		"box.lan": false, "box.lan:80": false, "evil.example": false, "evil.example:7878": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "192.168.1.9:7878": false, "0.0.0.0:7878": false, "": false, "[fe80::1%25lo]:7878": false,
	} {
		res := cl.send(http.MethodGet, "/signin", nil, func(r *http.Request) { r.Host = host })
		if got := res.Code == http.StatusOK; got != ok {
			t.Errorf("Host %q: status %d, want served %v", host, res.Code, ok)
		}
		if !ok && res.Code != http.StatusForbidden {
			t.Errorf("Host %q: status %d, want 403", host, res.Code)
		}
	}
}

func TestForeignOriginIsRefused(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for origin, ok := range map[string]bool{
		"http://" + host: true, "https://" + host: true, "": true,
		"http://evil.example": false, "http://127.0.0.1:3000": false, "null": false, "http://localhost:7878": false,
		"file://" + host: false, "http://" + host + ".evil.example": false,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			res := cl.send(method, "/kill", url.Values{"proof": {cl.proof}}, func(r *http.Request) {
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set("Origin", origin)
				if origin == "" {
					r.Header.Del("Origin")
				}
			})
			if got := res.Code != http.StatusForbidden; got != ok {
				t.Errorf("%s from Origin %q: status %d, want served %v", method, origin, res.Code, ok)
			}
		}
	}
}

func TestCrossSitePostIsRefused(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	// Another port of this host is same-site: its pages send our cookie.
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range append(everyAct, "/signin") {
			res := cl.send(http.MethodPost, path, url.Values{"proof": {cl.proof}, "on": {"true"}, "sure": {"yes"}, "reason": {"x"}}, func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", site)
				r.Header.Del("Origin")
			})
			if res.Code != http.StatusForbidden {
				t.Errorf("%s POST %s: status %d, want 403", site, path, res.Code)
			}
		}
		// Reads that are no navigation get nothing either.
		res := cl.send(http.MethodGet, "/events", nil, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Mode", "no-cors")
		})
		if res.Code != http.StatusForbidden {
			t.Errorf("%s GET /events: status %d, want 403", site, res.Code)
		}
	}
	if acts := cl.desk.did(); len(acts) > 0 {
		t.Errorf("something was done: %q", acts)
	}
}

// A person who follows a link from a chat comes without the strict cookie.
// They are sent on from our own page, once.
func TestLinkFromElsewhereIsFollowed(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.cookie = ""
	from := func(site string) *httptest.ResponseRecorder {
		return cl.send(http.MethodGet, "/requests/r-7c21?x=1", nil, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		})
	}
	if res := from("cross-site"); res.Code != http.StatusOK || !strings.Contains(res.Body.String(), `http-equiv="refresh"`) || !strings.Contains(res.Body.String(), "/requests/r-7c21?x=1") {
		t.Errorf("cross-site: %d %s", res.Code, res.Body)
	}
	if res := from("same-origin"); res.Code != http.StatusUnauthorized {
		t.Errorf("same-origin: %d, want 401: sending on again would never end", res.Code)
	}
}

func TestForgedAndExpiredCookiesAreRefused(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	good := cl.cookie
	cl.desk.cookies["ann.old"] = time.Now().Add(-time.Second)
	for _, value := range []string{"", "ann", "ann.2", "ann.old", good + "x", strings.ToUpper(good)} {
		cl.cookie = value
		for _, path := range everyPage {
			res := cl.send(http.MethodGet, path, nil, nil)
			if res.Code != http.StatusUnauthorized || strings.Contains(res.Body.String(), "feature/checkout") {
				t.Errorf("cookie %q, GET %s: status %d, want 401 and nothing shown", value, path, res.Code)
			}
		}
		for _, path := range everyAct {
			if res := cl.post(path, url.Values{"on": {"true"}, "sure": {"yes"}, "reason": {"x"}}); res.Code != http.StatusUnauthorized {
				t.Errorf("cookie %q, POST %s: status %d, want 401", value, path, res.Code)
			}
		}
	}
	if acts := cl.desk.did(); len(acts) > 0 {
		t.Errorf("something was done: %q", acts)
	}
}

// A server on another port of this machine is sent our cookie; it has no
// access to the storage of our pages.
func TestCookieAloneActsOnNothing(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	other := signedIn(t, console.Options{})
	form := cl.answerForm("r-7c22")
	for _, proof := range []string{"", "x", other.proof, cl.cookie} {
		for _, path := range everyAct {
			form.Set("proof", proof)
			form.Set("on", "true")
			form.Set("sure", "yes")
			form.Set("reason", "x")
			if res := cl.send(http.MethodPost, path, form, nil); res.Code != http.StatusForbidden {
				t.Errorf("proof %q, POST %s: status %d, want 403", proof, path, res.Code)
			}
		}
	}
	if acts := cl.desk.did(); len(acts) > 0 {
		t.Errorf("something was done: %q", acts)
	}
	for _, path := range everyPage {
		if path == "/events" {
			continue
		}
		if strings.Contains(cl.send(http.MethodGet, path, nil, nil).Body.String(), cl.proof) {
			t.Errorf("GET %s shows the proof, which the cookie alone must not give", path)
		}
	}
}

func TestReplayedLinkIsRefused(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{}) // redeems good-link
	cl.cookie = ""
	for _, token := range []string{"good-link", "wrong", ""} {
		res := cl.send(http.MethodPost, "/signin", url.Values{"token": {token}}, nil)
		if res.Code != http.StatusForbidden || !strings.Contains(res.Body.String(), "wrong or was used already") || len(res.Result().Cookies()) > 0 {
			t.Errorf("token %q: %d, cookies %v\n%s", token, res.Code, res.Result().Cookies(), res.Body)
		}
	}
}

func TestLinkPreviewDoesNotRedeem(t *testing.T) {
	t.Parallel()
	d := newDesk()
	cl := &client{t: t, desk: d, c: console.New(console.Options{Desk: d})}
	for range 3 {
		if page := cl.get("/signin?token=good-link"); !strings.Contains(page, `data-test="sign-in"`) {
			t.Fatal("no button to sign in")
		}
	}
	if len(d.links) != 1 || len(d.cookies) != 0 {
		t.Error("looking at the link used it up")
	}
	if page := cl.get("/signin"); strings.Contains(page, `data-test="sign-in"`) || !strings.Contains(page, "gatehouse approver link") {
		t.Error("the page without a link does not say how to get one")
	}
}

func TestCookieAttributes(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		d := newDesk()
		cl := &client{t: t, desk: d, c: console.New(console.Options{Desk: d, Secure: secure})}
		res := cl.send(http.MethodPost, "/signin", url.Values{"token": {"good-link"}}, func(r *http.Request) {
			r.Header.Set("Origin", map[bool]string{false: "http://", true: "https://"}[secure]+host)
		})
		cookies := res.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("cookies: %v, %d", cookies, res.Code)
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure != secure || c.Expires.IsZero() {
			t.Errorf("secure %v: %s", secure, c.Raw)
		}
		if strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("secure %v: name %s", secure, c.Name)
		}
	}
}

func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for _, path := range append(everyAct, everyPage...) {
		if path == "/events" {
			continue
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			cl.send(method, path+"?proof="+cl.proof+"&on=true&sure=yes&reason=x&text=x&digest="+strings.Repeat("0", 64), nil, nil)
		}
	}
	if acts := cl.desk.did(); len(acts) > 0 {
		t.Errorf("a GET did %q", acts)
	}
	if cl.get("/") == "" {
		t.Error("a GET signed out")
	}
}

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	check := func(what string, h http.Header) {
		t.Helper()
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", what, name, h.Get(name), want)
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: no %q in the content security policy", what, part)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", what, csp)
		}
	}
	for _, path := range everyPage {
		if path != "/events" {
			check(path, cl.send(http.MethodGet, path, nil, nil).Header())
		}
	}
	for _, path := range everyAct {
		check(path, cl.send(http.MethodPost, path, url.Values{}, nil).Header())
	}
	check("foreign host", cl.send(http.MethodGet, "/", nil, func(r *http.Request) { r.Host = "evil.example" }).Header())
	cl.cookie = ""
	check("signed out", cl.send(http.MethodGet, "/", nil, nil).Header())
}

// No page may need what the policy forbids, and none may load from elsewhere.
func TestPagesAreSelfContained(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for _, path := range everyPage {
		if path == "/events" {
			continue
		}
		page := cl.send(http.MethodGet, path, nil, nil).Body.String()
		for _, bad := range []string{" style=", "<style", " onclick", " onload", "javascript:", `src="http`, `href="http`} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %q", path, bad)
			}
		}
		if strings.Count(page, "<script") != strings.Count(page, `<script type="module" src="/assets/app.js?v=`) {
			t.Errorf("%s holds a script of its own", path)
		}
	}
	for _, name := range []string{"/assets/app.js", "/assets/app.css", "/assets/favicon.svg", "/favicon.ico"} {
		cl.get(name)
	}
	if n := len(cl.get("/assets/app.js")); n > 10<<10 {
		t.Errorf("the script has %d bytes; it is to stay under 10 KiB", n)
	}
}
