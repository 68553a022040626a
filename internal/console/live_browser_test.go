package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
)

// TestBrowser runs the pages in a real browser, one tab and one console per
// subtest.
func TestBrowser(t *testing.T) {
	ctx := start(t)
	for name, test := range map[string]func(*browser){
		"a live update does not move the focus":   testFocusStays,
		"answered elsewhere is marked in place":   testMarkedInPlace,
		"keyboard":                                testKeyboard,
		"phone width":                             testPhoneWidth,
		"dark and light":                          testDarkAndLight,
		"approve arms after a second":             testArming,
		"answers of a request":                    testAnswers,
		"the feed holds still":                    testFeedHoldsStill,
		"a link from elsewhere keeps the sign-in": testLinkFromElsewhere,
	} {
		t.Run(name, func(t *testing.T) { test(open(t, ctx)) })
	}
}

// where describes what has focus and where it is on screen.
const where = `(() => { const e = document.activeElement, r = e.getBoundingClientRect(); return [e.id || e.tagName, r.top, r.left, r.height].join(" ") })()`

func (b *browser) file(id, command string) {
	r := newRequest(id, shellCall(command))
	b.desk.change(func() { b.desk.requests = append(b.desk.requests, r) })
}

func testFocusStays(b *browser) {
	b.until(`document.querySelectorAll("#inbox .card").length === 4`)
	b.do(cdp.KeyEvent("jj"))
	before := eval[string](b, where)
	if !strings.HasPrefix(before, "req-r-7c22 ") {
		b.t.Fatalf("focus on %s", before)
	}
	for i := range 3 {
		b.file(fmt.Sprintf("r-new%d", i), "make")
	}
	b.until(`document.querySelectorAll("#inbox .card").length === 7`)
	if after := eval[string](b, where); after != before {
		b.t.Errorf("focus was at %s, is at %s", before, after)
	}
	if last := eval[string](b, `document.querySelector("#inbox").lastElementChild.id`); last != "req-r-new2" {
		b.t.Errorf("%s is last: new requests do not go below", last)
	}
	if pill := eval[string](b, `document.querySelector("#pill").hidden ? "" : document.querySelector("#pill").textContent`); !strings.Contains(pill, "new below") {
		b.t.Errorf("the pill says %q", pill)
	}
	if n := eval[string](b, `document.querySelector("nav [data-count]").textContent + document.title`); !strings.HasPrefix(n, "7(7)") {
		b.t.Errorf("the count says %q", n)
	}
	// The same while someone types in a form.
	b.do(cdp.Navigate(b.url+"/requests/r-7c21"), cdp.Click(cdp.CSS(`[data-test=respond-text]`)), cdp.KeyEvent("half a sen"))
	before = eval[string](b, where)
	b.file("r-more", "make")
	b.until(`document.title.startsWith("(8)")`)
	if after := eval[string](b, where); after != before || eval[string](b, `document.activeElement.value`) != "half a sen" {
		b.t.Errorf("focus was at %s, is at %s", before, after)
	}
}

func testMarkedInPlace(b *browser) {
	b.do(cdp.KeyEvent("jj"))
	before := eval[string](b, where)
	bob := admin.Actor{Approver: "bob", Channel: "terminal"}
	for _, id := range []string{"r-7c21", "r-7c22"} {
		r, err := b.desk.find(id)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := b.desk.answer(bob, id, r.Digest, "denied", ""); err != nil {
			b.t.Fatal(err)
		}
	}
	b.until(`document.activeElement.querySelector("[data-note]").textContent.startsWith("Denied by bob")`)
	if after := eval[string](b, where); after != before {
		b.t.Errorf("focus was at %s, is at %s", before, after)
	}
	if !eval[bool](b, `[...document.querySelectorAll("#req-r-7c22 button")].every(b => b.matches(":disabled"))`) {
		b.t.Error("an answered request still takes answers")
	}
	// The page of a request says so too.
	b.do(cdp.Navigate(b.url + "/requests/r-7c23"))
	b.until(`!document.querySelector("[data-test=approve-once]").disabled`)
	r, _ := b.desk.find("r-7c23")
	_ = b.desk.answer(bob, "r-7c23", r.Digest, "approved", "")
	b.until(`document.querySelector("[data-test=status]").textContent.startsWith("Approved by bob")`)
	if !eval[bool](b, `[...document.querySelectorAll(".answer button")].every(b => b.matches(":disabled"))`) {
		b.t.Error("an answered request still takes answers")
	}
}

func testKeyboard(b *browser) {
	focus := func(want string) {
		b.t.Helper()
		if got := eval[string](b, `document.activeElement.id`); got != want {
			b.t.Errorf("focus on %q, want %q", got, want)
		}
	}
	b.do(cdp.KeyEvent("j"))
	focus("req-r-7c21")
	b.do(cdp.KeyEvent("jjj"))
	focus("req-r-7c24")
	b.do(cdp.KeyEvent("j")) // the last one
	focus("req-r-7c24")
	b.do(cdp.KeyEvent("kk"))
	focus("req-r-7c22")
	b.do(cdp.KeyEvent("?"))
	b.until(`document.querySelector("#help").open`)
	b.do(cdp.KeyEvent(kb.Escape))
	focus("req-r-7c22")

	b.until(`!document.querySelector("#req-r-7c22 [data-approve]").disabled`)
	b.do(cdp.KeyEvent("a"))
	b.until(`document.querySelector("#req-r-7c22 [data-note]").textContent === "Approved once."`)
	focus("req-r-7c22")

	b.do(cdp.KeyEvent("k"), cdp.KeyEvent("d"))
	b.until(`document.querySelector("#deny-dialog").open`)
	b.do(cdp.SetValue(cdp.CSS("[data-test=deny-dialog-text]"), "not today"), cdp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#req-r-7c21 [data-note]").textContent.startsWith("Denied")`)
	if acts := strings.Join(b.desk.did(), "; "); acts != "ann on console: approved r-7c22 ; ann on console: denied r-7c21 not today" {
		b.t.Errorf("done: %s", acts)
	}

	// What cannot be seen whole on its card is opened, not approved.
	b.do(cdp.KeyEvent("jj"), cdp.KeyEvent("a"))
	b.until(`location.pathname === "/requests/r-7c23"`)
	b.ready()
	b.until(`!document.querySelector("[data-approve]").disabled`)
	b.do(cdp.KeyEvent("a"))
	if got := eval[string](b, `document.activeElement.dataset.test`); got != "approve-once" {
		b.t.Errorf("a leads to %q", got)
	}
	b.do(cdp.KeyEvent("i"))
	b.until(`location.pathname === "/" && "ready" in (document.body?.dataset ?? {})`)
	b.do(cdp.KeyEvent("j"), cdp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/requests/r-7c23"`)
}

func testPhoneWidth(b *browser) {
	b.desk.change(func() {
		b.desk.policy.Broken = []string{"/home/ann/.config/gatehouse/a-very-long-file-name-that-does-not-wrap-by-itself.toml:3: unknown key"}
		b.desk.policy.Staged = &admin.StagedPolicy{Changes: []string{"+ " + strings.Repeat("x", 300)}}
	})
	b.file("r-wide", strings.Repeat("w", 3000))
	for _, width := range []int64{320, 390, 768, 1280} {
		b.do(cdp.EmulateViewport(width, 800))
		for _, path := range append(pages, "/requests/r-wide", "/nowhere", "/signin?token=x") {
			b.do(cdp.Navigate(b.url + path))
			if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
				b.t.Errorf("%s is %d wide at %d", path, got, width)
			}
		}
	}
	b.do(cdp.EmulateViewport(390, 800), cdp.Navigate(b.url+"/"))
	if eval[bool](b, `document.querySelector("nav").checkVisibility()`) {
		b.t.Error("the menu covers the page before it is opened")
	}
	b.do(cdp.Click(cdp.CSS(".menu-label")))
	b.until(`document.querySelector("nav").checkVisibility()`)
}

func testDarkAndLight(b *browser) {
	const ground = `getComputedStyle(document.body).backgroundColor`
	b.scheme("light")
	light := eval[string](b, ground)
	b.scheme("dark")
	dark := eval[string](b, ground)
	if light == dark {
		b.t.Fatalf("both are %s", light)
	}
	b.do(cdp.Click(cdp.CSS("[data-theme-toggle]")))
	if got := eval[string](b, ground); got != light {
		b.t.Errorf("toggled to %s, want %s", got, light)
	}
	b.do(cdp.Navigate(b.url + "/log"))
	b.ready()
	if got := eval[string](b, ground); got != light {
		b.t.Errorf("the next page is %s, want %s", got, light)
	}
	b.do(cdp.Click(cdp.CSS("[data-theme-toggle]")))
	if got := eval[string](b, ground+` + " " + document.cookie.includes("theme")`); got != dark+" false" {
		b.t.Errorf("toggled back to %s, want %s and no cookie", got, dark)
	}
}

func testArming(b *browser) {
	b.do(cdp.Navigate(b.url + "/requests/r-7c21"))
	if !eval[bool](b, `document.querySelector("[data-test=approve-once]").disabled && document.querySelector("[data-test=approve-session]").disabled`) {
		b.t.Error("the call can be approved at once")
	}
	shown := time.Now()
	b.until(`!document.querySelector("[data-test=approve-once]").disabled`)
	if d := time.Since(shown); d < 500*time.Millisecond {
		b.t.Errorf("armed after %s", d)
	}
	left := eval[string](b, `document.querySelector("[data-left]").textContent`)
	b.until(`document.querySelector("[data-left]").textContent !== "` + left + `"`)
	b.do(cdp.Click(cdp.CSS("[data-test=approve-session]")))
	b.until(`location.pathname === "/" && !!document.querySelector("[data-test=flash]")`)
	if got := eval[string](b, `document.querySelector("[data-test=flash]").textContent`); !strings.HasPrefix(got, "Approved for the session: connecting to github.com:443") {
		b.t.Error(got)
	}
}

func testAnswers(b *browser) {
	b.do(
		cdp.Navigate(b.url+"/requests/r-7c21"),
		cdp.Click(cdp.CSS("[data-test=edit]")), cdp.WaitVisible(cdp.CSS("[data-test=edit-args]")),
		cdp.SetValue(cdp.CSS("[data-test=edit-args]"), `{"command":"git push --dry-run"}`),
		cdp.Click(cdp.CSS("[data-test=edit-submit]")),
	)
	b.until(`location.pathname === "/requests/r-7c21-edited" && !!document.body?.textContent.includes("git push --dry-run")`)
	b.do(cdp.SendKeys(cdp.CSS("[data-test=deny-text]"), "no"), cdp.Click(cdp.CSS("[data-test=deny]")))
	b.until(`location.pathname === "/" && !!document.querySelector("[data-test=flash]")?.textContent.startsWith("Denied")`)
	b.do(
		cdp.Navigate(b.url+"/requests/r-7c22"),
		cdp.SendKeys(cdp.CSS("[data-test=respond-text]"), "use cart2"), cdp.Click(cdp.CSS("[data-test=respond]")),
	)
	b.until(`location.pathname === "/" && !!document.querySelector("[data-test=flash]")?.textContent.startsWith("Answered")`)
	b.do(cdp.Navigate(b.url+"/grants"), cdp.Click(cdp.CSS("[data-test=grant-revoke]")))
	b.until(`!!document.body?.textContent.includes("No grants are in force")`)
	b.do(cdp.Navigate(b.url+"/budgets"), cdp.Click(cdp.CSS("[data-test=budget-revoke]")))
	b.until(`!!document.body?.textContent.includes("No budgets are in force")`)
	b.do(
		cdp.Navigate(b.url+"/kill"), cdp.SendKeys(cdp.CSS("[data-test=kill-reason]"), "drill"),
		cdp.Click(cdp.CSS("[data-test=kill-sure]")), cdp.Click(cdp.CSS("[data-test=kill-toggle]")),
	)
	b.until(`!!document.querySelector("[data-test=kill-banner]")`)
	want := `ann on console: edited r-7c21 {"command":"git push --dry-run"}; ann on console: denied r-7c21-edited no; ` +
		`ann on console: responded r-7c22 use cart2; ann on console: revoke g-1; ann on console: revoke budget b-1; ann on console: kill true drill`
	if got := strings.Join(b.desk.did(), "; "); got != want {
		b.t.Errorf("done: %s", got)
	}
}

func testFeedHoldsStill(b *browser) {
	const top = `document.querySelector("#live").firstElementChild.dataset.id`
	const pill = `(document.querySelector("#pill").hidden ? "" : document.querySelector("#pill").textContent)`
	b.do(cdp.Navigate(b.url + "/live"))
	b.ready()
	b.desk.change(func() { b.desk.record(50) })
	b.until(top + ` === "c-050"`)

	b.do(cdp.KeyEvent("jj"))
	before := eval[string](b, where)
	b.desk.change(func() { b.desk.record(51); b.desk.record(52) })
	b.until(pill + ` === "2 new"`)
	if after := eval[string](b, where); after != before || eval[string](b, top) != "c-050" {
		b.t.Errorf("focus was at %s, is at %s", before, after)
	}
	b.do(cdp.Click(cdp.CSS("#pill")))
	b.until(top + ` === "c-052"`)

	b.do(cdp.Click(cdp.CSS("[data-test=pause]")))
	b.desk.change(func() { b.desk.record(53) })
	b.until(pill + ` === "1 new"`)
	b.do(cdp.Click(cdp.CSS("[data-test=pause]")))
	b.until(top + ` === "c-053"`)
}

func testLinkFromElsewhere(b *browser) {
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><a id="go" href="%s/requests/r-7c21">one waits</a>`, b.url)
	}))
	b.t.Cleanup(chat.Close)
	elsewhere := strings.Replace(chat.URL, "127.0.0.1", "localhost", 1) // another site to the browser
	b.do(cdp.Navigate(elsewhere), cdp.Click(cdp.CSS("#go")))
	b.until(`document.querySelector("h1")?.textContent === "Push feature/checkout to origin"`)
}
