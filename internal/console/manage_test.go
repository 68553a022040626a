package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
)

func TestKillSwitch(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	if got := cl.says("/kill", url.Values{"on": {"true"}, "reason": {"drill"}}); !strings.Contains(got, "tick the box") {
		t.Error(got)
	}
	if got := cl.says("/kill", url.Values{"on": {"true"}, "sure": {"yes"}, "reason": {" "}}); !strings.Contains(got, "say why") {
		t.Error(got)
	}
	if got := cl.says("/kill", url.Values{"on": {"true"}, "sure": {"yes"}, "reason": {"drill"}}); !strings.Contains(got, "is on") {
		t.Error(got)
	}
	for _, path := range []string{"/", "/live", "/log", "/requests/r-7c21", "/people"} {
		if page := cl.get(path); !strings.Contains(page, `data-test="kill-banner"`) || !strings.Contains(page, "drill") {
			t.Errorf("%s does not say that the switch is on", path)
		}
	}
	if got := cl.says("/kill", url.Values{"on": {"false"}, "sure": {"yes"}}); !strings.Contains(got, "is off") {
		t.Error(got)
	}
	if strings.Contains(cl.get("/"), "kill-banner") {
		t.Error("the banner stays")
	}
	if diff := cmp.Diff([]string{"ann on console: kill true drill", "ann on console: kill false "}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.desk.change(func() {
		cl.desk.policy.Broken = []string{"project.toml:3: unknown key alow; did you mean allow?"}
		cl.desk.policy.Staged = &admin.StagedPolicy{Hash: digestOf("abc"), Changes: []string{"- net.egress = deny", "+ net.egress = allow"}}
	})
	for _, path := range []string{"/", "/live", "/grants"} {
		if page := text(cl.get(path)); !strings.Contains(page, "did you mean allow?") || !strings.Contains(page, "A policy change waits") {
			t.Errorf("%s is not loud about the policy", path)
		}
	}
	page := cl.get("/policy")
	if !strings.Contains(text(page), "+ net.egress = allow") || strings.Contains(page, `data-test="code"`) {
		t.Error("the change is not shown, or asks for a factor that ann has not")
	}
	cl.desk.change(func() { cl.desk.people[0].TOTP = true })
	if !strings.Contains(cl.get("/policy"), `data-test="code"`) {
		t.Error("no field for the code")
	}
	cl.says("/policy/accept", url.Values{"hash": {between(page, `name="hash" value="`, `"`)}, "code": {"123456"}})
	if got := cl.says("/policy/accept", url.Values{"hash": {"zz"}}); !strings.Contains(got, "which change") {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"ann on console: accept 6162 123456"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	page := text(cl.get("/budgets"))
	for _, want := range []string{"fs.write:./cart/**", "5 of 12 times left, 4 handed on", "4 of 4 times left", "cut from b-1", "reviewer", "by ann on console"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q: %s", want, page)
		}
	}
	cl.says("/budgets/b-1/revoke", url.Values{})
	if page := text(cl.get("/budgets")); !strings.Contains(page, "No budgets are in force") {
		t.Error("the budget is still shown, or what was cut from it")
	}
	if diff := cmp.Diff([]string{"ann on console: revoke budget b-1"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestSessionsAndGrants(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	if page := text(cl.get("/grants")); !strings.Contains(page, "writing /home/ann/shop/** for the rest of this session") || !strings.Contains(page, "used 14 times") {
		t.Error("the grant is not shown")
	}
	cl.says("/grants/g-1/revoke", url.Values{})
	if page := text(cl.get("/grants")); !strings.Contains(page, "No grants are in force") {
		t.Error("the grant is still shown")
	}
	if page := text(cl.get("/sessions")); !strings.Contains(page, "its process ended") || !strings.Contains(page, "claude (pid 4121)") {
		t.Error("the sessions are not shown")
	}
	cl.says("/sessions/s-4f1c/end", url.Values{})
	if diff := cmp.Diff([]string{"ann on console: revoke g-1", "ann on console: end session s-4f1c"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestSecondFactor(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	res := cl.post("/people/totp", url.Values{})
	if page := text(res.Body.String()); !strings.Contains(page, "JBSWY3DPEHPK3PXP") || !strings.Contains(page, "otpauth://totp/Gatehouse:ann") {
		t.Errorf("no secret: %d", res.Code)
	}
	if strings.Contains(cl.get("/people"), "JBSWY3DPEHPK3PXP") {
		t.Error("the secret is shown twice")
	}
	if got := cl.says("/people/totp/confirm", url.Values{"code": {"1"}}); got != "that code is wrong" {
		t.Error(got)
	}
	if !strings.Contains(cl.get("/people?retry=1"), `data-test="totp-confirm"`) {
		t.Error("a wrong code cannot be mended")
	}
	if got := cl.says("/people/totp/confirm", url.Values{"code": {"123456"}}); !strings.Contains(got, "set up") {
		t.Error(got)
	}
}

func TestNewCredentialIsShownOnce(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	res := cl.post("/people/credential", url.Values{})
	if page := text(res.Body.String()); !strings.Contains(page, "gha_new-for-ann") {
		t.Errorf("no credential on the page: %d", res.Code)
	}
	if strings.Contains(cl.get("/people"), "gha_new-for-ann") {
		t.Error("the credential is shown twice")
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for i := range 40 {
		cl.desk.record(100 + i)
	}
	page := cl.get("/log")
	if n := strings.Count(page, `data-test="log-row"`); n != 50 {
		t.Errorf("%d rows on the first page", n)
	}
	older := strings.ReplaceAll(between(page, `" href="/log?cursor=`, `"`), "&amp;", "&")
	if next := cl.get("/log?cursor=" + older); strings.Contains(next, "Older") && strings.Contains(page, between(next, `href="/log/`, `"`)) {
		t.Error("the next page repeats the first")
	}
	page = cl.get("/log?kind=outcome&outcome=failed")
	if strings.Contains(text(page), "pkg.go.dev") || !strings.Contains(page, `<option value="failed" selected>`) || strings.Count(page, "data-test=\"log-row\"") != 11 {
		t.Errorf("filtered: %d rows", strings.Count(page, "data-test=\"log-row\""))
	}
	if page := text(cl.get("/log?since=2099-01-01T00:00")); !strings.Contains(page, "No records match") {
		t.Error("the time does not filter")
	}
	if page := text(cl.get("/log?since=yesterday")); !strings.Contains(page, "is not a time") {
		t.Error("a wrong time is not refused")
	}
	page = text(cl.get("/log/rec-006"))
	for _, want := range []string{"gatehouse audit prove 6", `"command": "go test ./cart/..."`, "Start", "Outcome", "failed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the record does not show %q", want)
		}
	}
}

func TestLiveShowsEveryCallOnce(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	page := cl.get("/live")
	if n := strings.Count(page, `data-test="live-row"`); n != 14 {
		t.Errorf("%d rows for 14 calls", n)
	}
	for _, want := range []string{"git status --short", "allowed", "denied", "pending", "failed", "succeeded"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	if res := cl.post("/signout", url.Values{}); res.Header().Get("Location") != "/signin" {
		t.Errorf("%d", res.Code)
	}
	if res := cl.send(http.MethodGet, "/", nil, nil); res.Code != http.StatusUnauthorized {
		t.Errorf("still signed in: %d", res.Code)
	}
}

// The choice of colours is the only thing taken from a cookie that scripts
// set, and only two values of it.
func TestThemeCookie(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	for value, want := range map[string]string{"dark": `<html lang="en" data-theme="dark">`, "light": `<html lang="en" data-theme="light">`, `"><script>`: `<html lang="en">`} {
		res := cl.send(http.MethodGet, "/", nil, func(r *http.Request) { r.Header.Add("Cookie", "gatehouse-theme="+value) })
		if !strings.Contains(res.Body.String(), want) {
			t.Errorf("theme %q: no %s", value, want)
		}
	}
}

// Whoever else can set cookies for this host cannot make the console speak.
func TestForgedFlashIsIgnored(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.flash = "QXBwcm92ZWQgb25jZS4QXBwcm92ZWQgb25jZS4QXBwcm92ZWQgb25jZS4QXBwcm92ZWQgb25jZS4"
	if page := cl.get("/"); strings.Contains(page, `data-test="flash"`) {
		t.Error("a forged message is shown")
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	page := cl.get("/servers")
	if strings.Contains(page, "<script>, and") || strings.Contains(page, "<b>files") {
		t.Error("what a server says about itself is markup")
	}
	for _, want := range []string{`- ` + "\t" + `"description": "Reads."`, `"description": "Reads <script>, and sends it."`, "it changed since it was pinned"} {
		if !strings.Contains(text(page), strings.TrimPrefix(want, "- \t")) {
			t.Errorf("the page lacks %q", want)
		}
	}
	form := url.Values{"upstream": {between(page, `name="upstream" value="`, `"`)}, "digest": {between(page, `name="digest" value="`, `"`)}}
	if got := cl.says("/servers/accept", form); !strings.Contains(got, "Accepted") {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"accept server files  d1 by ann"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

func TestRestorePoints(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	if page := text(cl.get("/restore")); !strings.Contains(page, "/w/a.txt") || !strings.Contains(page, "too large") || !strings.Contains(page, "not made by this gate") {
		t.Errorf("the list lacks something: %s", page)
	}
	page := cl.get("/restore/p_1")
	if !strings.Contains(page, "old &lt;b&gt;") || !strings.Contains(page, `data-test="restore-newer"`) {
		t.Error("the page does not show the diff as text, or does not ask about newer changes")
	}
	if got := cl.says("/restore/p_1/apply", url.Values{"digest": {"stale"}}); !strings.Contains(got, "look again") {
		t.Error(got)
	}
	if got := cl.says("/restore/p_1/apply", url.Values{"digest": {"d1"}, "newer": {"yes"}}); !strings.Contains(got, "kept as p_2") {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"ann on console: restore p_1 newer=true"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}
