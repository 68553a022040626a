package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// tab is a tab of a real Chromium.
type tab struct {
	t   testing.TB
	ctx context.Context
	url string
}

// newTab starts a browser.
func newTab(t testing.TB, url string) *tab {
	t.Helper()
	opts := append(cdp.DefaultExecAllocatorOptions[:], cdp.ExecPath(needtest.Chromium(t)), cdp.NoSandbox, cdp.DisableGPU, cdp.NoFirstRun, cdp.WindowSize(1280, 900))
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		opts = append(opts, cdp.Flag(flag, true))
	}
	ctx, cancel := cdp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = cdp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := cdp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &tab{t: t, ctx: ctx, url: url}
}

func (b *tab) do(steps ...cdp.Action[cdp.Void]) {
	b.t.Helper()
	if err := cdp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) is(js string) bool {
	b.t.Helper()
	v, err := cdp.Run(b.ctx, cdp.Evaluate[bool]("!!("+js+")"))
	if err != nil && strings.Contains(err.Error(), "navigated") {
		return false // the page went away under the question: ask the next one
	}
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits for an expression to become true.
func (b *tab) until(js string) {
	b.t.Helper()
	for n := 0; !b.is(js); n++ {
		if n == 400 {
			where, _ := cdp.Run(b.ctx, cdp.Evaluate[string](`location.pathname + " " + document.body.innerText.slice(0, 2000)`))
			b.t.Fatalf("never became true: %s\non %s", js, where)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// open goes to a page and waits until its script has run.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(cdp.Navigate(b.url + path))
	b.until(`location.href === "` + b.url + path + `" && "ready" in (document.body?.dataset ?? {})`)
}

// click waits until something with this name can be clicked, and clicks it.
func (b *tab) click(name string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector("[data-test=%s]") && !document.querySelector("[data-test=%s]").matches(":disabled")`, name, name))
	b.do(cdp.Click(cdp.CSS("[data-test=" + name + "]")))
}

// says waits for the message that an act leads to.
func (b *tab) says(prefix string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector("[data-test=flash]")?.textContent.trim().startsWith(%q)`, prefix))
}

// waiting is a call of an agent that waits for a person.
type waiting struct {
	t      testing.TB
	answer chan *api.CallResponse
	err    error
}

// submitAndWait sends a call that waits, and returns its request.
func (w *world) submitAndWait(in *api.CallRequest) (*waiting, string) {
	w.t.Helper()
	call := *in
	call.WaitMS = 300_000
	wait := &waiting{t: w.t, answer: make(chan *api.CallResponse, 1)}
	before := w.pending()
	go func() {
		out := &api.CallResponse{}
		wait.err = w.agent.Do(context.Background(), "POST", "/v1/calls", &call, out)
		wait.answer <- out
	}()
	id := ""
	eventually(w.t, "the call is filed", func() bool {
		for next := range w.pending() {
			if !before[next] {
				id = next
			}
		}
		return id != ""
	})
	return wait, id
}

// pending are the requests that wait.
func (w *world) pending() map[string]bool {
	w.t.Helper()
	list := &api.ApprovalList{}
	w.do("GET", "/v1/approvals?state=pending", nil, list)
	out := map[string]bool{}
	for _, r := range list.Requests {
		out[r.ID] = true
	}
	return out
}

// get is the answer the agent gets.
func (wait *waiting) get() *api.CallResponse {
	wait.t.Helper()
	got := <-wait.answer
	if wait.err != nil {
		wait.t.Fatal(wait.err)
	}
	return got
}

// TestAPersonInABrowser is what the console is for, in a real browser on the
// real binary: become the first approver by the link on the terminal, then
// approve, edit, deny, answer in words, approve for the session and take that
// back, stop everything; and the log of it verifies.
func TestAPersonInABrowser(t *testing.T) {
	t.Parallel()
	g := gatetest.New(t)
	screen := g.UpOnTerminal()
	b := newTab(t, g.URL)
	b.do(cdp.Navigate(g.URL+"/signin?token="+screen.Token()), cdp.Click(cdp.CSS(`[data-test=sign-in]`)))
	b.until(`document.querySelector("#inbox") && "ready" in (document.body?.dataset ?? {})`)
	// For looking on from the other side.
	w := consoleWorld(t, g, b)
	first := screen.String()

	// The inbox shows what comes without being told to.
	call, id := w.submitAndWait(create("notes"))
	b.until(`document.querySelector("[data-test=inbox-item]")`)
	b.open("/requests/" + id)
	b.click("approve-once")
	b.says("Approved")
	if got := call.get(); got.Verdict != gate.Allowed || got.Edited != nil {
		t.Errorf("after the approval: %s", got.Message)
	} else {
		w.done(got)
	}

	// An edit is a call of its own: it is asked about, and the agent that
	// waits is told what to run.
	call, id = w.submitAndWait(create("mistake"))
	b.open("/requests/" + id)
	b.click("edit")
	b.do(cdp.WaitVisible(cdp.CSS("[data-test=edit-args]")), cdp.SetValue(cdp.CSS("[data-test=edit-args]"), `{"element_type":"skill","name":"intended","description":"a test"}`))
	b.click("edit-submit")
	b.until(`location.pathname.startsWith("/requests/") && location.pathname !== "/requests/` + id + `" && document.body?.textContent.includes("intended")`)
	if len(call.answer) > 0 {
		t.Error("the edit alone let something through")
	}
	b.click("approve-once")
	b.says("Approved")
	if got := call.get(); got.Verdict != gate.Allowed || !strings.Contains(string(got.Edited), "intended") || strings.Contains(string(got.Edited), "mistake") {
		t.Errorf("after the edit: %s, run %s", got.Message, got.Edited)
	} else {
		w.done(got)
	}

	call, id = w.submitAndWait(create("unwanted"))
	b.open("/requests/" + id)
	b.do(cdp.SendKeys(cdp.CSS("[data-test=deny-text]"), "not on a Friday"))
	b.click("deny")
	b.says("Denied")
	if got := call.get(); got.Verdict != gate.Denied || !strings.Contains(got.Message, "not on a Friday") {
		t.Errorf("after the denial: %s", got.Message)
	}

	call, id = w.submitAndWait(create("question"))
	b.open("/requests/" + id)
	b.do(cdp.SendKeys(cdp.CSS("[data-test=respond-text]"), "which one do you mean?"))
	b.click("respond")
	b.says("Answered")
	if got := call.get(); got.Verdict != gate.Denied || !strings.Contains(got.Message, "which one do you mean?") {
		t.Errorf("after the answer in words: %s", got.Message)
	}

	call, id = w.submitAndWait(create("one of many"))
	b.open("/requests/" + id)
	b.click("approve-session")
	b.says("Approved for the session")
	if got := call.get(); got.Verdict != gate.Allowed {
		t.Errorf("after the approval for the session: %s", got.Message)
	}
	w.want(gate.Allowed, create("another"))
	b.open("/grants")
	b.click("grant-revoke")
	b.says("Grant revoked")
	w.want(gate.Pending, create("yet another"))

	b.open("/kill")
	b.do(cdp.SendKeys(cdp.CSS("[data-test=kill-reason]"), "drill"))
	b.click("kill-sure")
	b.click("kill-toggle")
	b.says("The kill switch is on")
	if got := w.want(gate.Denied, callOf("list_elements", "")); !strings.Contains(got.Message, "drill") {
		t.Errorf("under the kill switch: %s", got.Message)
	}
	b.open("/kill")
	b.click("kill-sure")
	b.click("kill-toggle")
	b.says("The kill switch is off")
	w.want(gate.Allowed, callOf("list_elements", ""))

	if screen.String() != first || len(gatetest.Secrets(g.Log())) > 0 {
		t.Error("something was shown on the terminal or in the log after the sign-in")
	}
	w.verify()
}

// consoleWorld makes a credential for the terminal on the console, which signs
// out, and signs in again with a link made with it. The first approver is the
// user who started the gate.
func consoleWorld(t testing.TB, g *gatetest.Gate, b *tab) *world {
	t.Helper()
	b.open("/people")
	b.click("credential-new")
	b.until(`document.querySelector("[data-test=credential]")`)
	credential, err := cdp.Run(b.ctx, cdp.Evaluate[string](`document.querySelector("[data-test=credential]").textContent.trim()`))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Gate: g, t: t, credential: credential, key: filepath.Join(t.TempDir(), "me.key")}
	write(t, w.key, credential)
	w.token = g.Agent(credential, "coder")
	w.person, w.agent = g.Client(credential), g.Client(w.token)
	link := strings.TrimSpace(g.Must("approver", "link", "--credential-file", w.key))
	b.do(cdp.Navigate(link), cdp.Click(cdp.CSS(`[data-test=sign-in]`)))
	b.until(`document.querySelector("#inbox") && "ready" in (document.body?.dataset ?? {})`)
	return w
}
