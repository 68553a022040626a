package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// way is one way to the same server.
type way struct {
	name   string
	url    string
	pid    int
	header map[string]string

	medians []time.Duration
	rates   []float64
	cpu     []float64 // seconds a call, one client
	cpuMany []float64 // with 64 clients
	cpuBig  []float64 // with 64 kB of arguments
}

// BenchmarkGateway measures a tools/call through the gate, with a policy and the
// durable log on, beside a bare byte proxy to the same server, in turns.
func BenchmarkGateway(b *testing.B) {
	floor, floorPID := start(b, "play-floor")
	proxy, proxyPID := start(b, "play-proxy", floor)
	policy := filepath.Join(b.TempDir(), "policy.toml")
	if err := os.WriteFile(policy, []byte(free), 0o600); err != nil {
		b.Fatal(err)
	}
	g := gatetest.Start(b, "--policy", policy)
	credential, key := g.Enrol("ann")
	token := g.Agent(credential, "bench")
	g.Must("upstream", "add", "floor", "--url", floor, "--credential-file", key)
	ways := []*way{
		{name: "direct", url: floor, pid: floorPID},
		{name: "proxy", url: proxy, pid: proxyPID},
		{name: "gate", url: g.URL + "/mcp/floor", pid: g.PID(), header: map[string]string{"Authorization": "Bearer " + token}},
	}
	small, big := `{"text":"hello"}`, `{"text":"`+strings.Repeat("the quick brown fox jumps over the lazy dog ", 1490)+`"}`
	for _, w := range ways {
		w.load(b, 1, 50, small) // warm up
	}
	var syncs []time.Duration
	for b.Loop() {
		syncs = append(syncs, syncTime(b, g.Home))
		for _, w := range ways {
			took, _, cpu := w.load(b, 1, 1500, small)
			w.medians, w.cpu = append(w.medians, median(took)), append(w.cpu, cpu)
		}
		for _, w := range ways {
			took, rate, cpu := w.load(b, 64, 100, small)
			w.rates, w.cpuMany = append(w.rates, rate), append(w.cpuMany, cpu)
			_ = took
		}
		for _, w := range ways {
			_, _, cpu := w.load(b, 1, 200, big)
			w.cpuBig = append(w.cpuBig, cpu)
		}
	}
	direct := mid(ways[0].medians)
	for _, w := range ways[1:] {
		b.ReportMetric(float64((mid(w.medians) - direct).Microseconds()), w.name+"-added-µs")
		b.ReportMetric(mid(w.cpu)*1e6, w.name+"-cpu-µs")
		b.ReportMetric(mid(w.cpuMany)*1e6, w.name+"-64-cpu-µs")
		b.ReportMetric(mid(w.rates), w.name+"-calls/s")
		b.ReportMetric(mid(w.cpuBig)*1e6, w.name+"-64kB-cpu-µs")
	}
	b.ReportMetric(float64(direct.Microseconds()), "direct-µs")
	b.ReportMetric(float64(mid(syncs).Microseconds()), "sync-µs")
	b.ReportMetric(0, "ns/op")
}

// syncTime measures what no gate that answers only for what is durable can do
// without: one block written over another and synced, where it keeps its own.
func syncTime(b *testing.B, dir string) time.Duration {
	b.Helper()
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block, took := make([]byte, 4<<10), make([]time.Duration, 0, 200)
	for i := range 201 {
		at := time.Now()
		_, err := f.WriteAt(block, 0)
		if err = errors.Join(err, dataSync(f)); err != nil {
			b.Fatal(err)
		}
		if i > 0 { // the first makes the file longer
			took = append(took, time.Since(at))
		}
	}
	return median(took)
}

// start starts this program in another role and returns its address.
func start(b *testing.B, role ...string) (url string, pid int) {
	b.Helper()
	cmd := exec.Command(os.Args[0], role...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it has no other end
		_ = cmd.Wait()
	})
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url), cmd.Process.Pid
}

// load makes calls, each client its own session and connection, one call at a
// time.
func (w *way) load(b *testing.B, clients, calls int, args string) (took []time.Duration, rate, cpu float64) {
	b.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	sessions := make([]*http.Client, clients)
	headers := make([]http.Header, clients)
	for i := range sessions {
		sessions[i] = &http.Client{Transport: &http.Transport{}}
		headers[i] = w.begin(b, sessions[i])
		w.call(b, sessions[i], headers[i], toolCall("1", "echo", args))
	}
	before, began := cpuTime(b, w.pid), time.Now()
	for i, c := range sessions {
		all.Go(func() {
			mine := make([]time.Duration, 0, calls)
			for n := range calls {
				at := time.Now()
				w.call(b, c, headers[i], toolCall(strconv.Itoa(n), "echo", args))
				mine = append(mine, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	all.Wait()
	seconds := time.Since(began).Seconds()
	// What the gate still has to record after its last answer is its work too.
	if w.name == "gate" {
		time.Sleep(50 * time.Millisecond)
	}
	n := float64(clients * calls)
	rate, cpu = n/seconds, (cpuTime(b, w.pid)-before)/n
	for _, c := range sessions {
		c.CloseIdleConnections()
	}
	return took, rate, cpu
}

func (w *way) begin(b *testing.B, c *http.Client) http.Header {
	b.Helper()
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for k, v := range w.header {
		h.Set(k, v)
	}
	resp := w.call(b, c, h, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	h.Set("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
	w.call(b, c, h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

func (w *way) call(b *testing.B, c *http.Client, h http.Header, body string) *http.Response {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return nil
	}
	req.Header = h
	resp, err := c.Do(req)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 || strings.Contains(body, "tools/call") && !strings.Contains(string(text), `"hello"`) {
		b.Errorf("%s: %s %s %v", w.name, resp.Status, text, err)
	}
	return resp
}

// cpuTime reads how much processor time a process has used, in seconds.
func cpuTime(b *testing.B, pid int) float64 {
	b.Helper()
	total := 0.0
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		b.Skip("the system does not say how much processor time a process used")
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		if v, err := strconv.ParseFloat(ns, 64); err == nil {
			total += v / 1e9
		}
	}
	return total
}

func median(list []time.Duration) time.Duration { return mid(list) }

func mid[T time.Duration | float64](list []T) T {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}
