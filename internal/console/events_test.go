package console_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
)

// listen opens a stream and returns its events, each as "name data".
func listen(t *testing.T, cl *client, view string) (events <-chan string, stop func()) {
	t.Helper()
	srv := httptest.NewServer(cl.c)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/events?view="+view, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.AddCookie(&http.Cookie{Name: "gatehouse-7878", Value: cl.cookie})
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	ch := make(chan string, 100)
	go func() {
		defer close(ch)
		defer res.Body.Close()
		name := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if s, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = s
			}
			if s, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				ch <- name + " " + s
			}
		}
	}()
	return ch, func() {
		cancel()
		for range ch {
		}
		srv.Close()
	}
}

// hear waits for an event that holds a text.
func hear(t *testing.T, events <-chan string, want string) string {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("the stream ended before %q", want)
			}
			if strings.Contains(e, want) {
				return e
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("never heard %q", want)
		}
	}
}

func TestStreamOfTheInbox(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	events, stop := listen(t, cl, "inbox")
	defer stop()
	hear(t, events, `status {"broken":false,"codes":"","kill":false,"pending":4,"staged":false}`)
	hear(t, events, `"ids":["r-7c21","r-7c22","r-7c23","r-7c24"]`)
	cl.add("r-9", `{"command":"make"}`)
	hear(t, events, `"pending":5`)
	e := hear(t, events, `"ids":["r-7c21","r-7c22","r-7c23","r-7c24","r-9"]`)
	if strings.Count(e, `"html"`) != 1 || !strings.Contains(e, `inbox-approve-once`) {
		t.Errorf("more than the new card is sent: %s", e)
	}
	cl.desk.change(func() { cl.desk.requests[0].State = "expired" })
	hear(t, events, `"ids":["r-7c22","r-7c23","r-7c24","r-9"]`)
}

func TestStreamOfARequest(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	events, stop := listen(t, cl, "request&id=r-7c21")
	defer stop()
	hear(t, events, `request {"state":"pending","text":""}`)
	cl.desk.change(func() { cl.desk.requests[0].State = "expired" })
	hear(t, events, `request {"state":"expired","text":"Expired."}`)
}

func TestStreamOfTheFeed(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	events, stop := listen(t, cl, "live")
	defer stop()
	hear(t, events, `"id":"c-013"`)
	cl.desk.change(func() { cl.desk.record(14) })
	if e := hear(t, events, `"id":"c-014"`); strings.Contains(e, "c-013") {
		t.Errorf("rows that did not change are sent again: %s", e)
	}
}

func TestStreamCountsAsPresent(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	_, stop := listen(t, cl, "")
	if cl.desk.openPages() != 1 {
		t.Error("an open page is not counted")
	}
	stop()
	for end := time.Now().Add(10 * time.Second); cl.desk.openPages() != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed page is still counted")
		}
	}
}

func TestStreamEndsWithTheSignIn(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	events, stop := listen(t, cl, "inbox")
	defer stop()
	hear(t, events, "status")
	if err := cl.desk.SignOut(t.Context(), cl.cookie); err != nil {
		t.Fatal(err)
	}
	cl.add("r-secret", `{"command":"after"}`)
	hear(t, events, "signedout {}")
	for e := range events {
		t.Errorf("after signing out: %s", e)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	events, stop := listen(t, cl, "")
	defer stop()
	hear(t, events, "status")
	cl.c.(*console.Console).Close()
	cl.c.(*console.Console).Close() // twice does no harm
	for range events {
	}
}
