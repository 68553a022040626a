package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a proxy whose names all resolve as the test says and whose dials all
// end at one server.
type world struct {
	addr    string
	names   map[string][]string
	lookups []string
	dialled []netip.AddrPort
	facts   []egress.Decision
	mu      sync.Mutex
}

func start(t *testing.T, cfg egress.Config, allow, deny []string, names map[string][]string, server string) *world {
	t.Helper()
	w := &world{names: names}
	rules, err := egress.ParseRules(allow, deny)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Rules = rules
	cfg.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookups = append(w.lookups, name)
		var out []netip.Addr
		for _, a := range w.names[name] {
			out = append(out, netip.MustParseAddr(a))
		}
		if out == nil {
			return nil, errors.New("no such host")
		}
		return out, nil
	}
	cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, to)
		w.mu.Unlock()
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server)
	}
	cfg.OnDecision = func(d egress.Decision) {
		w.mu.Lock()
		w.facts = append(w.facts, d)
		w.mu.Unlock()
	}
	p, err := egress.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	t.Cleanup(func() {
		_ = p.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprintf(rw, "%s %s", r.Host, r.URL.Path) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func (w *world) connect(t *testing.T, host string) (net.Conn, *bufio.Reader, string) {
	t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
	br := bufio.NewReader(c)
	line, err := br.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, " 200 ") {
		_, _ = br.ReadString('\n')
	}
	return c, br, strings.Fields(line)[1]
}

func TestDecisions(t *testing.T) {
	allow := []string{"good.test", "*.wild.test:443", "priv.test", "10.1.0.0/16:443", "169.254.0.0/16:443", "localhost:443", "mixed.test", "gate.test:9000", "127.0.0.1:9000", "six.test"}
	deny := []string{"bad.wild.test", "198.41.0.0/16"}
	names := map[string][]string{
		"good.test": {"192.88.99.1"}, "a.wild.test": {"192.88.99.2"}, "a.b.wild.test": {"192.88.99.2"}, "priv.test": {"192.168.1.1"},
		"mixed.test": {"127.0.0.1", "192.88.99.3"}, "localhost": {"127.0.0.1"}, "gate.test": {"192.88.99.9"}, "six.test": {"::ffff:10.0.0.1"},
		"wild.test": {"192.88.99.2"}, "evil.test": {"192.88.99.4"}, "bad.wild.test": {"192.88.99.5"},
	}
	for _, c := range []struct {
		target, want string
		addr         string
		lookup       bool
	}{
		{"good.test:443", "200", "192.88.99.1:443", true},
		{"GOOD.TEST.:443", "200", "192.88.99.1:443", true},
		{"good.test:80", "200", "192.88.99.1:80", true},
		{"good.test:22", "403", "", false},
		{"a.wild.test:443", "200", "192.88.99.2:443", true},
		{"a.b.wild.test:443", "200", "192.88.99.2:443", true},
		{"wild.test:443", "403", "", false},
		{"bad.wild.test:443", "403", "", false},
		{"evil.test:443", "403", "", false},
		{"good.test.evil.test:443", "403", "", false},
		{"priv.test:443", "403", "", true},
		{"six.test:443", "403", "", true},
		{"mixed.test:443", "200", "192.88.99.3:443", true},
		{"localhost:443", "200", "127.0.0.1:443", true},
		{"127.0.0.1:443", "403", "", false},
		{"10.1.2.3:443", "200", "10.1.2.3:443", false},
		{"[::ffff:10.1.2.3]:443", "200", "10.1.2.3:443", false},
		{"10.2.2.3:443", "403", "", false},
		{"169.254.169.254:443", "403", "", false},
		{"[::ffff:169.254.169.254]:443", "403", "", false},
		{"[64:ff9b::a9fe:a9fe]:443", "403", "", false},
		{"2130706433:443", "403", "", false},
		{"0x7f000001:443", "403", "", false},
		{"127.1:443", "403", "", false},
		{"gate.test:9000", "403", "", false},
		{"127.0.0.1:9000", "403", "", false},
		{"bad host:443", "400", "", false},
		{"good.test", "403", "", false},
	} {
		t.Run(c.target, func(t *testing.T) {
			w := start(t, egress.Config{Refuse: []string{"0.0.0.0:9000", "gate.test:9000"}}, allow, deny, names, echo(t))
			_, _, got := w.connect(t, c.target)
			var dialled string
			if len(w.dialled) > 0 {
				dialled = w.dialled[0].String()
			}
			if diff := cmp.Diff([]any{c.want, c.addr, c.lookup}, []any{got, dialled, len(w.lookups) > 0}); diff != "" {
				t.Error(diff)
			}
			if len(w.lookups) > 1 {
				t.Errorf("looked up %v", w.lookups)
			}
		})
	}
}

func TestPublicMode(t *testing.T) {
	names := map[string][]string{"any.test": {"192.88.99.1"}, "inner.test": {"10.0.0.1"}, "no.test": {"192.88.99.2"}}
	w := start(t, egress.Config{Public: true}, nil, []string{"no.test"}, names, echo(t))
	got := map[string]string{}
	for _, h := range []string{"any.test:22", "inner.test:443", "no.test:443", "192.88.99.7:443", "127.0.0.1:443", "169.254.169.254:80"} {
		_, _, got[h] = w.connect(t, h)
	}
	want := map[string]string{
		"any.test:22": "200", "inner.test:443": "403", "no.test:443": "403", "192.88.99.7:443": "200", "127.0.0.1:443": "403", "169.254.169.254:80": "403",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlainRequests(t *testing.T) {
	w := start(t, egress.Config{}, []string{"good.test"}, nil, map[string][]string{"good.test": {"192.88.99.1"}}, echo(t))
	proxy := &url.URL{Scheme: "http", Host: w.addr}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy)}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	for _, c := range []struct{ url, want string }{{"http://good.test/a", "good.test /a"}, {"http://good.test/b", "good.test /b"}, {"http://evil.test/", "gatehouse: evil.test: not declared\n"}} {
		resp, err := client.Get(c.url)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if diff := cmp.Diff(c.want, string(b)); diff != "" {
			t.Errorf("%s: %s", c.url, diff)
		}
	}
}

func TestAttack41HostHeaderMustAgree(t *testing.T) {
	w := start(t, egress.Config{}, []string{"good.test"}, nil, map[string][]string{"good.test": {"192.88.99.1"}}, echo(t))
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
	line, _ := bufio.NewReader(c).ReadString('\n')
	if !strings.Contains(line, "403") || len(w.dialled) != 0 {
		t.Errorf("%q, dialled %v", line, w.dialled)
	}
}

// A second request on the same tunnel names another host.
func TestAttack41RequestsInATunnelMustAgree(t *testing.T) {
	w := start(t, egress.Config{}, []string{"good.test"}, nil, map[string][]string{"good.test": {"192.88.99.1"}}, echo(t))
	c, br, code := w.connect(t, "good.test:80")
	if code != "200" {
		t.Fatal(code)
	}
	fmt.Fprint(c, "GET /one HTTP/1.1\r\nHost: good.test\r\n\r\n")
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if diff := cmp.Diff("good.test:80 /one", string(body)); diff != "" {
		t.Error(diff)
	}
	fmt.Fprint(c, "GET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n")
	resp, err = http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 403 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestAttack41ServerNameMustAgree(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "secure") }))
	t.Cleanup(s.Close)
	names := map[string][]string{"good.test": {"192.88.99.1"}}
	for name, c := range map[string]struct {
		sni  string
		fine bool
	}{"same": {"good.test", true}, "other": {"evil.test", false}} {
		t.Run(name, func(t *testing.T) {
			w := start(t, egress.Config{}, []string{"good.test"}, nil, names, s.Listener.Addr().String())
			conn, _, code := w.connect(t, "good.test:443")
			if code != "200" {
				t.Fatal(code)
			}
			tc := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: c.sni})
			if err := tc.Handshake(); (err == nil) != c.fine {
				t.Errorf("handshake: %v", err)
			}
		})
	}
}

func TestSocks(t *testing.T) {
	w := start(t, egress.Config{}, []string{"good.test:80"}, nil, map[string][]string{"good.test": {"192.88.99.1"}}, echo(t))
	ask := func(command byte, host string) byte {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte{5, 1, 0})
		b := make([]byte, 10)
		_, _ = io.ReadFull(c, b[:2])
		_, _ = c.Write(append(append([]byte{5, command, 0, 3, byte(len(host))}, host...), 0, 80))
		_, _ = io.ReadFull(c, b)
		return b[1]
	}
	got := []byte{ask(1, "good.test"), ask(1, "evil.test"), ask(2, "good.test"), ask(3, "good.test")}
	if !bytes.Equal(got, []byte{0, 2, 7, 7}) {
		t.Errorf("%v", got)
	}
}

func TestAttack41AskingIsBounded(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	cfg := egress.Config{Command: "npm install", Ask: func(_ context.Context, r egress.Request) egress.Answer {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Host+":"+strconv.Itoa(int(r.Port))+" by "+r.Command)
		switch r.Host {
		case "once.test":
			return egress.AllowOnce
		case "always.test":
			return egress.AllowSession
		}
		return egress.Refuse
	}}
	names := map[string][]string{"once.test": {"192.88.99.1"}, "always.test": {"192.88.99.1"}, "priv.test": {"10.0.0.1"}, "never.test": {"192.88.99.1"}}
	w := start(t, cfg, nil, nil, names, echo(t))
	var got []string
	for _, h := range []string{"always.test:443", "always.test:443", "once.test:443", "once.test:443", "never.test:443", "always.test:443"} {
		_, _, code := w.connect(t, h)
		got = append(got, code)
	}
	// The fourth is the third question and is answered yes again; the fifth
	// would be the fourth question and is refused unasked.
	if diff := cmp.Diff([]string{"200", "200", "200", "200", "403", "200"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"always.test:443 by npm install", "once.test:443 by npm install", "once.test:443 by npm install"}, asked); diff != "" {
		t.Error(diff)
	}
}
