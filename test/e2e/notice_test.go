package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// hook is a receiver of webhooks.
type hook struct {
	*httptest.Server
	got chan delivery
}

type delivery struct {
	path, contentType, body string
}

func newHook(t testing.TB) *hook {
	h := &hook{got: make(chan delivery, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what did not arrive is missed below
		h.got <- delivery{r.URL.Path, r.Header.Get("Content-Type"), string(body)}
	}))
	t.Cleanup(h.Close)
	return h
}

// TestNotices: a request that waits is made known in each format, with a link
// to its page and without an argument or a secret; opening the link approves
// nothing.
func TestNotices(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	w := beginWith(t, `version = 1
[[notify]]
kind = "webhook"
url = "`+h.URL+`/generic"
[[notify]]
kind = "webhook"
url = "`+h.URL+`/slack"
format = "slack"
[[notify]]
kind = "webhook"
url = "`+h.URL+`/ntfy/gate-topic"
format = "ntfy"
`)
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	calls := map[string]string{ // the operation as it is shown → an argument that must not be
		"create_element": "a-private-name",
		"shell":          secret,
	}
	asked := w.want(gate.Pending, create("a-private-name"))
	check(t, w, h, asked.Request, "create_element", calls)
	asked = w.want(gate.Pending, tool("Bash", "command", "curl -H 'Authorization: Bearer "+secret+"' https://api.example.com/ <!channel>"))
	check(t, w, h, asked.Request, "shell", calls)

	// The link is a page, and an answer to nobody who is not signed in.
	link := "/requests/" + asked.Request
	for range 2 {
		if p := w.Visit().Get(link); p.Status != http.StatusUnauthorized {
			t.Errorf("the link, not signed in: %d", p.Status)
		}
		if p := w.SignedIn(w.credential).Get(link); p.Status != http.StatusOK {
			t.Errorf("the link, signed in: %d", p.Status)
		}
	}
	if got := w.look(asked.Request); got.State != "pending" {
		t.Errorf("opening the link made the request %s", got.State)
	}

	// Asking again for the same is not news.
	w.want(gate.Pending, create("a-private-name"))
	w.want(gate.Allowed, callOf("list_elements", ""))
	if n := len(h.got); n > 0 {
		t.Errorf("%d notices of nothing new", n)
	}
}

// check receives the notice of a request in all three formats.
func check(t *testing.T, w *world, h *hook, request, operation string, secrets map[string]string) {
	t.Helper()
	link := w.URL + "/requests/" + request
	for range 3 {
		d := <-h.got
		if !strings.HasPrefix(d.contentType, "application/json") {
			t.Errorf("%s: content type %q", d.path, d.contentType)
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(d.body), &body); err != nil {
			t.Fatalf("%s: %v\n%s", d.path, err, d.body)
		}
		for _, part := range append([]string{w.token, w.credential, "gha_", "ghl_", "ghg_"}, secrets["create_element"], secrets["shell"]) {
			if strings.Contains(d.body, part) {
				t.Errorf("%s holds %q: %s", d.path, part, d.body)
			}
		}
		switch d.path {
		case "/generic":
			if body["event"] != "approval.requested" || body["request"] != request || body["link"] != link || body["operation"] != operation || body["agent"] != "coder" || body["expires"] == nil {
				t.Errorf("generic: %s", d.body)
			}
		case "/slack":
			if !strings.Contains(d.body, `"url":"`+link+`"`) || !strings.Contains(body["text"].(string), operation) || strings.Contains(body["text"].(string), "<!") {
				t.Errorf("slack: %s", d.body)
			}
		case "/ntfy", "/ntfy/":
			if body["topic"] != "gate-topic" || body["click"] != link || body["title"] == "" || body["message"] == "" {
				t.Errorf("ntfy: %s", d.body)
			}
		default:
			t.Errorf("a notice to %s", d.path)
		}
	}
}

// TestADeliveredNoticeLetsCallsWait: a person who was told can be waited for;
// without anyone a call does not wait.
func TestADeliveredNoticeLetsCallsWait(t *testing.T) {
	t.Parallel()
	silent := begin(t)
	in := create("nobody is there")
	in.WaitMS = 600_000
	silent.want(gate.Pending, in) // at once: the test would time out otherwise

	h := newHook(t)
	w := beginWith(t, "version = 1\n[[notify]]\nkind = \"webhook\"\nurl = \""+h.URL+"/x\"\n")
	w.want(gate.Pending, create("first")) // delivered from here on
	<-h.got
	// The receiver's answer may still be on its way to the gate; until it is
	// there, calls are answered at once.
	for {
		wait, id := w.submitAndWait(create("second"))
		w.approve(id)
		got := wait.get()
		if got.Verdict == gate.Allowed {
			break
		}
		if got.Verdict != gate.Pending {
			t.Fatalf("the call that waited: %s", got.Message)
		}
		w.done(w.want(gate.Allowed, create("second")))
	}
}
