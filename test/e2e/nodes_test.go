package e2e_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver, to look at the database

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// twoNodes are two daemons on one PostgreSQL database, with the same keys.
type twoNodes struct {
	*world // of node a
	b      *gatetest.Gate
	dsn    string
}

// beginTwo starts both; prepare may put files into their homes first.
func beginTwo(t *testing.T, prepare func(a, b *gatetest.Gate)) *twoNodes {
	t.Helper()
	dsn := storetest.Postgres(t).DSN
	a := gatetest.New(t, "--database", dsn, "--node", "a")
	b := gatetest.New(t, "--database", dsn, "--node", "b")
	if prepare != nil {
		prepare(a, b)
	}
	a.Up()
	// A node joins with the keys of the one that made the database.
	if err := os.CopyFS(filepath.Join(b.Home, "keys"), os.DirFS(filepath.Join(a.Home, "keys"))); err != nil {
		t.Fatal(err)
	}
	private(t, filepath.Join(b.Home, "keys"))
	b.Up()
	return &twoNodes{world: people(t, a), b: b, dsn: dsn}
}

// private takes the rights of others away, as the keys must have it.
func private(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestKillSwitchReachesTheOtherNodeAtOnce: the answer to the person who threw
// it comes after no node lets anything through any more.
func TestKillSwitchReachesTheOtherNodeAtOnce(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, nil)
	onB := n.b.Client(n.token)
	look := callOf("list_elements", "")
	for range 10 {
		if got := submit(t, onB, look); got.Verdict != gate.Allowed {
			t.Fatalf("before: %s", got.Message)
		}
		n.kill(true)
		if got := submit(t, onB, look); got.Verdict != gate.Denied || !strings.Contains(got.Message, "drill") {
			t.Errorf("on b, after the switch was thrown on a: %s", got.Message)
		}
		n.kill(false)
	}
	n.verify()
}

// TestOneApprovalOnTwoNodes: of identical calls on both nodes at once, one
// takes the approval, whoever approved on which node.
func TestOneApprovalOnTwoNodes(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, nil)
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		asked := n.want(gate.Pending, create(name))
		if other := submit(t, n.b.Client(n.token), create(name)); other.Request != asked.Request {
			t.Errorf("the same call on b asks anew: %s, not %s", other.Request, asked.Request)
		}
		n.approve(asked.Request)
		var race sync.WaitGroup
		var mu sync.Mutex
		allowed := 0
		for i := range 8 {
			c := n.Client(n.token)
			if i%2 == 1 {
				c = n.b.Client(n.token)
			}
			race.Go(func() {
				got := &api.CallResponse{}
				err := c.Do(context.Background(), "POST", "/v1/calls", create(name), got)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if got.Verdict == gate.Allowed {
					allowed++
				}
			})
		}
		race.Wait()
		if allowed != 1 {
			t.Errorf("%s was approved once and let through %d times", name, allowed)
		}
	}
	n.verify()
}

// TestTwoPeopleAnswerOnTwoNodes: one outcome, and a clear word to the others.
func TestTwoPeopleAnswerOnTwoNodes(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, nil)
	bob := &api.SecretResponse{}
	n.do("POST", "/v1/approvers", &api.NameRequest{Name: "bob"}, bob)
	for _, name := range []string{"one", "two", "three"} {
		asked := n.want(gate.Pending, create(name))
		r := n.look(asked.Request)
		path := "/v1/approvals/" + asked.Request
		var race sync.WaitGroup
		var yes, no error
		race.Go(func() {
			yes = n.person.Do(context.Background(), "POST", path+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil)
		})
		race.Go(func() {
			no = n.b.Client(bob.Secret).Do(context.Background(), "POST", path+"/deny", &api.ReplyRequest{Digest: r.Digest}, nil)
		})
		race.Wait()
		lost := yes
		if yes == nil {
			lost = no
		}
		if (yes == nil) == (no == nil) || status(lost) != 409 || !strings.Contains(lost.Error(), "already decided") {
			t.Errorf("%s: approve said %v, deny said %v", name, yes, no)
		}
		want := map[bool]string{true: "approved", false: "denied"}[yes == nil]
		if got := n.look(asked.Request); got.State != want {
			t.Errorf("%s is %s, want %s", name, got.State, want)
		}
	}
}

const (
	open   = "version = 1\n"
	closed = "version = 1\n[[rules]]\nname = \"no-push\"\nlevel = \"DENY\"\ncommand = \"git push*\"\nreason = \"no pushing\"\nmatches = [\"git push\"]\nmisses = [\"git status\"]\n"
)

func policyOf(g *gatetest.Gate) string { return filepath.Join(g.Home, "policy.toml") }

// head is the hash of the policy that all nodes agreed on.
func (n *twoNodes) head() string {
	n.t.Helper()
	p := &admin.Policy{}
	n.do("GET", "/v1/policy", nil, p)
	return p.Hash.String()
}

// TestPolicyFollowsToTheOtherNode: a policy that was tightened on a is in
// force on b, which denies until it has it and does not put its own, looser
// file in its place.
func TestPolicyFollowsToTheOtherNode(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, func(a, b *gatetest.Gate) {
		write(t, policyOf(a), open)
		write(t, policyOf(b), open)
	})
	push := callOf("Bash", `{"command":"git push origin main"}`)
	if got := n.submit(push); got.Verdict != gate.Pending {
		t.Fatalf("before: %s", got.Message)
	}
	before := n.head()
	write(t, policyOf(n.Gate), closed)
	eventually(t, "a takes its file", func() bool { return n.head() != before })
	after := n.head()
	onB := n.b.Client(n.token)
	look := callOf("list_elements", "")
	for submit(t, onB, look).Verdict != gate.Allowed {
		// Until b holds the policy it denies everything.
		if got := submit(t, onB, push); got.Verdict != gate.Denied {
			t.Fatalf("b lets %s through before it holds the policy", got.Verdict)
		}
	}
	if got := submit(t, onB, push); got.Verdict != gate.Denied || !strings.Contains(got.Message, "no pushing") {
		t.Errorf("on b: %s", got.Message)
	}
	if got := n.head(); got != after {
		t.Errorf("the policy in force moved on to %s", got)
	}
}

// TestNodesWithDifferentWordsComeToRest: files that differ only in words must
// not take turns in being in force for ever, as they would if each node put
// its own back whenever the other's came.
func TestNodesWithDifferentWordsComeToRest(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, func(a, b *gatetest.Gate) {
		write(t, policyOf(a), closed)
		write(t, policyOf(b), strings.Replace(closed, "no pushing", "pushing is for people", 1))
	})
	db, err := sql.Open("pgx", n.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	epoch := func() string { return gatetest.Rows(t, db, `SELECT max(epoch) FROM policy_head`)[0][0] }
	last := epoch()
	for quiet, moves := 0, 0; quiet < 30; quiet++ {
		time.Sleep(50 * time.Millisecond)
		if now := epoch(); now != last {
			last, quiet = now, 0
			if moves++; moves > 20 {
				t.Fatalf("the policy in force keeps changing: epoch %s", now)
			}
		}
	}
	for _, g := range []*gatetest.Gate{n.Gate, n.b} {
		if got := submit(t, g.Client(n.token), callOf("list_elements", "")); got.Verdict != gate.Allowed {
			t.Errorf("at rest: %s", got.Message)
		}
	}
}

// TestTwoNodesOfOneName: a second daemon under the name of one that runs is
// refused: it would take the other's open calls for its own, and end them.
func TestTwoNodesOfOneName(t *testing.T) {
	t.Parallel()
	dsn := storetest.Postgres(t).DSN
	a := gatetest.New(t, "--database", dsn, "--node", "same")
	b := gatetest.New(t, "--database", dsn, "--node", "same")
	a.Up()
	w := people(t, a)
	open := w.want(gate.Allowed, memo("open"))
	if err := os.CopyFS(filepath.Join(b.Home, "keys"), os.DirFS(filepath.Join(a.Home, "keys"))); err != nil {
		t.Fatal(err)
	}
	private(t, filepath.Join(b.Home, "keys"))
	if err := b.TryUp(); err == nil || !strings.Contains(b.Log(), "same") {
		t.Errorf("a second node of the same name: %v\n%s", err, b.Log())
	}
	w.done(open)
	w.want(gate.Allowed, callOf("list_elements", ""))
	w.verify()

	// When the first is gone, its name is free.
	a.Kill()
	b.Up()
	if got := submit(t, b.Client(w.token), callOf("list_elements", "")); got.Verdict != gate.Allowed {
		t.Errorf("after the first is gone: %s", got.Message)
	}
}
