package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// stubborn stands in for a CLI: it starts a double-forked child in a session of
// its own, ignores what can be ignored, and never ends. What it writes down is
// in its working directory.
const stubborn = `#!/bin/sh
trap '' TERM INT HUP
echo run >> runs
(setsid sh -c 'trap "" TERM INT HUP; echo $$ >> pids; exec sleep 100000' &)
echo $$ >> pids
sleep 100000
sleep 100000
`

// ward is a gate with a stand-in for every CLI.
type ward struct {
	*gatetest.Gate
	t    testing.TB
	temp string // where the gate's temporary files are
}

func newWard(t testing.TB, program, policy string) *ward {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"claude", "codex", "gemini", "grok", "vibe"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := &ward{t: t, Gate: gatetest.New(t)}
	w.temp = t.TempDir()
	w.Env = []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + w.temp}
	if err := os.WriteFile(filepath.Join(w.Home, "policy.toml"), []byte("version = 1\n"+policy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Up()
	return w
}

// use calls a tool of dispatch as an agent.
func (w *ward) use(tool, dir string, args map[string]any, answer any) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	got := &api.ToolResponse{}
	if err := w.Client("").Do(context.Background(), "POST", "/v1/tools/"+tool, &api.ToolRequest{Args: jsontext.Value(raw), Dir: dir}, got); err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	if err := json.Unmarshal(got.Answer, answer); err != nil {
		w.t.Fatalf("%s: %v in %s", tool, err, got.Answer)
	}
}

// lines waits until a stand-in has written so many lines into a file.
func lines(t testing.TB, path string, n int) []string {
	t.Helper()
	for {
		raw, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if got := strings.Fields(string(raw)); len(got) >= n {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// runs says whether a process runs.
func runs(pid string) bool {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	_, after, _ := strings.Cut(string(raw), ") ")
	return err == nil && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// TestKill9 kills the gate while 50 jobs run, once alone and once with all that
// watches over the jobs. Within 5 s of the restart nothing of them runs, every
// job has a truthful state, none has run twice, and what happened can be traced.
func TestKill9(t *testing.T) {
	t.Parallel()
	for _, alsoSupervisors := range []bool{false, true} {
		t.Run(fmt.Sprintf("supervisors too: %v", alsoSupervisors), func(t *testing.T) {
			t.Parallel()
			testKill9(t, alsoSupervisors)
		})
	}
}

func testKill9(t *testing.T, alsoSupervisors bool) {
	const count = 50
	w := newWard(t, stubborn, "[dispatch]\nmax_running = 50\nmax_running_per_cli = 10\nmax_queued = 10\n")
	var dirs, jobs, pids []string
	clis := []string{"claude", "codex", "gemini", "grok", "mistral"}
	for i := range count {
		dir := t.TempDir()
		var got struct {
			Job struct {
				ID     string `json:"id"`
				Status string `json:"status"`
			} `json:"job"`
			Error string `json:"error"`
		}
		w.use(clis[i%len(clis)]+"_request_async", dir, map[string]any{"prompt": "work on", "workingDir": dir, "correlationId": fmt.Sprintf("kill-%d", i)}, &got)
		if got.Job.Status != "running" {
			t.Fatalf("job %d: %+v", i, got)
		}
		dirs, jobs = append(dirs, dir), append(jobs, got.Job.ID)
	}
	for _, dir := range dirs {
		pids = append(pids, lines(t, filepath.Join(dir, "pids"), 2)...)
	}
	held := supervisors(t, w.PID(), alsoSupervisors)
	if left := w.scratch(); len(left) != count {
		t.Fatalf("%d runs have a folder of their own, want %d", len(left), count)
	}
	w.Kill()
	for _, pid := range held {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	w.Up()
	for _, pid := range pids {
		if runs(pid) {
			t.Errorf("process %s runs unsupervised after the restart", pid)
		}
	}
	for i, id := range jobs {
		var got struct {
			Job struct {
				Status string `json:"status"`
				Error  string `json:"error"`
			} `json:"job"`
		}
		w.use("llm_job_status", dirs[i], map[string]any{"jobId": id}, &got)
		if got.Job.Status != "unknown" || got.Job.Error == "" {
			t.Errorf("job %d: %+v", i, got)
		}
		if n := len(lines(t, filepath.Join(dirs[i], "runs"), 1)); n != 1 {
			t.Errorf("job %d ran %d times", i, n)
		}
	}
	took := time.Since(began)
	t.Logf("from the restart to the last state: %s", took)
	if took > 5*time.Second {
		t.Errorf("it took %s to restart and to know all", took)
	}
	if left := w.scratch(); len(left) > 0 {
		t.Errorf("%d folders of runs are left: %s", len(left), left[0])
	}
	w.cancels(jobs[0], dirs[0])
	w.traces("kill-0", jobs[0], dirs[0])
}

// scratch are the folders of runs among the gate's temporary files.
func (w *ward) scratch() []string {
	w.t.Helper()
	list, err := filepath.Glob(filepath.Join(w.temp, "gatehouse-*job_*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// supervisors are the gate's children, frozen so that they do nothing while it
// dies.
func supervisors(t *testing.T, gate int, wanted bool) (out []int) {
	t.Helper()
	if !wanted {
		return nil
	}
	out = needtest.Children(t, gate)
	for _, pid := range out {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 50 {
		t.Fatalf("the gate has %d supervisors", len(out))
	}
	return out
}

// cancels cancels a job of before the restart: nothing of it is left, and the
// answer says so.
func (w *ward) cancels(id, dir string) {
	w.t.Helper()
	var got map[string]any
	w.use("llm_job_cancel", dir, map[string]any{"jobId": id}, &got)
	if got["success"] == false {
		w.t.Errorf("cancelled after the restart: %v", got)
	}
}

// traces puts a dispatch of before the restart together again.
func (w *ward) traces(correlation, id, dir string) {
	w.t.Helper()
	var got dispatch.Trace
	w.use("dispatch_trace", dir, map[string]any{"correlationId": correlation}, &got)
	if len(got.Requests) != 1 || got.Requests[0].Job == nil || got.Requests[0].Job.ID != id || got.Requests[0].State != "unknown" || len(got.Requests[0].Progress) < 2 {
		w.t.Fatalf("%+v", got)
	}
	var kinds []string
	for _, r := range got.Records {
		kinds = append(kinds, r.Kind+" "+r.Outcome)
	}
	if text := strings.Join(kinds, ", "); !strings.Contains(text, "call allowed") || !strings.Contains(text, "unknown") {
		w.t.Errorf("the log's records: %s", text)
	}
	out := w.Must("trace", correlation)
	for _, want := range []string{"correlation  " + correlation, got.Requests[0].ID, id, "unknown", "score 0", "work on"} {
		if !strings.Contains(out, want) {
			w.t.Errorf("gatehouse trace does not say %q:\n%s", want, out)
		}
	}
}
