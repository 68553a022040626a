package agents_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// confinedPolicy lets the run itself through, so that what is asked and denied
// is what the agent does in it.
const confinedPolicy = policyText + `
[[rules]]
name = "asked"
command = "touch asked*"
level = "CONFIRM_SINGLE_USE"
reason = "the test asks"

[profiles.tests]
base = "supervised"
[profiles.tests.capabilities]
"fs.write" = "AUTO_APPROVE"
"fs.delete" = "AUTO_APPROVE"
"net.egress" = "AUTO_APPROVE"
[profiles.tests.classes]
mutating = "AUTO_APPROVE"
network = "AUTO_APPROVE"
unknown = "AUTO_APPROVE"
`

// confined starts a gate for an agent that is run inside `gatehouse run`. There
// is no connect: the run brings the settings along.
func confined(t *testing.T, name string) *world {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
	w := &world{t: t, cli: cli(t, name), home: t.TempDir(), dir: t.TempDir()}
	for _, dir := range []string{w.home, w.dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.Gate = gatetest.New(t)
	w.Env = []string{"HOME=" + w.home}
	w.write(filepath.Join(w.Home, "policy.toml"), "profile = \"tests\"\n"+confinedPolicy)
	w.Up()
	w.credential, _ = w.Enrol("ann")
	return w
}

// held runs the agent confined through a script and returns what the model saw.
func (w *world) held(args []string, steps ...canary.Step) (results []string, stderr string) {
	w.t.Helper()
	m, err := canary.Start(steps...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer m.Close()
	cmd := exec.Command(gatetest.Binary(w.t), append([]string{"run", "--agent", w.cli.Name, "--"}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"HOME=" + w.home, "PATH=" + filepath.Dir(w.cli.Program) + ":" + os.Getenv("PATH"), "GATEHOUSE_HOME=" + w.Home,
		"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=scripted",
		"GOOGLE_GEMINI_BASE_URL=" + m.URL(), "GEMINI_API_KEY=scripted", "GEMINI_CLI_TRUST_WORKSPACE=true",
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		w.t.Logf("the run: %v", err)
	}
	w.t.Logf("%s%s\nthe model saw: %q", out.String(), errs.String(), m.Results())
	return m.Results(), errs.String()
}

// TestHeldInsideARun: the real CLI, started confined, has its tool calls decided
// by the gate over the channel and held by the kernel; the records say held.
func TestHeldInsideARun(t *testing.T) {
	t.Parallel()
	w := confined(t, "claude")
	w.write(filepath.Join(w.dir, "allowed.txt"), "the content of the file\n")
	secret := filepath.Join(w.home, "secret.txt")
	w.write(secret, "what nobody should read\n")
	// What no analysis sees the kernel still holds.
	w.write(filepath.Join(w.dir, "try.sh"), "cat "+secret+"; ls "+w.home+"; echo x > /etc/x\ncurl -sS -m 5 "+w.URL+"/v1/health\n"+
		"curl -sS -m 5 --unix-socket "+w.Socket()+" http://gatehouse/v1/health\n"+
		"curl -sS -m 5 --unix-socket /run/gatehouse.sock http://gatehouse/v1/health\n"+
		"curl -sS -m 5 --unix-socket /run/gatehouse.sock -X POST http://gatehouse/v1/calls -d '{}'\necho over\n")
	results, _ := w.held([]string{"-p", "go", "--output-format", "json"},
		canary.Step{Command: "cat allowed.txt; echo made > made.txt"},
		canary.Step{Command: "touch never.txt"},
		canary.Step{Command: "sh ./try.sh"},
	)
	if !saw(results, "the content of the file") || !w.exists("made.txt") {
		t.Error("what the policy allows did not run")
	}
	if w.exists("never.txt") || !saw(results, "the test forbids it") {
		t.Error("what the policy denies ran, or the model was not told why")
	}
	if !saw(results, "over") || !saw(results, "only hooks speak here") {
		t.Errorf("the attempts were not made: %q", results)
	}
	if saw(results, "what nobody should read") || saw(results, "secret.txt\n") || saw(results, `"posture"`) {
		t.Errorf("the sandbox does not hold: %q", results)
	}
	shells := 0
	for _, r := range w.records("call") {
		if r.Operation != "shell" {
			continue
		}
		shells++
		full := &admin.Record{}
		if err := w.Client(w.credential).Do(t.Context(), "GET", "/v1/log/"+r.ID, nil, full); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(full.Body), `"posture":"held"`) {
			t.Errorf("the record does not say held: %s", full.Body)
		}
	}
	if shells != 3 {
		t.Errorf("%d commands on record", shells)
	}
	if receipts := w.records("receipt"); len(receipts) != 1 {
		t.Errorf("%d receipts", len(receipts))
	}
}

// TestAgentsStartConfined: an agent starts in its sandbox with nothing written to
// the person's home but its own; one whose hooks are not known to hold there is
// refused.
func TestAgentsStartConfined(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := confined(t, name)
		holds := name == "claude" || name == "gemini"
		cmd := exec.Command(gatetest.Binary(t), "run", "--agent", name, "--", "--version")
		cmd.Dir = w.dir
		cmd.Env = []string{"HOME=" + w.home, "PATH=" + filepath.Dir(w.cli.Program) + ":" + os.Getenv("PATH"), "GATEHOUSE_HOME=" + w.Home}
		out, err := cmd.CombinedOutput()
		if !holds {
			if err == nil || !strings.Contains(string(out), "its calls would not pass the gate") {
				t.Errorf("%v\n%s", err, out)
			}
			return
		}
		if err != nil || !strings.ContainsAny(string(out), "0123456789") {
			t.Errorf("%v\n%s", err, out)
		}
		entries, err := os.ReadDir(w.home)
		if err != nil || len(entries) != 1 || entries[0].Name() != ".local" {
			t.Errorf("%v %v", entries, err)
		}
	})
}

// TestGeminiHeldInsideARun: the same for an agent that takes its hook from its
// home, where the run protects it.
func TestGeminiHeldInsideARun(t *testing.T) {
	t.Parallel()
	w := confined(t, "gemini")
	w.write(filepath.Join(w.home, ".local/state/gatehouse/agents/gemini/.gemini/settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
	results, _ := w.held([]string{"-p", "go", "-o", "json", "--approval-mode", "yolo"},
		canary.Step{Command: "echo made > made.txt"}, canary.Step{Command: "touch never.txt"})
	if !w.exists("made.txt") {
		t.Error("what the policy allows did not run")
	}
	if w.exists("never.txt") || !saw(results, "the test forbids it") {
		t.Error("what the policy denies ran, or the model was not told why")
	}
}
