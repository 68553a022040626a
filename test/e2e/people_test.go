package e2e_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestTheFirstLink: the sign-in link is on the controlling terminal of `up`
// and nowhere else; it enrols the first approver, once, and after that no
// start ever shows one again.
func TestTheFirstLink(t *testing.T) {
	t.Parallel()
	g := gatetest.New(t)
	screen := g.UpOnTerminal()
	token := screen.Token()
	if got := gatetest.Secrets(g.Log()); len(got) > 0 {
		t.Errorf("the daemon wrote a secret to its output: %s", gatetest.Hide(strings.Join(got, " ")))
	}

	// Neither looking at the link nor a wrong one uses it up.
	if p := g.Visit().Get("/signin?token=" + token); p.Status != http.StatusOK || len(p.Header["Set-Cookie"]) > 0 {
		t.Errorf("opening the link: %d, cookies %v", p.Status, p.Header["Set-Cookie"])
	}
	last := "a"
	if strings.HasSuffix(token, last) {
		last = "b"
	}
	for _, wrong := range []string{"", "ghl_", token[:len(token)-1], token[:len(token)-1] + last, strings.ToUpper(token), "gha_" + token[4:]} {
		if p := g.Visit().SignIn(wrong); p.Status != http.StatusForbidden || len(p.Header["Set-Cookie"]) > 0 {
			t.Errorf("a wrong link: %d, cookies %v; want 403 and none", p.Status, p.Header["Set-Cookie"])
		}
	}

	me := g.Visit()
	if p := me.SignIn(token); p.Status != http.StatusOK || me.Cookie == "" || me.Proof == "" {
		t.Fatalf("the right link: %d\n%s", p.Status, gatetest.Hide(p.Body))
	}
	if p := me.Get("/"); p.Status != http.StatusOK {
		t.Errorf("the inbox: %d", p.Status)
	}
	if p := g.Visit().SignIn(token); p.Status != http.StatusForbidden {
		t.Errorf("the link a second time: %d, want 403", p.Status)
	}
	if out, errs, code := g.Run("approver", "add", "eve"); code == 0 || gatetest.Secrets(out+errs) != nil {
		t.Errorf("a second first approver: %d\n%s", code, gatetest.Hide(out+errs))
	}

	g.Stop()
	again := g.UpOnTerminal()
	g.Stop()
	if got := gatetest.Secrets(again.String() + g.Log()); len(got) > 0 {
		t.Errorf("a later start shows %s", gatetest.Hide(again.String()))
	}
}

// TestNoLinkWithoutATerminal: a gate that was started without a controlling
// terminal shows the link to nobody.
func TestNoLinkWithoutATerminal(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	out := g.Must("demo")
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"version"}, {"check", "--op", "list_elements"}, {"approver", "link"}, {"policy", "status"}} {
		stdout, stderr, _ := g.Run(args...)
		out += stdout + stderr
	}
	resp, body := g.HTTP("GET", "/v1/health", "", nil, nil)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health: %d", resp.StatusCode)
	}
	out += string(body) + g.Visit().Get("/signin").Body
	g.Stop()
	if got := gatetest.Secrets(out + g.Log()); len(got) > 0 {
		t.Errorf("a secret was shown: %s", gatetest.Hide(strings.Join(got, " ")))
	}
}

// TestLinks: a link that an approver asked for works once, not after its time,
// and not for an approver who is gone.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := begin(t)
	link := func(credential string) string {
		t.Helper()
		got := &api.LinkResponse{}
		if err := w.Client(credential).Do(context.Background(), "POST", "/v1/link", nil, got); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(got.URL)
		if err != nil || !strings.HasPrefix(got.URL, w.URL+"/signin?") {
			t.Fatalf("the link is %s", gatetest.Hide(got.URL))
		}
		return u.Query().Get("token")
	}
	token := link(w.credential)
	if p := w.Visit().SignIn(token); p.Status != http.StatusOK {
		t.Fatalf("a fresh link: %d", p.Status)
	}
	if p := w.Visit().SignIn(token); p.Status != http.StatusForbidden {
		t.Errorf("a replayed link: %d, want 403", p.Status)
	}

	added := &api.SecretResponse{}
	w.do("POST", "/v1/approvers", &api.NameRequest{Name: "bob"}, added)
	token = link(added.Secret)
	bob := w.Visit()
	bob.SignIn(link(added.Secret))
	w.do("DELETE", "/v1/approvers/bob", nil, nil)
	if p := w.Visit().SignIn(token); p.Status != http.StatusForbidden {
		t.Errorf("the link of a removed approver: %d, want 403", p.Status)
	}
	if p := bob.Get("/"); p.Status != http.StatusUnauthorized {
		t.Errorf("the console of a removed approver: %d, want 401", p.Status)
	}

	// Ten minutes pass: the gate's clock runs on from the last commit, so
	// moving that moves the gate into the future.
	token = link(w.credential)
	w.Stop()
	w.Edit(`UPDATE store_clock SET micros = micros + 11 * 60 * 1000000`)
	w.Up()
	if p := w.Visit().SignIn(token); p.Status != http.StatusForbidden {
		t.Errorf("a link after its time: %d, want 403", p.Status)
	}
	if p := w.Visit().SignIn(link(w.credential)); p.Status != http.StatusOK {
		t.Errorf("a link of now: %d", p.Status)
	}
}

// everyAct is what a console can do to a request; form fills in what the page
// of the request holds.
func everyAct(id string) map[string]url.Values {
	return map[string]url.Values{
		"/requests/" + id + "/approve": {"offer": {"0"}},
		"/requests/" + id + "/deny":    {"text": {"no"}},
		"/requests/" + id + "/respond": {"text": {"no"}},
		"/requests/" + id + "/edit":    {"args": {`{"element_type":"skill","name":"other","description":"a test"}`}},
		"/kill":                        {"on": {"true"}, "sure": {"yes"}, "reason": {"x"}},
		"/people/totp":                 {},
		"/signout":                     {},
	}
}

// form reads the hidden fields of a request's page.
func form(t testing.TB, c *gatetest.Console, id string, more url.Values) url.Values {
	t.Helper()
	page := c.Get("/requests/" + id)
	if page.Status != http.StatusOK {
		t.Fatalf("the page of %s: %d", id, page.Status)
	}
	f := url.Values{
		"digest": {gatetest.Between(page.Body, `name="digest" value="`, `"`)},
		"token":  {gatetest.Between(page.Body, `name="token" value="`, `"`)},
	}
	if f.Get("digest") == "" || f.Get("token") == "" {
		t.Fatalf("the page of %s has no digest or no token", id)
	}
	for name, values := range more {
		f[name] = values
	}
	return f
}

// TestNobodyElseActsOnTheConsole: a forged cookie, a cookie without the proof,
// a cross-site POST, a foreign Origin, a foreign Host and a GET change nothing
// of the real gate's state.
func TestNobodyElseActsOnTheConsole(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, create("notes"))
	me := w.SignedIn(w.credential)
	before := w.dump()
	attacks := map[string]func(*http.Request){
		"cross-site":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site"); r.Header.Del("Origin") },
		"same-site":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site"); r.Header.Del("Origin") },
		"foreign origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another port":   func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1"); r.Header.Del("Sec-Fetch-Site") },
		"no site at all": func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Del("Sec-Fetch-Site") },
		"foreign host":   func(r *http.Request) { r.Host = "evil.example" },
		"rebound host": func(r *http.Request) {
			r.Host = "evil.example:" + r.URL.Port()
			r.Header.Set("Origin", "http://"+r.Host)
		},
		"no cookie": func(r *http.Request) { r.Header.Del("Cookie") },
		"forged cookie": func(r *http.Request) {
			r.Header.Set("Cookie", strings.Replace(r.Header.Get("Cookie"), "ghc_", "ghc_aaaa", 1))
		},
		"cookie of a token": func(r *http.Request) {
			r.Header.Set("Cookie", strings.Split(r.Header.Get("Cookie"), "=")[0]+"="+w.token)
		},
		"a credential": func(r *http.Request) {
			r.Header.Set("Cookie", strings.Split(r.Header.Get("Cookie"), "=")[0]+"="+w.credential)
		},
		"bearer instead": func(r *http.Request) { r.Header.Del("Cookie"); r.Header.Set("Authorization", "Bearer "+w.credential) },
	}
	for path, fields := range everyAct(asked.Request) {
		f := form(t, me, asked.Request, fields)
		f.Set("proof", me.Proof)
		for name, attack := range attacks {
			if p := me.Send("POST", path, f, attack); p.Status != http.StatusForbidden && p.Status != http.StatusUnauthorized {
				t.Errorf("%s, POST %s: %d, want 401 or 403", name, path, p.Status)
			}
		}
		if p := me.Send("GET", path+"?"+f.Encode(), nil, nil); p.Status == http.StatusSeeOther {
			t.Errorf("GET %s acted", path)
		}
		for _, proof := range []string{"", "x", me.Cookie} {
			f.Set("proof", proof)
			if p := me.Send("POST", path, f, nil); p.Status != http.StatusForbidden {
				t.Errorf("proof %q, POST %s: %d, want 403", proof, path, p.Status)
			}
		}
	}
	if after := w.dump(); after != before {
		t.Errorf("the state changed\nbefore:\n%s\nafter:\n%s", before, after)
	}

	// The same act, as the page does it, works; so it was not refused for
	// another reason.
	f := form(t, me, asked.Request, url.Values{"text": {"no"}})
	if p := me.Post("/requests/"+asked.Request+"/deny", f); p.Status != http.StatusSeeOther {
		t.Errorf("the page's own act: %d", p.Status)
	}
	if got := w.look(asked.Request); got.State != "denied" || got.AnsweredBy != "ann" || got.Channel != "console" {
		t.Errorf("the request is %s by %s on %s", got.State, got.AnsweredBy, got.Channel)
	}
}

// TestTheAPITakesNoPages: requests that carry what only a browser sends, or a
// Host that is not the gate's, are refused on both halves, whatever secret
// they bring.
func TestTheAPITakesNoPages(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for name, header := range map[string]http.Header{
		"origin":         {"Origin": {"http://evil.example"}},
		"own origin":     {"Origin": {w.URL}},
		"null origin":    {"Origin": {"null"}},
		"cross-site":     {"Sec-Fetch-Site": {"cross-site"}},
		"same-origin":    {"Sec-Fetch-Site": {"same-origin"}},
		"foreign host":   {"Host": {"evil.example"}},
		"rebound host":   {"Host": {"evil.example:" + w.URL[strings.LastIndexByte(w.URL, ':')+1:]}},
		"host, no port":  {"Host": {"127.0.0.1"}},
		"host as prefix": {"Host": {strings.TrimPrefix(w.URL, "http://") + ".evil.example"}},
	} {
		for path, secret := range map[string]string{"/v1/kill": w.credential, "/v1/calls": w.token, "/v1/approvers": w.credential} {
			resp, body := w.HTTP("POST", path, secret, header, map[string]any{})
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s, POST %s: %d %s, want 403", name, path, resp.StatusCode, body)
			}
		}
	}
	kill := &admin.Kill{}
	w.do("GET", "/v1/kill", nil, kill)
	if kill.On {
		t.Error("a page threw the kill switch")
	}
}

// TestHalvesShareNoSecret: an agent's token opens nothing of the approver
// half, an approver's credential nothing of the agent half, and neither is
// taken from anywhere but the header.
func TestHalvesShareNoSecret(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, create("notes"))
	before := w.dump()
	doc := openAPI(t, w)
	n := 0
	for _, r := range doc.routes() {
		path := r.path(asked.Request)
		if r.agent() {
			n++
			resp, body := w.HTTP(r.method, path, w.credential, nil, nil)
			if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
				t.Errorf("a credential on %s %s: %d %s", r.method, path, resp.StatusCode, body)
			}
		}
		if r.approver() {
			n++
			for what, resp := range map[string]*http.Response{
				"a token":               first(w.HTTP(r.method, path, w.token, nil, nil)),
				"nothing":               first(w.HTTP(r.method, path, "", nil, nil)),
				"a token in the query":  first(w.HTTP(r.method, path+"?access_token="+w.token, "", nil, nil)),
				"a credential in there": first(w.HTTP(r.method, path+"?access_token="+w.credential+"&token="+w.credential+"&authorization=Bearer+"+w.credential, "", nil, nil)),
				"a credential as basic": first(w.HTTP(r.method, path, "", http.Header{"Authorization": {"Basic " + w.credential}}, nil)),
				"a credential unnamed":  first(w.HTTP(r.method, path, "", http.Header{"Authorization": {strings.ToUpper(w.credential)}}, nil)),
				"a credential's cookie": first(w.HTTP(r.method, path, "", http.Header{"Cookie": {"gatehouse=" + w.credential}}, nil)),
				"a sign-in link":        first(w.HTTP(r.method, path, "ghl_"+w.credential[4:], nil, nil)),
			} {
				if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
					t.Errorf("%s on %s %s: %d", what, r.method, path, resp.StatusCode)
				}
			}
		}
	}
	if n < 30 {
		t.Fatalf("only %d routes were tried", n)
	}
	if after := w.dump(); after != before {
		t.Errorf("the state changed\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

func first(r *http.Response, _ []byte) *http.Response { return r }

// TestPinnedCallsNeedAFreshCode: no code, a wrong one, a used one and another
// approver's are refused; the right one approves, once.
func TestPinnedCallsNeedAFreshCode(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, remove("notes"))
	try := func(code string) error {
		t.Helper()
		return w.answer(asked.Request, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Code: code} })
	}
	refused(t, "without a second factor at all", try(""), http.StatusForbidden)
	refused(t, "a code of nobody's", try("123456"), http.StatusForbidden)

	codes := w.factor()
	refused(t, "no code", try(""), http.StatusForbidden)
	refused(t, "the code that confirmed the factor", try(codes.code(codes.last)), http.StatusForbidden)
	good := codes.next()
	wrong := "000000"
	if wrong == good {
		wrong = "000001"
	}
	refused(t, "a wrong code", try(wrong), http.StatusForbidden)
	refused(t, "half a code", try(good[:3]), http.StatusForbidden)
	if got := w.look(asked.Request); got.State != "pending" {
		t.Fatalf("the request is %s", got.State)
	}
	if err := try(good); err != nil {
		t.Fatalf("the right code: %v", err)
	}
	w.done(w.want(gate.Allowed, remove("notes")))

	// Used up: neither for the next request nor by another approver.
	asked = w.want(gate.Pending, remove("notes"))
	refused(t, "a code a second time", try(good), http.StatusForbidden)
	added := &api.SecretResponse{}
	w.do("POST", "/v1/approvers", &api.NameRequest{Name: "bob"}, added)
	r := w.look(asked.Request)
	unused := codes.next() // bob's try does not use up what is ann's
	err := w.Client(added.Secret).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Code: unused}, nil)
	refused(t, "ann's code from bob", err, http.StatusForbidden)

	// Nor can whoever holds the credential replace the factor.
	refused(t, "another factor without proof of the first", w.person.Do(context.Background(), "POST", "/v1/totp", nil, &api.TOTPResponse{}), http.StatusForbidden)
	refused(t, "a session grant for a pinned call", w.answer(asked.Request, "approve", func(r *admin.Request) any {
		return &api.ApproveRequest{Digest: r.Digest, Offer: 1, Code: unused}
	}), http.StatusBadRequest)
	if got := w.want(gate.Pending, remove("notes")); got.Request != asked.Request {
		t.Errorf("the call asks anew: %s, was %s", got.Request, asked.Request)
	}
	w.verify()
}
