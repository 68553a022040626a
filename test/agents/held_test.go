package agents_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// The users of these tests; they need no names.
const (
	gateUser  = 64801
	agentUser = 64802
)

// heldGate is a gate that runs as a user of its own, laid out as `gatehouse
// install --system` lays it out.
type heldGate struct {
	t                   *testing.T
	home, socket, hook  string
	program             string
	pid                 int
	credential, address string
}

func startHeld(t *testing.T) *heldGate {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the gate as one user and the agent as another")
	}
	root, err := os.MkdirTemp("", "gh-held-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	must(t, os.Chmod(root, 0o755))
	g := &heldGate{t: t, home: filepath.Join(root, "lib"), socket: filepath.Join(root, "run", "gatehouse.sock")}
	must(t, os.Mkdir(g.home, 0o700))
	must(t, os.Chown(g.home, gateUser, gateUser))
	must(t, os.Mkdir(filepath.Dir(g.socket), 0o755))
	must(t, os.Chown(filepath.Dir(g.socket), gateUser, gateUser))
	// The programs belong to root, as they do when installed.
	must(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	for _, name := range []string{"gatehouse", "gatehouse-hook"} {
		copyProgram(t, filepath.Join(filepath.Dir(gatetest.Binary(t)), name), filepath.Join(root, "bin", name))
	}
	g.program, g.hook = filepath.Join(root, "bin", "gatehouse"), filepath.Join(root, "bin", "gatehouse-hook")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g.address = l.Addr().String()
	l.Close()
	cmd := exec.Command(g.program, "up", "--data", g.home, "--socket", g.socket, "--listen", g.address)
	cmd.Env = []string{"HOME=" + root, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: gateUser, Gid: gateUser}}
	log := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	g.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(log)
		}
	})
	for client.Unix(g.socket, "").Do(context.Background(), "GET", "/v1/health", nil, nil) != nil {
		select {
		case <-ended:
			t.Fatalf("the gate did not come up:\n%s", log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return g
}

// enrol enrols an approver, as the administrator.
func (g *heldGate) enrol() *heldGate {
	g.t.Helper()
	secret := &api.SecretResponse{}
	must(g.t, client.Unix(g.socket, "").Do(context.Background(), "POST", "/v1/approvers", &api.NameRequest{Name: "ann"}, secret))
	g.credential = secret.Secret
	return g
}

// as runs a shell command as a user.
func as(uid int, command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestAttack02Held: what the agent's user tries on a gate of another user
// fails, and the gate goes on.
func TestAttack02Held(t *testing.T) {
	t.Parallel()
	g := startHeld(t).enrol()
	attacks := map[string]string{
		"look into the data":       "ls " + g.home,
		"read the database":        "cat " + g.home + "/*.db " + g.home + "/gatehouse.db",
		"write the database":       "echo x >> " + g.home + "/gatehouse.db",
		"read a key":               "cat " + g.home + "/keys/*",
		"write a policy":           "echo 'version = 1' > " + g.home + "/policy.toml",
		"take the socket away":     "rm -f " + g.socket + " && test ! -e " + g.socket,
		"put another in its place": "mv " + g.socket + " " + g.socket + ".old",
		"replace the program":      "cp /bin/true " + g.program,
		"replace the hook":         "cp /bin/true " + g.hook,
		"end it":                   "kill -9 " + strconv.Itoa(g.pid),
		"read its memory":          "head -c 1 /proc/" + strconv.Itoa(g.pid) + "/mem",
		"read its environment":     "cat /proc/" + strconv.Itoa(g.pid) + "/environ",
		"take its descriptors":     "ls /proc/" + strconv.Itoa(g.pid) + "/fd",
		"enrol as an approver":     g.program + " approver add mallory --data " + g.home,
		"start a gate on its data": g.program + " up --data " + g.home + " --listen 127.0.0.1:0",
	}
	if _, err := exec.LookPath("strace"); err == nil {
		attacks["trace it"] = "timeout 2 strace -p " + strconv.Itoa(g.pid) + " -o /dev/null"
	} else {
		t.Log("strace is not installed; tracing is not tried")
	}
	for name, command := range attacks {
		if out, err := as(agentUser, command); err == nil {
			t.Errorf("the agent's user could %s: %s\n%s", name, command, out)
		}
	}
	err := client.Unix(g.socket, g.credential).Do(context.Background(), "GET", "/v1/approvers", nil, nil)
	if err != nil {
		t.Errorf("the gate does not go on: %v", err)
	}
}

// TestHeldEnrolment: where agents are held, the first approver is not whoever
// comes first.
func TestHeldEnrolment(t *testing.T) {
	t.Parallel()
	g := startHeld(t)
	_, _, out := part(t, "enrol", agentUser, g.socket)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "administrator") {
		t.Errorf("the agent's user asked to be enrolled and heard %q (%v)", line, err)
	}
	if g.enrol().credential == "" {
		t.Error("the administrator could not enrol")
	}
}

// TestHeldHook: an agent of another user works through the hook, its session is
// its own from call to call, and the record says that it was held.
func TestHeldHook(t *testing.T) {
	t.Parallel()
	g := startHeld(t).enrol()
	// By way of a shell, as hosts start hooks: of another user's processes the
	// gate sees names alone.
	hook := []string{"sh", "-c", g.hook + " claude --socket " + g.socket + " --owner " + strconv.Itoa(gateUser) + " --deadline 20; exit $?"}
	a := newAgent(t, agentUser, hook...)
	for i := range 3 {
		if r := a.send("PreToolUse", "s", fmt.Sprint("t", i), "ls /tmp"); r.Exit != 0 || !strings.Contains(r.Stdout, "allow") {
			t.Fatalf("call %d: %+v", i, r)
		}
		a.send("PostToolUse", "s", fmt.Sprint("t", i), "ls /tmp")
	}
	page := &api.LogPage{}
	must(t, client.Unix(g.socket, g.credential).Do(context.Background(), "GET", "/v1/log?kind=call", nil, page))
	sessions := map[string]bool{}
	for _, r := range page.Records {
		sessions[r.Session] = true
	}
	if len(page.Records) != 3 || len(sessions) != 1 {
		t.Errorf("%d calls in %d sessions", len(page.Records), len(sessions))
	}
	full := &struct {
		Body struct {
			Posture string `json:"posture"`
		} `json:"body"`
	}{}
	must(t, client.Unix(g.socket, g.credential).Do(context.Background(), "GET", "/v1/log/"+page.Records[0].ID, nil, full))
	if full.Body.Posture != "held" {
		t.Errorf("the record says %q", full.Body.Posture)
	}
	// Another agent of the same user is another session, and cannot speak for it.
	if r := newAgent(t, agentUser, hook...).send("PreToolUse", "s", "t9", "ls /tmp"); r.Exit != 2 {
		t.Errorf("another process of the same user spoke for the session: %+v", r)
	}
}
