package gatetest

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// Page is an answer of the console.
type Page struct {
	Status int
	Body   string
	Header http.Header
}

// Console is a browser without a screen: it keeps the cookies and the proof of
// a sign-in and sends forms as the pages do. Tests take parts of it away.
type Console struct {
	g *Gate
	// Cookie and Proof are what signing in gave.
	Cookie, Proof string
}

// cookieName is the name of the console's cookie, which differs by port.
func (g *Gate) cookieName() string {
	return "gatehouse-" + g.addr[strings.LastIndexByte(g.addr, ':')+1:]
}

// Visit returns a console that is not signed in.
func (g *Gate) Visit() *Console { return &Console{g: g} }

// SignedIn returns the console of the approver with the credential.
func (g *Gate) SignedIn(credential string) *Console {
	g.t.Helper()
	got := &api.LinkResponse{}
	if err := g.Client(credential).Do(context.Background(), "POST", "/v1/link", nil, got); err != nil {
		g.t.Fatal(err)
	}
	u, err := url.Parse(got.URL)
	if err != nil {
		g.t.Fatal(err)
	}
	c := g.Visit()
	if p := c.SignIn(u.Query().Get("token")); p.Status != http.StatusOK {
		g.t.Fatalf("signing in: %d", p.Status)
	}
	return c
}

// SignIn redeems a sign-in link's token.
func (c *Console) SignIn(token string) *Page {
	p := c.Send(http.MethodPost, "/signin", url.Values{"token": {token}}, nil)
	for _, line := range p.Header["Set-Cookie"] {
		if ck, err := http.ParseSetCookie(line); err == nil && ck.Name == c.g.cookieName() {
			c.Cookie = ck.Value
		}
	}
	c.Proof = Between(p.Body, `name="gatehouse-proof" content="`, `"`)
	return p
}

// Get reads a page.
func (c *Console) Get(path string) *Page { return c.Send(http.MethodGet, path, nil, nil) }

// Post sends a form with the proof, as the page's script does.
func (c *Console) Post(path string, form url.Values) *Page {
	form.Set("proof", c.Proof)
	return c.Send(http.MethodPost, path, form, nil)
}

// Send makes a request as a page of the console would; change can make it
// another's.
func (c *Console) Send(method, path string, form url.Values, change func(*http.Request)) *Page {
	c.g.t.Helper()
	req, err := http.NewRequest(method, c.g.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.g.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Origin", c.g.URL)
	}
	if c.Cookie != "" {
		req.AddCookie(&http.Cookie{Name: c.g.cookieName(), Value: c.Cookie})
	}
	if change != nil {
		change(req)
	}
	resp, err := noRedirects.Do(req)
	if err != nil {
		c.g.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.g.t.Fatal(err)
	}
	return &Page{Status: resp.StatusCode, Body: string(body), Header: resp.Header}
}

// Between returns the text between two marks, unescaped, "" if they are not
// there.
func Between(s, from, to string) string {
	_, after, found := strings.Cut(s, from)
	if !found {
		return ""
	}
	text, _, found := strings.Cut(after, to)
	if !found {
		return ""
	}
	return html.UnescapeString(text)
}

// noRedirects shows an answer as it is.
var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
