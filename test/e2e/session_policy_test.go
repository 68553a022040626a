package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestSessionPolicy: whoever opens a session can tighten what holds in it, and
// loosen nothing; other sessions are as before, and a restart changes nothing.
func TestSessionPolicy(t *testing.T) {
	t.Parallel()
	w := begin(t)
	open := func(policy string) (string, error) {
		s := &api.SessionResponse{}
		err := w.agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{Policy: policy}, s)
		return s.Session, err
	}
	tight, err := open("version = 1\nprofile = \"blind\"\n[profiles.blind]\nbase = \"supervised\"\n[profiles.blind.capabilities]\n\"fs.read\" = \"DENY\"\n")
	if err != nil {
		t.Fatal(err)
	}
	loose, err := open("version = 1\nprofile = \"free\"\n[profiles.free]\nbase = \"supervised\"\n[profiles.free.capabilities]\n\"fs.write\" = \"AUTO_APPROVE\"\n")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	read := func(session string, verdict gate.Verdict, tool string) {
		t.Helper()
		in := callOf(tool, `{"file_path":"notes.txt","content":"x"}`)
		in.Session, in.Dir = session, t.TempDir()
		w.want(verdict, in)
	}
	check := func() {
		t.Helper()
		read(tight, gate.Denied, "Read")
		read(plain, gate.Allowed, "Read")
		read(loose, gate.Allowed, "Read")
		read(plain, gate.Pending, "Write")
		read(loose, gate.Pending, "Write")
	}
	check()
	_, err = open("version = 1\nprofil = \"x\"\n")
	refused(t, "a policy with a mistake", err, http.StatusBadRequest)
	w.Stop()
	w.Up()
	check()
}
