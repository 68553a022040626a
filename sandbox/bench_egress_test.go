//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

const bulk = 64 << 20

// The ports of the one name the proxy lets through, and what is behind them.
const (
	sourcePort = 9   // sends bulk bytes to whoever connects
	sinkPort   = 10  // takes bulk bytes, then says one
	plainPort  = 80  // HTTP
	tlsPort    = 443 // HTTP over TLS
)

// bulkWorld is servers on loopback, and a proxy that leads to them.
type bulkWorld struct {
	proxy   string
	servers map[uint16]string
	buf     []byte
}

// BenchmarkEgress compares what goes through the proxy with what goes direct on
// loopback: bare bytes both ways and through both kinds of tunnel, plain
// requests, and TLS as nearly all real traffic is. The ratio that is promised is
// 0.7, of each.
func BenchmarkEgress(b *testing.B) {
	w := newBulkWorld(b)
	kinds := []struct {
		name          string
		direct, proxy func() error
	}{
		{"bare", w.download(w.dial), w.download(w.connect)},
		{"socks", w.download(w.dial), w.download(w.socks)},
		{"upload", w.upload(w.dial), w.upload(w.connect)},
		{"http", w.get(w.dial, "/"), w.get(w.dialProxy, "http://bulk.test/")},
		{"tls", w.getTLS(w.dial), w.getTLS(w.connect)},
	}
	var ways []func() error
	for _, k := range kinds {
		ways = append(ways, k.direct, k.proxy)
	}
	m := interleaved(b, ways...)
	rate := func(d time.Duration) float64 { return bulk / d.Seconds() / (1 << 20) }
	for i, k := range kinds {
		direct, proxy := m[2*i], m[2*i+1]
		b.ReportMetric(rate(proxy.quarter), k.name+"-MiB/s")
		b.ReportMetric(rate(proxy.quarter)/rate(direct.quarter), k.name+"-proxy/direct")
		b.ReportMetric(rate(proxy.median)/rate(direct.median), k.name+"-proxy/direct-median")
	}
	b.ReportMetric(0, "ns/op")
}

func newBulkWorld(b *testing.B) *bulkWorld {
	b.Helper()
	w := &bulkWorld{buf: make([]byte, 256<<10)}
	chunk := make([]byte, 256<<10)
	pour := func(to io.Writer) {
		for range bulk / len(chunk) {
			if _, err := to.Write(chunk); err != nil {
				return
			}
		}
	}
	page := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(bulk))
		pour(rw)
	})
	plain, secure := httptest.NewServer(page), httptest.NewTLSServer(page)
	b.Cleanup(plain.Close)
	b.Cleanup(secure.Close)
	taken := make([]byte, 256<<10)
	w.servers = map[uint16]string{
		sourcePort: serve(b, func(c net.Conn) { pour(c) }),
		sinkPort: serve(b, func(c net.Conn) {
			if swallow(c, bulk, taken) == nil {
				_, _ = c.Write([]byte{1})
			}
		}),
		plainPort: plain.Listener.Addr().String(),
		tlsPort:   secure.Listener.Addr().String(),
	}
	rules, err := egress.ParseRules([]string{"bulk.test:*"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	proxy, err := egress.New(egress.Config{
		Rules: rules,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.88.99.1")}, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", w.servers[to.Port()])
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = proxy.Serve(l) }()
	b.Cleanup(func() { _ = proxy.Close() })
	w.proxy = l.Addr().String()
	return w
}

// serve hands every connection to do, one after the other.
func serve(b *testing.B, do func(net.Conn)) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			do(c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// swallow reads exactly n bytes, as a program does: into its own memory.
func swallow(r io.Reader, n int64, buf []byte) error {
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(r, n), buf)
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// way opens a connection that ends at what is behind a port.
type way func(port uint16) (net.Conn, error)

func (w *bulkWorld) dial(port uint16) (net.Conn, error) { return net.Dial("tcp", w.servers[port]) }

func (w *bulkWorld) dialProxy(uint16) (net.Conn, error) { return net.Dial("tcp", w.proxy) }

func (w *bulkWorld) connect(port uint16) (net.Conn, error) {
	c, err := net.Dial("tcp", w.proxy)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT bulk.test:%d HTTP/1.1\r\nHost: bulk.test:%[1]d\r\n\r\n", port)
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(c, head); err != nil || !strings.Contains(string(head), " 200 ") {
		return nil, fmt.Errorf("%q %w", head, err)
	}
	return c, nil
}

func (w *bulkWorld) socks(port uint16) (net.Conn, error) {
	c, err := net.Dial("tcp", w.proxy)
	if err != nil {
		return nil, err
	}
	const name = "bulk.test"
	hello := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(name))}, name...)
	if _, err := c.Write(append(hello, byte(port>>8), byte(port))); err != nil {
		return nil, err
	}
	answer := make([]byte, 2+10)
	if _, err := io.ReadFull(c, answer); err != nil || answer[3] != 0 {
		return nil, fmt.Errorf("%v %w", answer, err)
	}
	return c, nil
}

func (w *bulkWorld) download(by way) func() error {
	return func() error {
		c, err := by(sourcePort)
		if err != nil {
			return err
		}
		defer c.Close()
		return swallow(c, bulk, w.buf)
	}
}

func (w *bulkWorld) upload(by way) func() error {
	return func() error {
		c, err := by(sinkPort)
		if err != nil {
			return err
		}
		defer c.Close()
		for range bulk / len(w.buf) {
			if _, err := c.Write(w.buf); err != nil {
				return err
			}
		}
		_, err = io.ReadFull(c, make([]byte, 1))
		return err
	}
}

func (w *bulkWorld) get(by way, target string) func() error {
	return func() error {
		c, err := by(plainPort)
		if err != nil {
			return err
		}
		return w.fetch(c, target)
	}
}

func (w *bulkWorld) getTLS(by way) func() error {
	return func() error {
		c, err := by(tlsPort)
		if err != nil {
			return err
		}
		return w.fetch(tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "bulk.test"}), "/")
	}
}

func (w *bulkWorld) fetch(c net.Conn, target string) error {
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: bulk.test\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	// What the reader took along with the head is the beginning of the body.
	br := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = br.ReadString('\n'); err != nil {
			return errors.Join(errors.New("no whole head"), err)
		}
	}
	early, err := br.Discard(br.Buffered())
	if err != nil {
		return err
	}
	return swallow(c, bulk-int64(early), w.buf)
}
