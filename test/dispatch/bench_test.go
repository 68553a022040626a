package dispatch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

const million = 1_000_000

// decision is the i-th of a million: five CLIs, three agents, two statuses,
// three policies and six scores in all their combinations but two, and ten of a
// CLI that is rare. Codex is never denied, and nothing strict ever scored 5.
func decision(i int) flight.Record {
	rec := flight.Record{Status: flight.Approved, CLI: []string{"claude", "codex", "gemini", "grok", "mistral"}[i%5], Operation: "request",
		Policy: []string{"strict", "balanced", "permissive"}[i/5%3], Score: i / 15 % 6, Reasons: []string{}, RequestedMCPServers: []string{"sqry"},
		CorrelationID: fmt.Sprintf("corr-%d", i/3), Principal: call.Principal{Agent: fmt.Sprintf("agent-%d", i/7%3), Session: "s"}}
	if i/11%4 == 0 && rec.CLI != "codex" {
		rec.Status = flight.Denied
	}
	if rec.Policy == "strict" && rec.Score == 5 {
		rec.Score = 0
	}
	if i%(million/10) == 77 {
		rec.CLI = "rare"
	}
	return rec
}

// millionHome is the home of a gate with a million decisions. It takes minutes
// to make, so it is kept among the temporary files.
func millionHome(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(os.TempDir(), "gatehouse-flights-"+schema(b))
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		b.Fatal(err)
	}
	keys, err := keyring.Load(filepath.Join(dir, "keys"), nil)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().Add(-20 * 24 * time.Hour)
	clock := func() time.Time { // a decision a second
		now = now.Add(time.Second)
		return now
	}
	s, err := store.Open(b.Context(), store.Options{Dir: dir, Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	redactor := content.NewRedactor(content.RedactorConfig{})
	r := flight.New(keys, func() *content.Redactor { return redactor })
	for from := 0; from < million; from += 5000 {
		err := s.Write(b.Context(), func(tx *store.Tx) error {
			for i := range 5000 {
				rec := decision(from + i)
				if err := r.Decided(tx, &rec, fmt.Sprintf("prompt %d", (from+i)%1000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(keys.Bind(b.Context(), s), os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)); err != nil {
		b.Fatal(err)
	}
	return dir
}

// schema names the migrations: a database made under others is not opened.
func schema(b *testing.B) string {
	b.Helper()
	files, err := filepath.Glob("../../internal/store/migrations/sqlite/*.sql")
	if err != nil || len(files) == 0 {
		b.Fatalf("no migrations: %v", err)
	}
	h := sha256.New()
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(f), len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// listCase is a filter, how many of the newest 50 it matches (-1: whatever), and
// whether it is one of those whose distance is promised.
type listCase struct {
	name  string
	args  map[string]any
	want  int
	named bool
}

// eachFilter is every filter alone and with every other one, with common values
// and with such that nothing has.
func eachFilter() (cases []listCase) {
	old := time.Now().Add(-18 * 24 * time.Hour)
	filters := [][]map[string]any{
		{{"cli": "claude"}, {"cli": "codex"}, {"cli": "none"}},
		{{"status": "approved"}, {"status": "denied"}, {"status": "asked"}},
		{{"policy": "strict"}, {"policy": "permissive"}},
		{{"minScore": 3}, {"minScore": 5, "maxScore": 5}, {"minScore": 9}},
		{{"promptSha256": flight.Hash("prompt 7")}, {"promptSha256": flight.Hash("never")}},
		{{"principal": "agent-1"}, {"principal": "nobody"}},
		{{"until": old.Format(time.RFC3339)}, {"since": time.Now().Add(time.Hour).Format(time.RFC3339)}},
	}
	for i, kind := range filters {
		for _, a := range kind {
			cases = append(cases, listCase{fmt.Sprint(a), maps.Clone(a), -1, false})
			for _, other := range filters[i+1:] {
				for _, b := range other {
					both := maps.Clone(a)
					maps.Copy(both, b)
					cases = append(cases, listCase{fmt.Sprint(both), both, -1, false})
				}
			}
		}
	}
	return cases
}

// BenchmarkApprovalList measures approval_list through the API, the newest 50
// of a million decisions, under filters that match all, ten and none, and how
// far they are apart; and how far the worst of all filters and all pairs of them
// is from all. Each is the quickest of many, in turns.
func BenchmarkApprovalList(b *testing.B) {
	g := gatetest.New(b)
	if err := os.CopyFS(g.Home, os.DirFS(millionHome(b))); err != nil {
		b.Fatal(err)
	}
	keys, err := filepath.Glob(filepath.Join(g.Home, "keys", "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys { // what is copied has lost its mode
		if err := os.Chmod(key, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(g.Home, "keys"), 0o700); err != nil {
		b.Fatal(err)
	}
	g.Up()
	credential, _ := g.Enrol("ann")
	// The gate is measured, not the client's reading of the answer.
	list := func(args map[string]any) (int, time.Duration) {
		raw, err := json.Marshal(args)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		resp, text := g.HTTP("POST", "/v1/operator/approval_list", credential, nil, &api.ToolRequest{Args: jsontext.Value(raw)})
		took := time.Since(start)
		if resp.StatusCode != http.StatusOK {
			b.Fatalf("%s: %s", resp.Status, text)
		}
		return bytes.Count(text, []byte(`"promptSha256"`)), took
	}
	cases := []listCase{
		{"all", map[string]any{}, 50, true},
		{"ten", map[string]any{"cli": "rare"}, 10, true},
		{"none", map[string]any{"cli": "none"}, 0, true},
		{"none by two common values", map[string]any{"cli": "codex", "status": "denied"}, 0, true},
		{"ten of one agent or none", map[string]any{"cli": "rare", "principal": "nobody"}, 0, true},
	}
	cases = append(cases, eachFilter()...)
	quickest := make([]time.Duration, len(cases))
	for round := range max(b.N, 51) {
		for i, c := range cases {
			c.args["limit"] = 50
			n, took := list(c.args)
			if c.want >= 0 && n != c.want {
				b.Fatalf("%s: %d rows, want %d", c.name, n, c.want)
			}
			if round == 0 || took < quickest[i] {
				quickest[i] = took
			}
		}
	}
	slow := slices.Max(quickest)
	for i, c := range cases {
		if c.named || 2*quickest[i] > slow {
			b.Logf("%-28s %8s  %.2f of all", c.name, quickest[i].Round(time.Microsecond), float64(quickest[i])/float64(quickest[0]))
		}
	}
	var named []time.Duration
	for i, c := range cases {
		if c.named {
			named = append(named, quickest[i])
		}
	}
	b.ReportMetric(float64(quickest[0].Microseconds()), "µs-all")
	b.ReportMetric(float64(slices.Max(named))/float64(slices.Min(named)), "slowest/quickest")
	b.ReportMetric(float64(slices.Max(quickest))/float64(quickest[0]), "worst/all")
}

// instant stands in for a CLI that has its answer ready: a small program of its
// own, as fast as one that reads its input and writes JSON can be.
const instant = `package main

import (
	"io"
	"os"
)

func main() {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}\n")
}
`

// buildInstant returns the stand-in, built as CLIs are shipped.
func buildInstant(b *testing.B) []byte {
	b.Helper()
	dir := b.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "instant")
	if err := os.WriteFile(source, []byte(instant), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v", text, err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

// BenchmarkRequest measures a whole request (scored, decided, recorded, run
// under supervision, parsed, answered) to an instant stand-in for a CLI,
// against a bare spawn of the stand-in with the same input through the same
// pipes. Each request is a new one, so that it is looked for among earlier ones
// and not found. They take turns; what the gate does after an answer is over
// before the bare spawn is measured. Both are medians, beside the quickest.
func BenchmarkRequest(b *testing.B) {
	w := newWard(b, string(buildInstant(b)), "[dispatch]\ncli_effects = \"classic\"\n")
	dir := b.TempDir()
	program := ""
	for _, e := range w.Env {
		if path, ok := cutPath(e); ok {
			program = filepath.Join(path, "claude")
		}
	}
	c := w.Client("") // which keeps its connection
	use := func(tool string, args map[string]any, got any) time.Duration {
		raw, err := json.Marshal(args)
		if err != nil {
			b.Fatal(err)
		}
		start, resp := time.Now(), &api.ToolResponse{}
		err = c.Do(b.Context(), "POST", "/v1/tools/"+tool, &api.ToolRequest{Args: jsontext.Value(raw), Dir: dir}, resp)
		took := time.Since(start)
		if err != nil || json.Unmarshal(resp.Answer, got) != nil {
			b.Fatalf("%s: %v %s", tool, err, resp.Answer)
		}
		return took
	}
	var requests, bares []time.Duration
	for round := range max(b.N, 101) {
		prompt := fmt.Sprintf("say done for the %dth time", round)
		var got struct {
			Response string `json:"response"`
			Job      struct {
				ID string `json:"id"`
			} `json:"job"`
		}
		took := use("claude_request", map[string]any{"prompt": prompt, "workingDir": dir}, &got)
		if got.Response != "done" {
			b.Fatalf("%+v", got)
		}
		use("llm_job_status", map[string]any{"jobId": got.Job.ID}, &struct{}{}) // answers when the end is on record
		time.Sleep(20 * time.Millisecond)
		start := time.Now()
		cmd := exec.Command(program)
		cmd.Stdin = strings.NewReader(prompt)
		if out, err := cmd.Output(); err != nil || len(out) == 0 {
			b.Fatal(err)
		}
		if spawn := time.Since(start); round > 0 { // the first finds nothing ready
			requests, bares = append(requests, took), append(bares, spawn)
		}
	}
	slices.Sort(requests)
	slices.Sort(bares)
	request, bare := requests[len(requests)/2], bares[len(bares)/2]
	b.ReportMetric(float64(request.Microseconds()), "µs-request")
	b.ReportMetric(float64(bare.Microseconds()), "µs-bare")
	b.ReportMetric(float64(request)/float64(bare), "request/bare")
	b.ReportMetric(float64(requests[0])/float64(bares[0]), "quickest/quickest")
}

// cutPath is the first folder of a PATH variable.
func cutPath(e string) (string, bool) {
	const name = "PATH="
	if len(e) < len(name) || e[:len(name)] != name {
		return "", false
	}
	return filepath.SplitList(e[len(name):])[0], true
}
