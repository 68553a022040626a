package agents_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
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
	needtest.Programs(t, "bwrap")
	w := &world{t: t, cli: gatetest.CLI(t, name), home: t.TempDir(), dir: t.TempDir()}
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
	if args == nil {
		args = w.reckless(m.URL())
	}
	args = append([]string{"run", "--agent", w.cli.Name, "--net", strings.TrimPrefix(m.URL(), "http://"), "--"}, args...)
	env := []string{
		"HOME=" + w.home, "PATH=" + filepath.Dir(w.cli.Program) + ":" + os.Getenv("PATH"), "GATEHOUSE_HOME=" + w.Home,
		"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=scripted",
		"GOOGLE_GEMINI_BASE_URL=" + m.URL(), "GEMINI_API_KEY=scripted", "GEMINI_CLI_TRUST_WORKSPACE=true",
		"OPENAI_API_KEY=scripted", "XAI_API_KEY=scripted",
	}
	var out, errs bytes.Buffer
	start := func() {
		out.Reset()
		errs.Reset()
		cmd := exec.Command(gatetest.Binary(w.t), args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, env, &out, &errs
		if err := cmd.Run(); err != nil {
			w.t.Logf("the run: %v", err)
		}
	}
	start()
	// After a run that read something, one that can send something is asked about.
	list := &api.ApprovalList{}
	if err := w.Client(w.credential).Do(w.t.Context(), "GET", "/v1/approvals?state=pending", nil, list); err != nil {
		w.t.Fatal(err)
	}
	if len(m.Results()) == 0 && len(list.Requests) == 1 {
		w.approve(list.Requests[0])
		start()
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

// runAgents are the agents that `gatehouse run --agent` knows.
var runAgents = []string{"claude", "codex", "gemini", "grok"}

// TestAgentsStartConfined: an agent starts in its sandbox with nothing written to
// the person's home but its own.
func TestAgentsStartConfined(t *testing.T) {
	eachOf(t, runAgents, func(t *testing.T, name string) {
		w := confined(t, name)
		cmd := exec.Command(gatetest.Binary(t), "run", "--agent", name, "--", "--version")
		cmd.Dir = w.dir
		cmd.Env = []string{"HOME=" + w.home, "PATH=" + filepath.Dir(w.cli.Program) + ":" + os.Getenv("PATH"), "GATEHOUSE_HOME=" + w.Home}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.ContainsAny(string(out), "0123456789") {
			t.Errorf("%v\n%s", err, out)
		}
		entries, err := os.ReadDir(w.home)
		if err != nil || len(entries) != 1 || entries[0].Name() != ".local" {
			t.Errorf("%v %v", entries, err)
		}
	})
}

// own is the home that a confined agent has to itself.
func (w *world) own(path string) string {
	return filepath.Join(w.home, ".local/state/gatehouse/agents", w.cli.Name, path)
}

// reckless are the arguments of each CLI without questions of its own, so that
// only the gate stands between the model and the sandbox.
func (w *world) reckless(url string) []string {
	switch w.cli.Name {
	case "claude":
		return []string{"-p", "go", "--output-format", "json"}
	case "codex":
		return []string{
			"exec", "--json", "--skip-git-repo-check", "-c", `approval_policy="never"`, "-c", `model="scripted"`, "-c", `model_provider="scripted"`,
			"-c", `model_providers.scripted={name="scripted",base_url="` + url + `/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`, "go",
		}
	case "gemini":
		w.write(w.own(".gemini/settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
		return []string{"-p", "go", "-o", "json", "--approval-mode", "yolo"}
	}
	w.write(w.own(".grok/config.toml"), "[model.scripted]\nmodel = \"scripted\"\nbase_url = \""+url+"/v1\"\nenv_key = \"XAI_API_KEY\"\napi_backend = \"messages\"\n")
	return []string{"-p", "go", "-m", "scripted", "--output-format", "json", "--always-approve"}
}

// TestEveryAgentHeldInsideARun: each CLI's calls pass the gate, in a repository
// that brings settings along to be rid of it, and again in a second run, after
// the agent has written such settings into its own home.
func TestEveryAgentHeldInsideARun(t *testing.T) {
	eachOf(t, runAgents, func(t *testing.T, name string) {
		w := confined(t, name)
		for path, text := range repositorySettings[name] {
			w.write(filepath.Join(w.dir, path), text)
		}
		var off strings.Builder // a script, because the gate would stop the commands
		for path, text := range repositorySettings[name] {
			off.WriteString("mkdir -p ~/" + filepath.Dir(path) + "; echo '" + text + "' > ~/" + path + "\n")
		}
		w.write(filepath.Join(w.dir, "off.sh"), off.String()+"echo tried\n")
		results, _ := w.held(nil, canary.Step{Command: "echo made > made.txt"}, canary.Step{Command: "touch never.txt"}, canary.Step{Command: "sh ./off.sh"})
		if !w.exists("made.txt") {
			t.Error("what the policy allows did not run")
		}
		if w.exists("never.txt") || !saw(results, "the test forbids it") {
			t.Error("what the policy denies ran, or the model was not told why")
		}
		if !saw(results, "tried") {
			t.Error("the settings in the agent's home were not tried")
		}
		results, _ = w.held(nil, canary.Step{Command: "echo again > again.txt"}, canary.Step{Command: "touch never.txt"})
		if !w.exists("again.txt") {
			t.Error("the second run: what the policy allows did not run")
		}
		if w.exists("never.txt") || !saw(results, "the test forbids it") {
			t.Error("the second run: what the policy denies ran, or the model was not told why")
		}
		if posture := w.bodies("call"); !strings.Contains(posture, `"posture":"held"`) {
			t.Errorf("the records do not say held: %s", posture)
		}
	})
}
