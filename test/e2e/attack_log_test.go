package e2e_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestAttack33RewrittenLog: an export in which a record was changed, removed,
// inserted, moved or cut off does not verify, nor does a database that was
// edited under its triggers; a checkpoint that was kept elsewhere finds even a
// log that is whole and another one.
func TestAttack33RewrittenLog(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for n := range 20 {
		w.done(w.want(gate.Allowed, memo(n)))
	}
	w.verify()
	dir := t.TempDir()
	kept := filepath.Join(dir, "checkpoint")
	w.Must("audit", "prove", "40", "--credential-file", w.key) // has a checkpoint signed that covers it
	write(t, kept, lastCheckpoint(t, w))
	export := w.Must("audit", "export", "--credential-file", w.key)
	lines := strings.SplitAfter(strings.TrimSuffix(export, "\n"), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "note 7") })
	if at < 0 || at+2 >= len(lines) {
		t.Fatalf("the export has %d lines, and the record is not among them", len(lines))
	}
	verify := func(text string, more ...string) int {
		t.Helper()
		file := filepath.Join(dir, "log.jsonl")
		write(t, file, text)
		_, _, code := w.Run(append([]string{"audit", "verify", "--file", file}, more...)...)
		return code
	}
	if code := verify(export, "--checkpoint", kept); code != 0 {
		t.Fatalf("the log as it is does not verify: %d", code)
	}
	join := func(parts ...[]string) string { return strings.Join(slices.Concat(parts...), "") }
	swapped := slices.Clone(lines)
	swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
	for name, text := range map[string]string{
		"changed":  strings.Replace(export, "note 7", "type8", 1),
		"removed":  join(lines[:at], lines[at+1:]),
		"inserted": join(lines[:at], lines[at:at+1], lines[at:]),
		"moved":    join(swapped),
		"nothing":  "",
	} {
		if code := verify(text); code == 0 {
			t.Errorf("%s: it verifies", name)
		}
	}
	if code := verify(join(lines[:at]), "--checkpoint", kept); code == 0 {
		t.Error("cut off: it verifies against a checkpoint that was kept")
	}

	// Another log, whole and signed with a key of its own.
	other := begin(t)
	other.verify()
	_, _, code := other.Run("audit", "verify", "--checkpoint", kept, "--credential-file", other.key)
	if code == 0 {
		t.Error("another gate's log verifies against this one's checkpoint")
	}

	// The database is edited by whoever owns the file.
	w.dropTriggers()
	w.Edit(`UPDATE audit_record SET outcome = 'denied' WHERE kind = 'call' AND pos = (SELECT max(pos) FROM audit_record WHERE kind = 'call')`)
	if out, _, code := w.Run("audit", "verify", "--credential-file", w.key); code != 1 {
		t.Errorf("an edited database: %d\n%s", code, out)
	}
}

// dropTriggers takes the triggers away that keep the log from being changed.
func (w *world) dropTriggers() {
	w.t.Helper()
	db := w.Database()
	defer db.Close()
	for _, row := range gatetest.Rows(w.t, db, `SELECT name FROM sqlite_master WHERE type = 'trigger'`) {
		if _, err := db.Exec("DROP TRIGGER " + row[0]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestWatching: whoever watches in a terminal sees requests as they come, and
// nothing an agent wrote moves the cursor.
func TestWatching(t *testing.T) {
	t.Parallel()
	w := begin(t)
	cmd := exec.Command(gatetest.Binary(t), "approvals", "watch", "--credential-file", w.key, "--data", w.Home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	until := func(part string) {
		t.Helper()
		for lines.Scan() {
			if strings.ContainsAny(lines.Text(), "\x1b\x07\r\u202e") {
				t.Errorf("a control character reached the terminal: %q", lines.Text())
			}
			if strings.Contains(lines.Text(), part) {
				return
			}
		}
		t.Fatalf("the watch ended before it showed %q", part)
	}
	until("Waiting for requests")
	evil := create("x")
	evil.Note = "all good\x1b[2J\x07\r\u202e nothing to see"
	asked := w.want(gate.Pending, evil)
	until(asked.Request)
	until("approvals approve " + asked.Request)
	// While somebody watches, a call waits.
	wait, id := w.submitAndWait(create("second"))
	until(id)
	w.approve(id)
	if got := wait.get(); got.Verdict != gate.Allowed {
		t.Errorf("the call that waited: %s", got.Message)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the watch ended with %v", err)
	}
}
