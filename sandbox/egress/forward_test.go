package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// plain starts a proxy before one host, good.test, and returns its address.
func plain(t *testing.T, server string) *world {
	t.Helper()
	return start(t, egress.Config{}, []string{"good.test"}, nil, map[string][]string{"good.test": {"192.88.99.1"}}, server)
}

// TestPlainExchanges sends what clients send in the ways they send it, over one
// connection of the client.
func TestPlainExchanges(t *testing.T) {
	big := bytes.Repeat([]byte("gatehouse "), 300_000)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(r.Body)
			rw.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
			_, _ = rw.Write(body)
		case "/stated":
			rw.Header().Set("Content-Length", fmt.Sprint(len(big)))
			_, _ = rw.Write(big)
		case "/chunks":
			_, _ = rw.Write(big)
		case "/nothing":
			rw.WriteHeader(http.StatusNoContent)
		case "/hints":
			rw.Header().Set("Link", "</style.css>")
			rw.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(rw, "after the hints")
		}
	}))
	t.Cleanup(s.Close)
	w := plain(t, s.Listener.Addr().String())
	dials := 0
	tr := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	defer tr.CloseIdleConnections()
	for _, c := range []struct {
		name, method, path string
		body               io.Reader
		header, want       string // want is the status, the length stated, and the body's size
	}{
		{"stated length", "GET", "/stated", nil, "", "200 3000000 3000000"},
		{"chunks", "GET", "/chunks", nil, "", "200 -1 3000000"},
		{"head", "HEAD", "/stated", nil, "", "200 3000000 0"},
		{"no content", "GET", "/nothing", nil, "", "204 0 0"},
		{"sent, stated", "POST", "/echo", bytes.NewReader(big), "", "200 -1 3000000"},
		{"sent in chunks", "POST", "/echo", struct{ io.Reader }{bytes.NewReader(big)}, "", "200 -1 3000000"},
		{"sent when told to", "POST", "/echo", strings.NewReader("waits"), "100-continue", "200 5 5"},
		{"nothing sent", "POST", "/echo", nil, "", "200 0 0"},
		{"hints first", "GET", "/hints", nil, "", "200 15 15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, "http://good.test"+c.path, c.body)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				req.Header.Set("Expect", c.header)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, fmt.Sprint(resp.StatusCode, resp.ContentLength, len(body))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if dials != 1 {
		t.Errorf("the client needed %d connections", dials)
	}
}

// A server refuses an upload before it has read it, and does not read on.
func TestAnswerBeforeTheBodyIsSent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, "too large", http.StatusRequestEntityTooLarge)
	}))
	t.Cleanup(s.Close)
	w := plain(t, s.Listener.Addr().String())
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST http://good.test/ HTTP/1.1\r\nHost: good.test\r\nContent-Length: 1000000000\r\n\r\nonly the beginning")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "too large\n" || err != nil {
		t.Errorf("%d %q %v", resp.StatusCode, body, err)
	}
}

// After an upgrade the bytes flow both ways, those that came early included.
func TestUpgrade(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil || req.Header.Get("Upgrade") != "echo" || req.Header.Get("Connection") != "Upgrade" {
			return
		}
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello, ")
		_, _ = io.Copy(c, br)
	}()
	w := plain(t, l.Addr().String())
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nearly ")
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	fmt.Fprint(c, "and late")
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(br)
	if diff := cmp.Diff("hello, early and late", string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A request that two readers could cut at different places must not smuggle a
// second one past the check of names.
func TestAttack41Smuggling(t *testing.T) {
	const second = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	for name, head := range map[string]string{
		"two lengths":         "Content-Length: 0\r\nContent-Length: 51\r\n",
		"a length and chunks": "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
		"a signed length":     "Content-Length: +51\r\n",
		"a folded length":     "Content-Length:\r\n  51\r\n",
		"two codings":         "Transfer-Encoding: chunked, identity\r\n",
		"a spaced name":       "Content-Length : 51\r\n",
		"two hosts":           "Host: evil.test\r\n",
		"a length in vain":    "Connection: Content-Length\r\nContent-Length: 51\r\n",
		"an upgrade in vain":  "Upgrade: x\r\nContent-Length: 51\r\n",
		"a body cut short":    "Content-Length: 52\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var heard bytes.Buffer
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					br := bufio.NewReader(io.TeeReader(c, &heard))
					if req, err := http.ReadRequest(br); err == nil {
						_, _ = io.Copy(io.Discard, req.Body)
						fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n")
					}
					_, _ = io.Copy(io.Discard, br)
					_ = c.Close()
				}
			}()
			w := plain(t, l.Addr().String())
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, "POST http://good.test/ HTTP/1.1\r\nHost: good.test\r\n"+head+"\r\n"+second)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
			_ = l.Close()
			<-done
			// As the body of a request that says so it may be said; as a request it
			// may not.
			br := bufio.NewReader(&heard)
			for {
				req, err := http.ReadRequest(br)
				if err != nil {
					break
				}
				if req.Host != "good.test" {
					t.Errorf("a request for %s arrived", req.Host)
				}
				_, _ = io.Copy(io.Discard, req.Body)
			}
		})
	}
}
