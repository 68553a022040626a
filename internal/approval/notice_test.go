package approval_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
)

// receiver is a real HTTP server that answers with the given codes, the last
// one for ever, and keeps what it got.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	codes []int
	paths []string
	heads []http.Header
	got   []map[string]any
}

func newReceiver(t *testing.T, codes ...int) *receiver {
	t.Helper()
	r := &receiver{codes: codes}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		var payload map[string]any
		if err := json.Unmarshal(body, &payload); err != nil {
			t.Errorf("not JSON: %s", body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths, r.heads, r.got = append(r.paths, req.URL.Path), append(r.heads, req.Header), append(r.got, payload)
		code := r.codes[0]
		if len(r.codes) > 1 {
			r.codes = r.codes[1:]
		}
		if code/100 == 3 {
			w.Header().Set("Location", r.URL+"/elsewhere")
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) received() ([]string, []map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths, r.got
}

func (r *receiver) webhook(t *testing.T, format approval.Format, path string) *approval.Webhook {
	t.Helper()
	w, err := approval.NewWebhook(approval.WebhookOptions{
		Name: string(format), URL: r.URL + path, Format: format, Header: http.Header{"Authorization": {"Bearer hook"}},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func notice() approval.Notice {
	return approval.Notice{Request: "r_1", Operation: "write_file", Agent: "claude", Summary: "write src/a.go",
		Link: "http://127.0.0.1:7878/requests/r_1", Expires: time.Now().Add(15 * time.Minute)}
}

// running runs a notifier as long as the test.
func running(t *testing.T, opts approval.NotifierOptions) *approval.Notifier {
	t.Helper()
	opts.Backoff = time.Millisecond
	n := approval.NewNotifier(opts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

func waited(t *testing.T, d *approval.Delivery) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ok := d.Wait(ctx)
	if ctx.Err() != nil {
		t.Error("the delivery has no end")
	}
	return ok
}

func TestWebhookFormats(t *testing.T) {
	t.Parallel()
	n := notice()
	n.Summary = "<!channel> *bold* \u202e\u200b" + strings.Repeat("x", 1000) + "\nsecond line"
	for format, path := range map[approval.Format]string{approval.Generic: "/hook", approval.Slack: "/services/T/B/secret", approval.Ntfy: "/sub/topic"} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, 200)
			nr := running(t, approval.NotifierOptions{Senders: []approval.Sender{r.webhook(t, format, path)}})
			if !waited(t, nr.Notify(n)) {
				t.Fatalf("not delivered: %+v", nr.Status())
			}
			paths, got := r.received()
			if r.heads[0].Get("Authorization") != "Bearer hook" {
				t.Error("the operator's header is missing")
			}
			text, err := json.Marshal(got[0], json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"write_file", "claude", n.Link} {
				if !strings.Contains(string(text), want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
			if strings.ContainsAny(string(text), "\u202e\u200b") || strings.Contains(string(text), "second line") || len(text) > 2000 {
				t.Errorf("an agent's words were passed on as they are: %s", text)
			}
			switch format {
			case approval.Generic:
				if got[0]["event"] != "approval.requested" || got[0]["request"] != "r_1" || got[0]["expires"] == nil {
					t.Errorf("got %s", text)
				}
			case approval.Slack:
				for _, b := range got[0]["blocks"].([]any) {
					section, ok := b.(map[string]any)["text"].(map[string]any)
					if ok && section["type"] != "plain_text" {
						t.Errorf("an agent's words are markup: %v", section)
					}
				}
				if strings.Contains(got[0]["text"].(string), "<!") {
					t.Errorf("an agent calls the channel: %v", got[0]["text"])
				}
			case approval.Ntfy:
				if paths[0] != "/sub/" || got[0]["topic"] != "topic" || got[0]["click"] != n.Link {
					t.Errorf("posted to %s: %s", paths[0], text)
				}
			}
		})
	}
}

func TestDeliveryIsTriedAgainWhereThatHelps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		codes []int
		tries int
		ok    bool
	}{
		{"at once", []int{204}, 1, true},
		{"after two failures", []int{503, 429, 200}, 3, true},
		{"never", []int{500}, 4, false},
		{"refused for good", []int{403}, 1, false},
		{"sent elsewhere", []int{302}, 1, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, test.codes...)
			channels := approval.NewChannels()
			n := running(t, approval.NotifierOptions{Senders: []approval.Sender{r.webhook(t, approval.Generic, "/")}, Channels: channels})
			if got := waited(t, n.Notify(notice())); got != test.ok {
				t.Errorf("delivered %v, want %v", got, test.ok)
			}
			if paths, _ := r.received(); len(paths) != test.tries {
				t.Errorf("%d tries, want %d", len(paths), test.tries)
			}
			if channels.Live() != test.ok || channels.LiveFor("r_1") != test.ok || channels.LiveFor("r_2") {
				t.Errorf("live %v, want %v", channels.Live(), test.ok)
			}
		})
	}
}

// TestErrorsKeepTheWebhooksURL: a Slack URL is a secret, and reports are read
// by many.
func TestErrorsKeepTheWebhooksURL(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	w := r.webhook(t, approval.Slack, "/services/T0/secret")
	r.Close()
	err := w.Send(t.Context(), notice())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	for _, bad := range []approval.WebhookOptions{{URL: "ftp://x/secret"}, {URL: "://secret"}, {URL: "http://x/secret", Format: "telex"}, {URL: "http://x", Format: approval.Ntfy}} {
		if _, err := approval.NewWebhook(bad); !errors.Is(err, approval.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}

// stuck is a sender that waits for a word.
type stuck struct{ release chan struct{} }

func (s *stuck) Name() string     { return "stuck" }
func (s *stuck) Reachable() error { return nil }
func (s *stuck) Send(ctx context.Context, _ approval.Notice) error {
	select {
	case <-s.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestOneHangingChannelHoldsUpNoOther, and its queue is bounded.
func TestOneHangingChannelHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	s := &stuck{release: make(chan struct{})}
	n := running(t, approval.NotifierOptions{Senders: []approval.Sender{s, r.webhook(t, approval.Generic, "/")}, Queue: 4})
	for range 10 {
		if !waited(t, n.Notify(notice())) {
			t.Fatal("the working channel did not deliver")
		}
	}
	st := n.Status()
	if st[0].Dropped < 5 || st[1].Delivered != 10 || st[1].Dropped != 0 {
		t.Errorf("%+v", st)
	}
	close(s.release)
}

func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := &stuck{release: make(chan struct{})}
	n := approval.NewNotifier(approval.NotifierOptions{Senders: []approval.Sender{s}, Backoff: time.Millisecond})
	one, two := n.Notify(notice()), n.Notify(notice())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if waited(t, one) || waited(t, two) {
		t.Error("delivered after the end")
	}
	if none := approval.NewNotifier(approval.NotifierOptions{}); waited(t, none.Notify(notice())) {
		t.Error("delivered over no channel")
	}
}

func TestDesktopIsReachableOnlyInASession(t *testing.T) {
	t.Parallel()
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	bus := "unix:path=/nonexistent/bus"
	got := map[string]bool{
		"nothing":       approval.NewDesktop(env(nil)).Reachable() == nil,
		"display only":  approval.NewDesktop(env(map[string]string{"DISPLAY": ":0"})).Reachable() == nil,
		"bus only":      approval.NewDesktop(env(map[string]string{"DBUS_SESSION_BUS_ADDRESS": bus})).Reachable() == nil,
		"bus to launch": approval.NewDesktop(env(map[string]string{"DBUS_SESSION_BUS_ADDRESS": "autolaunch:", "DISPLAY": ":0"})).Reachable() == nil,
		"both":          approval.NewDesktop(env(map[string]string{"DBUS_SESSION_BUS_ADDRESS": bus, "WAYLAND_DISPLAY": "w"})).Reachable() == nil,
	}
	want := map[string]bool{"nothing": false, "display only": false, "bus only": false, "bus to launch": false, "both": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	channels := approval.NewChannels()
	n := running(t, approval.NotifierOptions{Senders: []approval.Sender{approval.NewDesktop(env(nil))}, Channels: channels})
	if waited(t, n.Notify(notice())) || channels.Live() || n.Status()[0].LastError != approval.ErrNoDesktop.Error() {
		t.Errorf("without a desktop: %+v", n.Status())
	}
}

func TestChannelsPresence(t *testing.T) {
	t.Parallel()
	c := approval.NewChannels()
	if c.Live() {
		t.Error("live from the start")
	}
	leaveConsole, leaveWatch := c.Join(approval.ConsoleOpen), c.Join(approval.WatchRunning)
	leaveConsole()
	leaveConsole() // leaving twice is leaving once
	if !c.Live() || !c.LiveFor("r_9") || c.Open(approval.ConsoleOpen) != 0 || c.Open(approval.WatchRunning) != 1 {
		t.Error("the watcher is not seen")
	}
	leaveWatch()
	if c.Live() {
		t.Error("live after everyone left")
	}
	c.Delivered("r_1", time.Now().Add(-time.Second))
	if c.Live() || c.LiveFor("r_1") {
		t.Error("live by the notice of a request that is over")
	}
}
