package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const host = "127.0.0.1:7878"

// client talks to a console as a browser does, without a network.
type client struct {
	t      *testing.T
	desk   *desk
	c      http.Handler
	cookie string
	proof  string
	flash  string
}

// signedIn returns a client of ann, who redeemed a link.
func signedIn(t *testing.T, opts console.Options) *client {
	t.Helper()
	d := newDesk()
	d.fill()
	opts.Desk, opts.Location = d, time.UTC
	cl := &client{t: t, desk: d, c: console.New(opts)}
	res := cl.send(http.MethodPost, "/signin", url.Values{"token": {"good-link"}}, nil)
	if res.Code != http.StatusOK {
		t.Fatalf("signing in: %d %s", res.Code, res.Body)
	}
	cl.cookie, cl.proof = cookie(res, "gatehouse-7878"), between(res.Body.String(), `name="gatehouse-proof" content="`, `"`)
	if cl.cookie == "" || cl.proof == "" {
		t.Fatal("signing in gave no cookie or no proof")
	}
	return cl
}

// send makes a request; a nil form is none.
func (cl *client) send(method, path string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	cl.t.Helper()
	var body *strings.Reader = strings.NewReader(form.Encode())
	r := httptest.NewRequest(method, "http://"+host+path, body)
	r.Host = host
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", "http://"+host)
	}
	if cl.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "gatehouse-7878", Value: cl.cookie})
	}
	if cl.flash != "" {
		r.AddCookie(&http.Cookie{Name: "gatehouse-7878-flash", Value: cl.flash})
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	cl.c.ServeHTTP(w, r)
	cl.flash = cookie(w, "gatehouse-7878-flash")
	return w
}

func (cl *client) get(path string) string {
	cl.t.Helper()
	res := cl.send(http.MethodGet, path, nil, nil)
	if res.Code != http.StatusOK {
		cl.t.Fatalf("GET %s: %d %s", path, res.Code, res.Body)
	}
	return res.Body.String()
}

// post sends a form with the proof, as the page's script does.
func (cl *client) post(path string, form url.Values) *httptest.ResponseRecorder {
	cl.t.Helper()
	form.Set("proof", cl.proof)
	return cl.send(http.MethodPost, path, form, nil)
}

// says posts a form and returns the message on the page it leads to.
func (cl *client) says(path string, form url.Values) string {
	cl.t.Helper()
	res := cl.post(path, form)
	if res.Code != http.StatusSeeOther {
		cl.t.Fatalf("POST %s: %d %s", path, res.Code, res.Body)
	}
	return html.UnescapeString(between(cl.get(strings.SplitN(res.Header().Get("Location"), "#", 2)[0]), `data-test="flash">`, "</p>"))
}

// answerForm reads the hidden fields of a request's page.
func (cl *client) answerForm(id string) url.Values {
	cl.t.Helper()
	page := cl.get("/requests/" + id)
	return url.Values{
		"digest": {between(page, `name="digest" value="`, `"`)},
		"token":  {between(page, `name="token" value="`, `"`)},
		"offer":  {"0"},
	}
}

func cookie(res *httptest.ResponseRecorder, name string) string {
	for _, c := range res.Result().Cookies() {
		if c.Name == name && c.MaxAge >= 0 {
			return c.Value
		}
	}
	return ""
}

// between returns what stands between two texts, "" if it is not there.
func between(s, from, to string) string {
	_, s, ok := strings.Cut(s, from)
	if !ok {
		return ""
	}
	s, _, _ = strings.Cut(s, to)
	return s
}

var tags = regexp.MustCompile(`<[^>]*>`)

// text returns a page as it reads, without markup.
func text(page string) string {
	return html.UnescapeString(tags.ReplaceAllString(page, ""))
}
