package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// gitProject is a work tree with one commit.
func gitProject(t *testing.T) string {
	t.Helper()
	needtest.Programs(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.go"), "package main\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestRestorePointEndToEnd: an agent deletes a person's unsaved work with an
// approval that named it, and the person gets it back in the terminal.
func TestRestorePointEndToEnd(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := gitProject(t)
	file := filepath.Join(dir, "notes.txt")
	write(t, file, "an afternoon's work\n")
	in := callOf("Bash", `{"command":"rm notes.txt"}`)
	in.Dir = dir
	asked := w.want(gate.Pending, in)
	if !strings.Contains(asked.Message, "notes.txt (untracked)") {
		t.Errorf("the answer does not name the work: %s", asked.Message)
	}
	r := w.look(asked.Request)
	if len(r.Facts.Destroys) != 1 || !r.Facts.Kept || len(r.Facts.NotKept) > 0 || len(r.Offers) != 1 {
		t.Errorf("shown: destroys %v, kept %v, not kept %v, offers %v", r.Facts.Destroys, r.Facts.Kept, r.Facts.NotKept, r.Offers)
	}
	if shown := w.Must("approvals", "show", asked.Request, "--credential-file", w.key); !strings.Contains(shown, "destroys     notes.txt (untracked)") {
		t.Errorf("approvals show does not name the work:\n%s", shown)
	}
	w.approve(asked.Request)
	allowed := w.want(gate.Allowed, in)
	if allowed.Restore == "" {
		t.Fatal("no restore point was kept")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.done(allowed)

	list := w.Must("restore", "list", "--credential-file", w.key)
	if !strings.Contains(list, allowed.Restore) {
		t.Errorf("restore list:\n%s", list)
	}
	shown := w.Must("restore", "show", allowed.Restore, "--credential-file", w.key)
	if !strings.Contains(shown, "bring back "+file) {
		t.Errorf("restore show:\n%s", shown)
	}
	// The agent can do none of it.
	for _, path := range []string{"/v1/restore", "/v1/restore/" + allowed.Restore} {
		if res, _ := w.HTTP("GET", path, w.token, nil, nil); res.StatusCode != 403 && res.StatusCode != 401 {
			t.Errorf("an agent's token gets %d from %s", res.StatusCode, path)
		}
	}
	w.Must("restore", "apply", allowed.Restore, "--yes", "--credential-file", w.key)
	if text, err := os.ReadFile(file); err != nil || string(text) != "an afternoon's work\n" {
		t.Errorf("put back: %q %v", text, err)
	}
	var log api.LogPage
	w.do("GET", "/v1/log?limit=100", nil, &log)
	for _, want := range []string{"restore.apply", "restore.applied"} {
		if !hasRecord(log.Records, func(r admin.Record) bool { return r.Operation == want && r.Principal == "ann" }) {
			t.Errorf("the log has no %s", want)
		}
	}
	w.do("GET", "/v1/log/calls/"+allowed.CallID, nil, &log)
	if !hasRecord(log.Records, func(r admin.Record) bool {
		return r.Kind == "restore" && strings.Contains(string(r.Body), allowed.Restore)
	}) {
		t.Error("the log does not say that a copy was kept for the call")
	}
}

func hasRecord(list []admin.Record, is func(admin.Record) bool) bool {
	for _, r := range list {
		if is(r) {
			return true
		}
	}
	return false
}

// TestRestorePointThatCannotBeWritten: where the copy cannot be made the call
// does not run, and the log says so.
func TestRestorePointThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := gitProject(t)
	if err := os.RemoveAll(filepath.Join(w.Home, "restore")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Home, "restore"), "in the way")
	in := callOf("Write", `{"file_path":"main.go","content":"x"}`)
	in.Dir = dir
	asked := w.want(gate.Pending, in)
	w.approve(asked.Request)
	got := w.want(gate.Denied, in)
	if !strings.Contains(got.Message, "could not be kept") || got.Final {
		t.Errorf("the answer: %s", got.Message)
	}
	var log api.LogPage
	w.do("GET", "/v1/log?kind=outcome", nil, &log)
	if !hasRecord(log.Records, func(r admin.Record) bool { return r.Outcome == "refused" }) {
		t.Error("the log does not say that nothing came of the allow")
	}
}
