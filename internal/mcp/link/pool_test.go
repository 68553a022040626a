package link_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// pooled makes a conversation over a pool of its own.
func pooled(t *testing.T, url string, header http.Header) *link.HTTP {
	t.Helper()
	transport := &http.Transport{}
	pool := link.NewPool(&http.Client{Transport: transport, CheckRedirect: link.NoRedirect})
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		pool.Sweep(time.Time{})
	})
	return link.NewHTTP(pool, url, func(context.Context) (http.Header, error) { return header, nil })
}

// said is a link.Out that keeps the last message.
type said struct {
	status int
	text   string
}

func (s *said) Head(status int, _ bool) { s.status = status }
func (s *said) Event(e wire.Event) error {
	s.text = string(e.Data)
	return nil
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// listen plays an upstream by hand: play gets each connection with its number.
func listen(t *testing.T, play func(n int32, c net.Conn, in *bufio.Reader)) (url string, dialled *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var plays sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		plays.Wait()
	})
	dialled = new(atomic.Int32)
	plays.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := dialled.Add(1)
			plays.Go(func() {
				defer c.Close()
				play(n, c, bufio.NewReader(c))
			})
		}
	})
	return "http://" + l.Addr().String() + "/mcp", dialled
}

// request reads one request, nil at the end.
func request(in *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return r
}

func answer(c io.Writer, text string) {
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// TestPoolReuses: one connection carries message after message, in all ways in which an answer can end.
func TestPoolReuses(t *testing.T) {
	t.Parallel()
	var remotes []string
	ways := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":1}`) },
		func(w http.ResponseWriter) {
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,`)
			w.(http.Flusher).Flush()
			io.WriteString(w, `"result":2}`)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}\n\n")
		},
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":4}`)
		},
	}
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != ping || r.ContentLength != int64(len(ping)) || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("the upstream got %q with %v", body, r.Header)
		}
		remotes = append(remotes, r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		ways[n](w)
		n++
	}))
	defer s.Close()
	h := pooled(t, s.URL+"/mcp", http.Header{"Authorization": {"Bearer x"}})
	for i := range ways {
		var out said
		if err := h.Send(t.Context(), message(t, ping), nil, &out); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%d}`, i+1); out.text != want {
			t.Errorf("got %q, want %q", out.text, want)
		}
	}
	for _, r := range remotes {
		if r != remotes[0] {
			t.Errorf("the messages came from %v", remotes)
		}
	}
}

// TestPoolNoticesClosed: a connection that the upstream closed while nobody used it is not written to, and nothing is
// sent twice.
func TestPoolNoticesClosed(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	closed := make(chan struct{}, 8)
	url, dialled := listen(t, func(_ int32, c net.Conn, in *bufio.Reader) {
		if request(in) != nil {
			got.Add(1)
			answer(c, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		c.Close()
		closed <- struct{}{}
	})
	h := pooled(t, url, nil)
	for range 3 {
		if err := h.Send(t.Context(), message(t, ping), nil, &said{}); err != nil {
			t.Fatal(err)
		}
		<-closed
	}
	if got.Load() != 3 || dialled.Load() != 3 {
		t.Errorf("%d messages arrived over %d connections", got.Load(), dialled.Load())
	}
}

// TestPoolSendsOnce: an upstream that takes a message and then closes has perhaps done what it was asked, so that the
// message is not sent again.
func TestPoolSendsOnce(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	url, _ := listen(t, func(_ int32, c net.Conn, in *bufio.Reader) {
		if request(in) != nil {
			answer(c, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		if request(in) != nil {
			got.Add(1)
		}
	})
	h := pooled(t, url, nil)
	if err := h.Send(t.Context(), message(t, ping), nil, &said{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Send(t.Context(), message(t, ping), nil, &said{}); err == nil || got.Load() != 1 {
		t.Errorf("the message was sent %d times, error %v", got.Load(), err)
	}
}

// TestPoolTakesNoOtherAnswer: what an upstream sends after its answer, before it is asked again, is not the answer to
// the next message, which may be another agent's.
func TestPoolTakesNoOtherAnswer(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	url, _ := listen(t, func(n int32, c net.Conn, in *bufio.Reader) {
		for request(in) != nil {
			answer(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":"of connection %d"}`, n))
			if n == 1 {
				<-sent
				answer(c, `{"jsonrpc":"2.0","id":1,"result":"nobody asked for this"}`)
				sent <- struct{}{}
			}
		}
	})
	h := pooled(t, url, nil)
	var out said
	if err := h.Send(t.Context(), message(t, ping), nil, &out); err != nil || !strings.Contains(out.text, "of connection 1") {
		t.Fatal(out.text, err)
	}
	sent <- struct{}{}
	<-sent
	if err := h.Send(t.Context(), message(t, ping), nil, &out); err != nil || !strings.Contains(out.text, "of connection 2") {
		t.Errorf("the answer is %s, error %v", out.text, err)
	}
}

// TestPoolCancels: when the caller goes, the upstream sees it, before the answer begins and within it.
func TestPoolCancels(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		there, gone := make(chan struct{}), make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
			}
			close(there)
			<-r.Context().Done()
			close(gone)
		}))
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the client has gone")
		go func() {
			<-there
			cancel(why)
		}()
		err := pooled(t, s.URL, nil).Send(ctx, message(t, ping), nil, &said{})
		if err == nil {
			t.Errorf("begun %v: no error", begun)
		}
		<-gone
		s.Close()
	}
}

// TestPoolHeaders: a value that would end its header is not sent, nor one that says where the message ends; nothing
// arrives.
func TestPoolHeaders(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	url, _ := listen(t, func(_ int32, c net.Conn, in *bufio.Reader) {
		for r := request(in); r != nil; r = request(in) {
			got.Store(r)
			answer(c, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
	})
	for _, bad := range []http.Header{
		{"Authorization": {"Bearer x\r\nX-Other: y"}}, {"Authorization": {"Bearer x\ny"}}, {"A: b\r\nC": {"d"}}, {"A b": {"c"}}, {"": {"c"}},
	} {
		if err := pooled(t, url, bad).Send(t.Context(), message(t, ping), nil, &said{}); err == nil || got.Load() != nil {
			t.Errorf("%q was sent: %v", bad, err)
		}
	}
	framing := http.Header{"Content-Length": {"1"}, "Transfer-Encoding": {"chunked"}, "host": {"other"}, "X-Mine": {"kept"}}
	if err := pooled(t, url, framing).Send(t.Context(), message(t, ping), nil, &said{}); err != nil {
		t.Fatal(err)
	}
	if r := got.Load(); r.Header.Get("X-Mine") != "kept" || r.ContentLength != int64(len(ping)) || len(r.TransferEncoding) > 0 || r.Host == "other" {
		t.Errorf("the upstream got %v for %s", r.Header, r.Host)
	}
}

// TestPoolRefuses: answers that lead elsewhere, never end their headers or are none.
func TestPoolRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a redirect":        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
		"another protocol":  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
		"endless headers":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 2000),
		"no HTTP":           "SSH-2.0-OpenSSH\r\n\r\n",
		"nothing":           "",
		"half an answer":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"a length too long": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
	} {
		url, _ := listen(t, func(_ int32, c net.Conn, in *bufio.Reader) {
			if request(in) != nil {
				io.WriteString(c, text)
			}
		})
		var out said
		if err := pooled(t, url, nil).Send(t.Context(), message(t, ping), nil, &out); err == nil || out.text != "" {
			t.Errorf("%s: got %q, error %v", name, out.text, err)
		}
	}
}
