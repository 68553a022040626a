//go:build linux

package sandbox_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// rounds is how often each way is taken at least.
const rounds = 40

// timing is the first quarter of many rounds and their median. The quick ones
// say what something costs; the median also says what the machine was doing
// besides, because every hand-over between processes then waits for a processor,
// and the ways that are compared differ in how many they have.
type timing struct{ quarter, median time.Duration }

// interleaved times several ways of doing the same in turn, in small rounds, so
// that whatever else the machine does hits all of them alike.
func interleaved(b *testing.B, ways ...func() error) []timing {
	b.Helper()
	times := make([][]time.Duration, len(ways))
	for b.Loop() {
		for range rounds {
			for i, f := range ways {
				began := time.Now()
				if err := f(); err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	out := make([]timing, len(ways))
	for i, t := range times {
		slices.Sort(t)
		out[i] = timing{t[len(t)/4], t[len(t)/2]}
	}
	return out
}

func handmade() error {
	return exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try",
		"--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/usr/bin/true").Run()
}

// BenchmarkStart compares the full stack with bubblewrap started by hand with
// the same namespaces, and Landlock with seccomp with a bare /bin/true. The
// ratios are the figures that are promised: 2.2 and 6.
func BenchmarkStart(b *testing.B) {
	dir := work(b)
	stage2 := shippedLauncher(b)
	confined := func(backend sandbox.Backend) func() error {
		return func() error {
			r, err := sandbox.Run(b.Context(), sandbox.Spec{Command: []string{"/usr/bin/true"}, Dir: dir, Backend: backend, Launcher: stage2})
			if err == nil && r.ExitCode != 0 {
				b.Fatalf("%s", r.Stderr)
			}
			return err
		}
	}
	bare := func() error { return exec.Command("/usr/bin/true").Run() }
	m := interleaved(b, confined(sandbox.Bubblewrap), handmade, confined(sandbox.Landlock), bare)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for i, name := range []string{"full-ms", "bwrap-ms", "landlock-ms", "true-ms"} {
		b.ReportMetric(ms(m[i].quarter), name)
	}
	b.ReportMetric(ms(m[0].quarter)/ms(m[1].quarter), "full/bwrap")
	b.ReportMetric(ms(m[2].quarter)/ms(m[3].quarter), "landlock/true")
	b.ReportMetric(ms(m[0].median)/ms(m[1].median), "full/bwrap-median")
	b.ReportMetric(ms(m[2].median)/ms(m[3].median), "landlock/true-median")
	b.ReportMetric(0, "ns/op")
}

const bulk = 64 << 20

// BenchmarkEgress compares downloads through the proxy with direct ones on
// loopback: bare bytes, and TLS as nearly all real traffic is. The ratio that
// is promised is 0.7.
func BenchmarkEgress(b *testing.B) {
	chunk := make([]byte, 256<<10)
	pour := func(w io.Writer) {
		for range bulk / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				pour(c)
			}()
		}
	}()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { pour(w) }))
	defer secure.Close()
	proxy := bulkProxy(b, map[uint16]string{9: l.Addr().String(), 443: secure.Listener.Addr().String()})
	buf := make([]byte, 256<<10)
	drain := func(c net.Conn) error {
		defer c.Close()
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, buf)
		return err
	}
	tunnel := func(port string) (net.Conn, error) {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			return nil, err
		}
		_, _ = io.WriteString(c, "CONNECT bulk.test:"+port+" HTTP/1.1\r\nHost: bulk.test:"+port+"\r\n\r\n")
		head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
		if _, err := io.ReadFull(c, head); err != nil || !strings.Contains(string(head), " 200 ") {
			return nil, fmt.Errorf("%q %v", head, err)
		}
		return c, nil
	}
	fetch := func(c net.Conn, err error) error {
		if err != nil {
			return err
		}
		t := tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "bulk.test"})
		if _, err := io.WriteString(t, "GET / HTTP/1.1\r\nHost: bulk.test\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		return drain(t)
	}
	m := interleaved(b,
		func() error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			return drain(c)
		},
		func() error {
			c, err := tunnel("9")
			if err != nil {
				return err
			}
			return drain(c)
		},
		func() error { return fetch(net.Dial("tcp", secure.Listener.Addr().String())) },
		func() error { return fetch(tunnel("443")) },
	)
	reportRates(b, m)
}

func reportRates(b *testing.B, m []timing) {
	rate := func(d time.Duration) float64 { return bulk / d.Seconds() / (1 << 20) }
	b.ReportMetric(rate(m[0].quarter), "bare-MiB/s")
	b.ReportMetric(rate(m[1].quarter)/rate(m[0].quarter), "bare-proxy/direct")
	b.ReportMetric(rate(m[1].median)/rate(m[0].median), "bare-proxy/direct-median")
	b.ReportMetric(rate(m[2].quarter), "tls-MiB/s")
	b.ReportMetric(rate(m[3].quarter)/rate(m[2].quarter), "tls-proxy/direct")
	b.ReportMetric(rate(m[3].median)/rate(m[2].median), "tls-proxy/direct-median")
	b.ReportMetric(0, "ns/op")
}

// bulkProxy serves one name whose ports lead to the given addresses.
func bulkProxy(b *testing.B, ports map[uint16]string) string {
	b.Helper()
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
			return d.DialContext(ctx, "tcp", ports[to.Port()])
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
	return l.Addr().String()
}
