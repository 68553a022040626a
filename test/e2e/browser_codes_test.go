package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	cdp "github.com/chromedp/chromedp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// text is what an element of the page shows.
func (b *tab) text(name string) string {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector("[data-test=%s]")`, name))
	got, err := cdp.Run(b.ctx, cdp.Evaluate[string](fmt.Sprintf(`document.querySelector("[data-test=%s]").textContent.trim()`, name)))
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// releases types the code that a challenge shows, and one of the second
// factor, and releases it.
func (b *tab) releases(a *authenticator) {
	b.t.Helper()
	code := b.text("challenge-code")
	b.do(cdp.SetValue(cdp.CSS("[data-test=challenge-typed]"), code), cdp.SetValue(cdp.CSS("[data-test=code]"), a.next()))
	b.click("challenge-release")
	b.says("Released")
}

// TestCodesInABrowser: what waits for a code is on the console of the real
// binary, in a real browser: the code of a call, for a person to tell; a paused
// execution, a freeze and the danger zone, for a person to release or refuse.
func TestCodesInABrowser(t *testing.T) {
	t.Parallel()
	g := gatetest.New(t)
	screen := g.UpOnTerminal()
	b := newTab(t, g.URL)
	b.do(cdp.Navigate(g.URL+"/signin?token="+screen.Token()), cdp.Click(cdp.CSS(`[data-test=sign-in]`)))
	b.until(`document.querySelector("#inbox") && "ready" in (document.body?.dataset ?? {})`)
	w := consoleWorld(t, g, b)
	k := &keeper{world: w}
	k.element("personas/sandbox.md", sandbox)
	k.element("agents/builder.md", builder)
	m := w.model(t, w.token)

	// Without a second factor the page says that one is needed.
	m.ok("activate_element", map[string]any{"element_type": "persona", "name": "sandbox"})
	m.ok("release_deadlock", nil)
	b.open("/danger")
	b.until(`document.body.textContent.includes("it needs your second factor, and you have none") && !document.querySelector("[data-test=challenge-release]")`)
	a := w.factor()

	// A freeze: a wrong code releases nothing, the right one does.
	b.open("/danger")
	b.do(cdp.SetValue(cdp.CSS("[data-test=challenge-typed]"), "222222"), cdp.SetValue(cdp.CSS("[data-test=code]"), a.next()))
	b.click("challenge-release")
	if said := b.text("flash"); !strings.Contains(said, "code") || strings.HasPrefix(said, "Released") {
		t.Errorf("a wrong code: %q", said)
	}
	m.refused("frozen", "create_element", map[string]any{"element_type": "skill", "name": "x", "description": "d"})
	b.open("/danger")
	b.releases(a)
	if got := m.op("create_element", map[string]any{"element_type": "skill", "name": "x", "description": "d"}); got.str("verdict") != "pending" {
		t.Errorf("after the release: %s", got.text)
	}

	// The code of a call is on the inbox and on the call's own page, the same;
	// told to the agent it approves the call, once.
	asked := m.ok("confirm_operation", forget)
	b.open("/")
	code := b.text("challenge-code")
	b.open("/requests/" + asked.str("request"))
	if on := b.text("request-code"); !strings.Contains(on, code) || len(code) != 6 {
		t.Errorf("the inbox shows %q, the request's page %q", code, on)
	}
	if got := m.ok("verify_challenge", map[string]any{"challenge_id": asked.str("challenge", "challenge_id"), "code": code}); !got.is("verified") {
		t.Errorf("the code from the page: %s", got.text)
	}
	b.open("/requests/" + asked.str("request"))
	if said := b.text("status"); !strings.Contains(strings.ToLower(said), "approved") {
		t.Errorf("the page of the approved request says %q", said)
	}

	// A paused execution is listed with why, and let go on by a button.
	id := w.confirmed(m, a, "execute_agent", map[string]any{"name": "builder", "goal": "build it"}).str("id")
	failed := stepOf(id)
	failed["outcome"] = "failure"
	w.sessionOK(m, "record_execution_step", failed)
	b.open("/danger")
	if why := b.text("execution-why"); !strings.Contains(why, "fail") {
		t.Errorf("the page does not say why it is paused: %q", why)
	}
	b.click("challenge-release")
	b.says("Released")
	if got := m.ok("record_execution_step", stepOf(id)); !got.is("directive", "continue") {
		t.Errorf("after it was let go on: %s", got.text)
	}

	// The danger zone: the block, and the code that releases it.
	w.Must("danger", "block", "coder", "--reason", "deletes backups", "--credential-file", w.key)
	w.want(gate.Denied, callOf("list_elements", ""))
	b.open("/danger")
	if block := b.text("block"); !strings.Contains(block, "deletes backups") {
		t.Errorf("the page shows %q", block)
	}
	b.releases(a)
	w.want(gate.Allowed, callOf("list_elements", ""))

	// Refused: the code is void.
	m.ok("activate_element", map[string]any{"element_type": "persona", "name": "sandbox"})
	ch := m.ok("release_deadlock", nil).str("challenge", "challenge_id")
	b.open("/danger")
	code = b.text("challenge-code")
	b.click("challenge-refuse")
	b.says("Refused")
	if got := m.op("release_deadlock", map[string]any{"challenge_id": ch, "code": code}); !got.failed {
		t.Errorf("a void code: %s", got.text)
	}
	m.refused("frozen", "create_element", map[string]any{"element_type": "skill", "name": "y", "description": "d"})

	// What is in force is listed, and released from there.
	b.open("/elements")
	if set := b.text("element-set"); !strings.Contains(set, "persona/sandbox") || !strings.Contains(set, "confirm_operation") {
		t.Errorf("the elements' page shows %q", set)
	}
	b.do(cdp.SetValue(cdp.CSS("[data-test=code]"), a.next()))
	b.click("element-release")
	b.until(`document.querySelector("[data-test=flash]") && !document.querySelector("[data-test=element-set]")`)
	if got := m.op("create_element", map[string]any{"element_type": "skill", "name": "y", "description": "d"}); got.str("verdict") != "pending" {
		t.Errorf("after the element was released: %s", got.text)
	}
	if text := w.Log(); strings.Contains(text, code) || len(gatetest.Secrets(text)) > 0 {
		t.Errorf("a code is in the daemon's log: %s", filepath.Base(w.Home))
	}
	w.verify()
}
