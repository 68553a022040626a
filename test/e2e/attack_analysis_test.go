package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// shellIn is a command in a directory, from a host that takes rewritten input.
func shellIn(dir, command string) *api.CallRequest {
	in := tool("Bash", "command", command)
	in.Dir, in.Rewrites = dir, true
	return in
}

// take approves a request with one of its offers.
func (w *world) take(id string, offer int) {
	w.t.Helper()
	err := w.answer(id, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: offer} })
	if err != nil {
		w.t.Fatalf("approve %s: %v", id, err)
	}
}

// everyTime checks that a call is confirmed every time, if it is not denied,
// and that no grant for the session is offered.
func (w *world) everyTime(in *api.CallRequest) {
	w.t.Helper()
	d := w.decide(in)
	if d.Level != call.Deny && d.Level != call.ConfirmSingleUse {
		w.t.Errorf("%s is %s, want every time or never", in.Args, d.Level)
	}
	if d.Level == call.Deny {
		return
	}
	got := w.submit(in)
	if got.Verdict != gate.Pending {
		w.t.Errorf("%s: %s", in.Args, got.Verdict)
		return
	}
	if offers := w.look(got.Request).Offers; len(offers) != 1 {
		w.t.Errorf("%s is offered for longer than once: %+v", in.Args, offers)
	}
	if err := w.agent.Do(context.Background(), "DELETE", "/v1/requests/"+got.Request, nil, nil); err != nil {
		w.t.Error(err)
	}
}

// patient is a policy under which a test may ask often.
const (
	patient = "version = 1\n" + limits
	limits  = "[limits]\nasks_per_hour = 1000\npending_per_session = 100\npending_per_principal = 100\n"
)

// TestAttack20SwappedRootAndExecByName: a scope does not move to another
// directory of the same name, and a program that runs others is not granted by
// its name.
func TestAttack20SwappedRootAndExecByName(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\nprofile = \"loose\"\n"+limits+"[profiles.loose]\nbase = \"supervised\"\n[profiles.loose.classes]\nunknown = \"CONFIRM_SESSION\"\n[profiles.loose.capabilities]\n\"proc.exec\" = \"CONFIRM_SESSION\"\n")
	work := filepath.Join(realDir(t), "work")
	mkdir(t, work)
	in := tool("Write", "file_path", "src/a.go")
	in.Dir = work
	w.take(w.want(gate.Pending, in).Request, 1)
	w.want(gate.Allowed, in)
	if err := os.Rename(work, work+".old"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, work)
	w.want(gate.Pending, in)

	plain := tool("Bash", "command", "git bisect run ./x.sh")
	plain.Dir = work
	got := w.want(gate.Pending, plain)
	if offers := w.look(got.Request).Offers; len(offers) != 1 {
		t.Errorf("a program that runs others is offered for the session: %+v", offers)
	}
}

// TestAttack24InputToARunningProcess: what is typed into a shell is judged as
// code of that shell, every time.
func TestAttack24InputToARunningProcess(t *testing.T) {
	t.Parallel()
	w := beginWith(t, patient)
	for _, in := range []*api.CallRequest{
		callOf("write_stdin", `{"session_id":1,"chars":"ls\n"}`), callOf("write_stdin", `{"session_id":1,"chars":"rm -rf x\n"}`),
		callOf("write_bash", `{"sessionId":"a","input":"print(1)\n"}`), callOf("execute_bash", `{"command":"y","is_input":"true"}`),
		callOf("execute_ipython_cell", `{"code":"1+1"}`), callOf("run_notebook_cell", `{"filePath":"a.ipynb","cellId":"1"}`),
	} {
		in.Rewrites = true
		w.everyTime(in)
	}
}

// TestAttack25UngatedAgents: an agent without its hooks is not started from a
// tool.
func TestAttack25UngatedAgents(t *testing.T) {
	t.Parallel()
	w := beginWith(t, patient)
	work := realDir(t)
	for _, command := range []string{
		"claude --bare -p hi", "claude --dangerously-skip-permissions -p x", "CLAUDE_CONFIG_DIR=/tmp/x claude -p hi", "env CODEX_HOME=/tmp/x codex exec hi",
		"codex --dangerously-bypass-approvals-and-sandbox exec x", "gemini --yolo -p x", "timeout 60 gemini -y -p x", "bash -c 'claude --bare -p hi'",
		"echo x | xargs claude --dangerously-skip-permissions -p",
	} {
		if d := w.decide(shellIn(work, command)); d.Level != call.Deny || !strings.Contains(d.Why, "dispatch") {
			t.Errorf("%s: %s because %s", command, d.Level, d.Why)
		}
	}
	for _, command := range []string{"claude -p hi", "codex exec hi", "gemini -p hi"} {
		w.everyTime(shellIn(work, command))
	}
}

// TestAttack26OutsideItsTree: what acts through somebody else's process is
// confirmed every time, and so is what runs later.
func TestAttack26OutsideItsTree(t *testing.T) {
	t.Parallel()
	w := beginWith(t, patient)
	work := realDir(t)
	for _, command := range []string{
		"tmux send-keys -t 0 'make' Enter", "screen -S x -X stuff 'make'", "systemd-run make", "echo make | at now", "crontab jobs", "docker run -v /:/h alpine sh",
		"ssh localhost make", "gdb -p 1", "nsenter -t 1 -m make", "docker exec x make", "kubectl exec x -- make", "dbus-send --session /x x.y",
	} {
		w.everyTime(shellIn(work, command))
	}
	for _, file := range []string{
		"~/.bashrc", "~/.config/systemd/user/x.service", ".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", "/etc/cron.d/x", ".git/config", "~/.local/bin/git",
	} {
		in := tool("Write", "file_path", file)
		in.Dir = work
		w.everyTime(in)
	}
}

// TestAttack27Shim: a program that the agent can write is not the program of
// that name.
func TestAttack27Shim(t *testing.T) {
	t.Parallel()
	bin, work := realDir(t), realDir(t)
	write(t, filepath.Join(bin, "git"), "#!/bin/sh\nexec /usr/bin/git \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := gatetest.New(t)
	g.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	g.Up()
	w := people(t, g)
	for _, command := range []string{"git status", "cd . && git log --oneline | head", "ls() { rm -rf x; }; ls", "alias ls='rm -rf x'; ls", "./ls"} {
		in := tool("Bash", "command", command)
		in.Dir = work
		if d := w.decide(in); d.Level == call.AutoApprove || d.Class == "safe" {
			t.Errorf("%s: %s, class %s", command, d.Level, d.Class)
		}
	}
	in := tool("Bash", "command", "ls -la")
	in.Dir = work
	if d := w.decide(in); d.Level != call.AutoApprove {
		t.Errorf("the system's own ls is %s: %s", d.Level, d.Why)
	}
}

// TestAttack28TheGateRunsNothingOfTheTree: a repository whose filters, hooks
// and monitors run programs makes the gate run none of them.
func TestAttack28TheGateRunsNothingOfTheTree(t *testing.T) {
	t.Parallel()
	git := needtest.OneOf(t, "git")
	w := beginWith(t, patient)
	work := realDir(t)
	trap, marker := filepath.Join(work, "trap.sh"), filepath.Join(work, "ran")
	write(t, trap, "#!/bin/sh\ntouch "+marker+"\ncat\n")
	if err := os.Chmod(trap, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "filter.x.clean", trap}, {"config", "filter.x.smudge", trap}, {"config", "core.fsmonitor", trap},
		{"config", "diff.external", trap}, {"config", "core.hooksPath", work},
	} {
		if out, err := exec.Command(git, slices.Concat([]string{"-C", work}, args)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write(t, filepath.Join(work, ".gitattributes"), "* filter=x\n")
	write(t, filepath.Join(work, "a.txt"), "work\n")
	for _, in := range []*api.CallRequest{
		shellIn(work, "git status"), shellIn(work, "git diff"), shellIn(work, "git add -A"), shellIn(work, "rm a.txt"), shellIn(work, "git stash"),
		shellIn(work, "git checkout -- a.txt"), shellIn(work, "echo x > a.txt"),
	} {
		if d := w.decide(in); d.Level == call.AutoApprove {
			t.Errorf("%s goes ahead by itself in a repository that runs programs", in.Args)
		}
		w.submit(in)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the gate ran a program of the agent's tree")
	}
}

// TestAttack15ProjectCodeNeedsTheSandbox: project code is granted for the
// session only to a host that runs it as the gate says, and the gate says so.
func TestAttack15ProjectCodeNeedsTheSandbox(t *testing.T) {
	t.Parallel()
	w := beginWith(t, patient)
	work := realDir(t)
	plain := tool("Bash", "command", "make test")
	plain.Dir = work
	w.everyTime(plain)

	in := shellIn(work, "make test")
	w.take(w.want(gate.Pending, in).Request, 1)
	got := w.want(gate.Allowed, in)
	if !slices.Contains(got.Requires, call.Guarantee{Name: "confined"}) || !slices.Contains(got.Requires, call.Guarantee{Name: "write", Scope: work}) {
		t.Errorf("requires %+v", got.Requires)
	}
	if n := len(got.Run); n < 4 || got.Run[0] != "run" || !slices.Equal(got.Run[n-3:], []string{"bash", "-c", "make test"}) {
		t.Errorf("is to be run as %q", got.Run)
	}
	w.everyTime(plain) // the grant is for what runs confined

	once := w.want(gate.Pending, shellIn(work+"/..", "make other"))
	w.approve(once.Request)
	if got := w.want(gate.Allowed, shellIn(work+"/..", "make other")); got.Run != nil {
		t.Errorf("what a person approved as it stands is run as %q", got.Run)
	}
}

// TestAttack10TaintOverTheAPI: who has read secrets is asked about what is
// sent out, in whatever session, until a person ends it.
func TestAttack10TaintOverTheAPI(t *testing.T) {
	t.Parallel()
	w := beginWith(t, patient)
	work := realDir(t)
	write(t, filepath.Join(work, ".env"), "KEY=1\n")
	fetch := func() *api.CallRequest {
		in := tool("WebFetch", "url", "https://docs.example.com/")
		in.Dir = work
		return in
	}
	if d := w.decide(fetch()); d.Level != call.ConfirmSession {
		t.Fatalf("a fetch is %s", d.Level)
	}
	read := tool("Read", "file_path", ".env")
	read.Dir = work
	w.approve(w.want(gate.Pending, read).Request)
	w.want(gate.Allowed, read)
	if d := w.decide(fetch()); d.Level != call.ConfirmSingleUse || !strings.Contains(d.Why, "secrets") {
		t.Errorf("after secrets were read a fetch is %s: %s", d.Level, d.Why)
	}
	other := w.Client(w.Gate.Agent(w.credential, "other"))
	d := &api.DecideResponse{}
	if err := other.Do(context.Background(), "POST", "/v1/decide", fetch(), d); err != nil || d.Level != call.ConfirmSingleUse {
		t.Errorf("for another agent in the workspace a fetch is %s (%v)", d.Level, err)
	}
	if err := w.agent.Do(context.Background(), "DELETE", "/v1/taints/coder", nil, nil); err == nil {
		t.Error("the agent ended its own taint")
	}
	out := w.Must("taint", "list", "--credential-file", w.key)
	if !strings.Contains(out, "secrets") || !strings.Contains(out, work) {
		t.Errorf("taint list says\n%s", out)
	}
	w.Must("taint", "clear", "coder", "--credential-file", w.key)
	if d := w.decide(fetch()); d.Level != call.ConfirmSession {
		t.Errorf("after a person ended it a fetch is %s", d.Level)
	}
}

// A dimension of one's own takes a policy file and nothing else.
func TestOwnCapability(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\nprofile = \"mail\"\n"+limits+`[capabilities."data.attachment"]
sentence = "read mail attachments"
paths = ["/**/attachments/**"]
fields = ["attachment*"]
tools = ["mcp__mail__get_attachment"]
variables = ["MAIL_*"]
[profiles.mail]
base = "supervised"
[profiles.mail.capabilities]
"data.attachment" = "CONFIRM_SINGLE_USE"
[tools]
"mcp__files__read" = "file.read"
`)
	for _, in := range []*api.CallRequest{
		tool("Read", "file_path", "/srv/mail/attachments/1.pdf"), tool("Bash", "command", "cat /srv/mail/attachments/1.pdf"),
		tool("mcp__files__read", "path", "/srv/mail/attachments/1.pdf"), tool("Bash", "command", "echo $MAIL_DIR"),
		tool("mcp__mail__get_attachment", "id", "1"), tool("mcp__mail__open", "attachment_id", "1"),
	} {
		d := w.decide(in)
		found := slices.ContainsFunc(d.Votes, func(v call.Vote) bool { return v.Need != nil && v.Need.Capability == "data.attachment" })
		if d.Level != call.ConfirmSingleUse || !found {
			t.Errorf("%s %s: %s because %s", in.Operation, in.Args, d.Level, d.Why)
		}
	}
	for _, in := range []*api.CallRequest{tool("Read", "file_path", "/srv/mail/1.txt"), tool("mcp__files__read", "path", "/srv/mail/1.txt")} {
		if d := w.decide(in); d.Level != call.AutoApprove {
			t.Errorf("%s %s: %s because %s", in.Operation, in.Args, d.Level, d.Why)
		}
	}
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}
