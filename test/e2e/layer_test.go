package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestChangesOnRecord: where a gate is running, what a confined run changed is
// taken over or discarded by an approver, and the log has it under the layer's
// hash, before and after.
func TestChangesOnRecord(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "bwrap")
	w := begin(t)
	dir, state := t.TempDir(), t.TempDir()
	key := filepath.Join(t.TempDir(), "ann.key")
	if err := os.WriteFile(key, []byte(w.credential), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (string, error) {
		cmd := exec.Command(gatetest.Binary(t), append(args, "--data", w.Home)...)
		if args[0] == "run" {
			cmd = exec.Command(gatetest.Binary(t), append([]string{"run", "--data", w.Home}, args[1:]...)...)
		}
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "XDG_STATE_HOME=" + state}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	change := func(script string) (id string) {
		out, err := command("run", "--overlay", "--", "sh", "-c", script)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return regexp.MustCompile(`changes show ([0-9a-f]{16})`).FindStringSubmatch(out)[1]
	}
	acts := func() (list []string) {
		page := &api.LogPage{}
		if err := w.Client(w.credential).Do(t.Context(), "GET", "/v1/log?limit=200", nil, page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			full := &admin.Record{}
			if err := w.Client(w.credential).Do(t.Context(), "GET", "/v1/log/"+r.ID, nil, full); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(full.Body), `"changes.`) {
				list = append(list, string(full.Body))
			}
		}
		return list
	}
	made := func() bool { _, err := os.Stat(filepath.Join(dir, "made")); return err == nil }

	id := change("echo x > made")
	for _, verb := range []string{"accept", "discard"} {
		if out, err := command("changes", verb, id); err == nil || !strings.Contains(out, "an approver's act") {
			t.Errorf("%s without a credential: %v\n%s", verb, err, out)
		}
	}
	if err := os.WriteFile(key+".bad", []byte("nobody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command("changes", "accept", id, "--credential-file", key+".bad"); err == nil {
		t.Errorf("accepted with nobody's credential: %s", out)
	}
	if made() || len(acts()) != 0 {
		t.Fatalf("something was taken over without an approver: %v", acts())
	}
	if out, err := command("changes", "accept", id, "--credential-file", key); err != nil || !made() {
		t.Fatalf("%v\n%s", err, out)
	}
	other := change("echo y > other")
	if out, err := command("changes", "discard", other, "--credential-file", key); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Join(acts(), "\n")
	for _, want := range []string{"changes.accept\"", "changes.accepted", "changes.discard", `"done":["made"]`, id, other, "ann"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not say %s:\n%s", want, got)
		}
	}
	// An agent's token does not record anything of the kind.
	hash := regexp.MustCompile(id + `[0-9a-f]{48}`).FindString(got)
	for _, act := range []string{"accept", "accepted", "discard"} {
		if err := w.Client("").Do(t.Context(), "POST", "/v1/layers/"+hash+"/"+act, &admin.Layer{}, nil); err == nil {
			t.Errorf("%s was recorded without a credential", act)
		}
	}
}
