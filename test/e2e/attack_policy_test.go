package e2e_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// policy reads what is in force and what waits.
func (w *world) policy() *admin.Policy {
	w.t.Helper()
	p := &admin.Policy{}
	w.do("GET", "/v1/policy", nil, p)
	return p
}

var push = callOf("Bash", `{"command":"git push origin main"}`)

// TestAttack03PolicyLoosenedOnDisk: a file that loosens is staged, not in
// force, after a restart either, and accepted only by an approver with a code.
func TestAttack03PolicyLoosenedOnDisk(t *testing.T) {
	t.Parallel()
	w := beginWith(t, closed)
	w.want(gate.Denied, push)
	was := w.policy().Hash
	write(t, policyOf(w.Gate), open)
	eventually(t, "the change is staged", func() bool { return w.policy().Staged != nil })
	for range 2 {
		p := w.policy()
		if p.Hash != was || p.Staged == nil || len(p.Staged.Changes) == 0 {
			t.Fatalf("a file that loosens: %+v", p)
		}
		w.want(gate.Denied, push)
		if h := w.health(); h.Status != "degraded" || !strings.Contains(strings.Join(h.Problems, " "), "loosens") {
			t.Errorf("health: %+v", h)
		}
		w.Stop()
		w.Up()
	}
	staged := w.policy().Staged
	if page := w.SignedIn(w.credential).Get("/policy"); !strings.Contains(page.Body, staged.Hash.String()) || !strings.Contains(page.Body, "no-push") {
		t.Error("the console does not show what is staged")
	}

	accept := func(credential string, in *api.AcceptRequest) error {
		return w.Client(credential).Do(context.Background(), "POST", "/v1/policy/accept", in, nil)
	}
	refused(t, "accepting with nothing", accept("", &api.AcceptRequest{Hash: staged.Hash}), http.StatusUnauthorized)
	refused(t, "accepting with a token", accept(w.token, &api.AcceptRequest{Hash: staged.Hash}), http.StatusForbidden)
	refused(t, "accepting without a factor", accept(w.credential, &api.AcceptRequest{Hash: staged.Hash}), http.StatusForbidden)
	codes := w.factor()
	refused(t, "accepting without a code", accept(w.credential, &api.AcceptRequest{Hash: staged.Hash}), http.StatusForbidden)
	refused(t, "accepting with a wrong code", accept(w.credential, &api.AcceptRequest{Hash: staged.Hash, Code: "000000"}), http.StatusForbidden)
	w.want(gate.Denied, push)

	// What is accepted is what was shown: another change of the file while
	// the person reads does not slip in.
	write(t, policyOf(w.Gate), "version = 1\nmode = \"observe\"\n")
	eventually(t, "the second change is staged", func() bool { return w.policy().Staged.Hash != staged.Hash })
	code := codes.next()
	refused(t, "accepting what is not staged any more", accept(w.credential, &api.AcceptRequest{Hash: staged.Hash, Code: code}), http.StatusConflict)
	w.want(gate.Denied, push)
	write(t, policyOf(w.Gate), open)
	eventually(t, "the first change is staged again", func() bool { return w.policy().Staged.Hash == staged.Hash })
	if err := accept(w.credential, &api.AcceptRequest{Hash: staged.Hash, Code: codes.next()}); err != nil {
		t.Fatal(err)
	}
	w.want(gate.Pending, push)
	if p := w.policy(); p.Hash != staged.Hash || p.Staged != nil {
		t.Errorf("after it was accepted: %+v", p)
	}
	w.verify()
}

// TestAttack03PolicyTightenedOnDisk: a file that tightens counts as soon as it
// is saved.
func TestAttack03PolicyTightenedOnDisk(t *testing.T) {
	t.Parallel()
	w := beginWith(t, open)
	was := w.policy().Hash
	w.want(gate.Pending, push)
	write(t, policyOf(w.Gate), closed)
	eventually(t, "the file is in force", func() bool { return w.policy().Hash != was })
	w.want(gate.Denied, push)
	if h := w.health(); h.Status != "ok" {
		t.Errorf("health: %+v", h)
	}

	// Deleting it does not take it back.
	if err := os.Remove(policyOf(w.Gate)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its absence is staged", func() bool { return w.policy().Staged != nil })
	w.want(gate.Denied, push)
	w.Stop()
	w.Up()
	w.want(gate.Denied, push)
}

// TestAttack03BrokenPolicy: the last good one stays, after a restart too, and
// everybody says so.
func TestAttack03BrokenPolicy(t *testing.T) {
	t.Parallel()
	w := beginWith(t, closed)
	write(t, policyOf(w.Gate), "version = 1\n\nprofle = \"supervised\"\n")
	eventually(t, "the file is found to be broken", func() bool { return len(w.policy().Broken) > 0 })
	for range 2 {
		w.want(gate.Denied, push)
		for what, text := range map[string]string{
			"the API":     strings.Join(w.policy().Broken, " "),
			"health":      strings.Join(w.health().Problems, " "),
			"the console": w.SignedIn(w.credential).Get("/").Body,
			"the log":     w.Log(),
		} {
			if !strings.Contains(text, "policy.toml:3") {
				t.Errorf("%s does not say which line is wrong: %q", what, text)
			}
		}
		if out, _, code := w.Run("doctor"); code != 1 || !strings.Contains(out, "policy.toml:3") || !strings.Contains(out, "profile") {
			t.Errorf("doctor: %d\n%s", code, out)
		}
		w.Stop()
		w.Up()
	}
	write(t, policyOf(w.Gate), closed)
	eventually(t, "the file is mended", func() bool { return len(w.policy().Broken) == 0 })
	if h := w.health(); h.Status != "ok" {
		t.Errorf("health: %+v", h)
	}
}

// project makes a directory with a policy file in it.
func project(t testing.TB, policy string) (dir, file string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, ".gatehouse.toml")
	write(t, file, policy)
	return dir, file
}

// in is a call in a directory.
func in(dir string, c *api.CallRequest) *api.CallRequest {
	there := *c
	there.Dir = dir
	return &there
}

// TestAttack03ProjectFile: a project's file tightens at once, loosens nothing
// until an approver trusts it, and what it tightened stays when it is changed,
// taken away, or hidden behind another one further down.
func TestAttack03ProjectFile(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir, file := project(t, closed)
	sub := filepath.Join(dir, "sub", "deep")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(sub, link); err != nil {
		t.Fatal(err)
	}
	denied := func(when string) {
		t.Helper()
		for _, d := range []string{dir, sub, link, dir + "/sub/../sub"} {
			if got := w.submit(in(d, push)); got.Verdict != gate.Denied || !strings.Contains(got.Message, "no pushing") {
				t.Errorf("%s, in %s: %s", when, strings.TrimPrefix(d, dir), got.Message)
			}
		}
	}
	elsewhere, _ := project(t, open)
	w.want(gate.Pending, in(elsewhere, push))
	denied("as it is")

	write(t, file, open)
	denied("emptied")
	if got := strings.Join(w.policy().Broken, " "); !strings.Contains(got, "would loosen") {
		t.Errorf("nobody says that the file would loosen: %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	denied("deleted")
	w.Stop()
	w.Up()
	denied("deleted, after a restart")
	write(t, filepath.Join(sub, ".gatehouse.toml"), open)
	denied("with another one further down")
	if err := os.Remove(filepath.Join(sub, ".gatehouse.toml")); err != nil {
		t.Fatal(err)
	}
	write(t, file, "this is not TOML")
	denied("broken")

	// An approver takes it as it is, with a code.
	write(t, file, open)
	trust := &api.TrustRequest{Path: file}
	refused(t, "trusting with a token", w.agent.Do(context.Background(), "POST", "/v1/policy/trust", trust, nil), http.StatusForbidden)
	refused(t, "trusting without a code", w.person.Do(context.Background(), "POST", "/v1/policy/trust", trust, nil), http.StatusForbidden)
	denied("before it is trusted")
	trust.Code = w.factor().next()
	w.do("POST", "/v1/policy/trust", trust, nil)
	w.want(gate.Pending, in(sub, push))
}

// TestAttack03ProjectFileThatNeverLoaded denies everything there, and nothing
// elsewhere.
func TestAttack03ProjectFileThatNeverLoaded(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir, file := project(t, "this is not TOML")
	look := callOf("list_elements", "")
	if got := w.submit(in(dir, look)); got.Verdict != gate.Denied {
		t.Errorf("in a project whose policy does not load: %s", got.Message)
	}
	w.want(gate.Allowed, look)
	if _, stderr, code := w.Run("check", "--op", "list_elements", "--dir", dir); code != 20 {
		t.Errorf("check in such a project: %d %s", code, stderr)
	}
	write(t, file, open)
	w.want(gate.Allowed, in(dir, look))
}

// TestAttack03ProjectFileThatIsNoFile: a project's file is the agent's to
// make. One that never ends, or never begins, must not hold up the gate; one
// that points at the gate's keys must not be read out to whoever asks how the
// gate is.
func TestAttack03ProjectFileThatIsNoFile(t *testing.T) {
	t.Parallel()
	w := begin(t)
	look := callOf("list_elements", "")
	key, err := os.ReadFile(filepath.Join(w.Home, "keys", "mac.key"))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(key))
	if raw, err := hex.DecodeString(secret); err != nil || len(raw) != 32 {
		t.Fatalf("the key is not what it was: %v", err)
	}
	for name, make := range map[string]func(path string) error{
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"an endless file":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"a terminal":       func(path string) error { return os.Symlink("/dev/tty", path) },
		"a directory":      func(path string) error { return os.Mkdir(path, 0o700) },
		"a huge file":      func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("# x\n", 1<<21)), 0o600) },
		"the gate's key":   func(path string) error { return os.Symlink(filepath.Join(w.Home, "keys", "mac.key"), path) },
		"a loop of links":  func(path string) error { return os.Symlink(path, path) },
		"a dangling link":  func(path string) error { return os.Symlink(path+".nowhere", path) },
		"another's secret": func(path string) error { return os.Symlink(w.key, path) },
	} {
		dir, file := project(t, "")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := make(file); err != nil {
			t.Fatal(err)
		}
		if got := w.submit(in(dir, look)); got.Verdict != gate.Denied {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
	_, body := w.HTTP("GET", "/v1/health", "", nil, nil)
	doctor, _, _ := w.Run("doctor")
	for what, text := range map[string]string{"health": string(body), "doctor": doctor, "the log": w.Log(), "the policy": strings.Join(w.policy().Broken, " ")} {
		for _, s := range []string{secret, secret[:16], w.credential, w.credential[4:20]} {
			if strings.Contains(text, s) {
				t.Errorf("%s shows a secret of the gate", what)
			}
		}
	}
	w.want(gate.Allowed, look)
}
