package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// roomy lets a test ask more often than a person would bear.
const roomy = `version = 1
[limits]
pending_per_session = 100000
pending_per_principal = 100000
asks_per_hour = 100000
`

// kills is how often the daemon is killed.
const kills = 50

// load is what callers of a crashing gate were told. Only what was told
// counts: an answer that was lost on the way is nobody's.
type load struct {
	w    *world
	ctx  context.Context
	acks atomic.Int64

	mu       sync.Mutex
	allowed  map[string]string // call → which approval it used, "" for none
	asked    map[string]bool   // calls that were told to wait
	finished map[string]bool   // calls whose outcome was taken
	approved map[string]bool   // requests whose approval was taken
}

// note keeps something that was told.
func (l *load) note(m map[string]bool, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m[key] = true
	l.acks.Add(1)
}

// approvals is how many were taken.
func (l *load) approvals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.approved)
}

// try makes one request; false is no answer, or none that counts.
func (l *load) try(c *client.Client, method, path string, in, out any) bool {
	err := c.Do(l.ctx, method, path, in, out)
	if err != nil && status(err) == 0 {
		time.Sleep(2 * time.Millisecond) // the gate is down
	}
	return err == nil
}

// run submits a call and, most of the time, reports that it succeeded.
func (l *load) run(c *client.Client, in *api.CallRequest, approval string, report bool) *api.CallResponse {
	got := &api.CallResponse{}
	if !l.try(c, "POST", "/v1/calls", in, got) {
		return nil
	}
	switch got.Verdict {
	case gate.Pending:
		l.note(l.asked, got.CallID)
	case gate.Allowed:
		l.mu.Lock()
		l.allowed[got.CallID] = approval
		l.mu.Unlock()
		l.acks.Add(1)
		switch {
		case got.Outcome == gate.Succeeded: // the gate has performed it
			l.note(l.finished, got.CallID)
		case report && l.try(c, "POST", "/v1/calls/"+got.CallID+"/outcome", &api.OutcomeRequest{Outcome: gate.Succeeded}, nil):
			l.note(l.finished, got.CallID)
		}
	}
	return got
}

// auto is an agent whose calls need nobody.
func (l *load) auto(name string, r *rand.Rand) {
	c := l.w.Client(l.w.token)
	for l.ctx.Err() == nil {
		l.run(c, memo(name), "", r.IntN(4) > 0)
	}
}

// confirmed is an agent that asks, a person who approves once, and two calls
// that race for the approval.
func (l *load) confirmed(name string) {
	person := l.w.Client(l.w.credential)
	one, two := l.w.Client(l.w.token), l.w.Client(l.w.token)
	for n := 0; l.ctx.Err() == nil; n++ {
		call := create(fmt.Sprintf("%s-%d", name, n))
		var asked *api.CallResponse
		for asked == nil && l.ctx.Err() == nil {
			asked = l.run(one, call, "", false)
		}
		if asked == nil || asked.Verdict != gate.Pending {
			continue
		}
		r := &admin.Request{}
		if !l.try(person, "GET", "/v1/approvals/"+asked.Request, nil, r) {
			continue
		}
		if l.try(person, "POST", "/v1/approvals/"+asked.Request+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil) {
			l.note(l.approved, asked.Request)
		}
		approval := string(call.Args)
		var race sync.WaitGroup
		race.Go(func() { l.run(one, call, approval, true) })
		race.Go(func() { l.run(two, call, approval, true) })
		race.Wait()
	}
}

// TestKilledAtRandomMoments kills the daemon fifty times under load. Nothing
// that was acknowledged is lost, nothing that an agent was told to run is
// unrecorded, no approval is used twice, what was left open ends as unknown,
// and the log verifies, also against a checkpoint kept from the middle.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("GATEHOUSE_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("GATEHOUSE_SEED=%d repeats the moments", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	w := beginWith(t, roomy)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l := &load{w: w, ctx: ctx, allowed: map[string]string{}, asked: map[string]bool{}, finished: map[string]bool{}, approved: map[string]bool{}}
	var workers sync.WaitGroup
	for i := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(i+1)))
		workers.Go(func() { l.auto(fmt.Sprintf("auto%d", i), r) })
	}
	for i := range 2 {
		workers.Go(func() { l.confirmed(fmt.Sprintf("confirmed%d", i)) })
	}

	kept := filepath.Join(t.TempDir(), "checkpoint")
	for n := range kills {
		l.untilBusy()
		if n%10 == 9 {
			// An approval is held for a second, which the gate seldom lives.
			before := l.approvals()
			eventually(t, "something is approved", func() bool { return l.approvals() > before })
		}
		if n == kills/2 {
			w.do("GET", "/v1/log/proof/0", nil, nil) // so that there is one
			write(t, kept, lastCheckpoint(t, w))
		}
		time.Sleep(time.Duration(random.IntN(100_000)) * time.Microsecond)
		w.Kill()
		// Now and then it does not even get to its feet.
		if random.IntN(5) == 0 {
			if err := w.Launch(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(100_000)) * time.Microsecond)
			w.Kill()
		}
		w.Up()
	}
	l.untilBusy()
	w.Kill()
	stop()
	workers.Wait()
	w.Up() // closes what was open
	l.check(t)
	w.verify()
	if out := w.Must("audit", "verify", "--checkpoint", kept, "--credential-file", w.key); !strings.Contains(out, "Verified") {
		t.Errorf("against the checkpoint from the middle: %s", out)
	}
	t.Logf("%d allowed, %d asked, %d finished, %d approved", len(l.allowed), len(l.asked), len(l.finished), len(l.approved))
}

// untilBusy waits until some answers came since the gate is up.
func (l *load) untilBusy() {
	for from := l.acks.Load(); l.acks.Load() < from+10; {
		time.Sleep(time.Millisecond)
	}
}

// lastCheckpoint reads the newest checkpoint from the file beside the store.
func lastCheckpoint(t testing.TB, w *world) string {
	t.Helper()
	db := w.Database()
	defer db.Close()
	rows := gatetest.Rows(t, db, `SELECT note FROM audit_checkpoint ORDER BY size DESC LIMIT 1`)
	if len(rows) == 0 {
		t.Fatal("no checkpoint was signed so far")
	}
	return rows[0][0]
}

// check holds what was told against what is recorded.
func (l *load) check(t *testing.T) {
	t.Helper()
	db := l.w.Database()
	defer db.Close()
	verdicts, outcomes, used := map[string][]string{}, map[string][]string{}, map[string]int{}
	for _, row := range gatetest.Rows(t, db, `SELECT kind, call_id, outcome, body FROM audit_record WHERE kind IN ('call', 'outcome') ORDER BY pos`) {
		kind, id, outcome, body := row[0], row[1], row[2], string(audit.Unpack([]byte(row[3])))
		if kind == "outcome" {
			outcomes[id] = append(outcomes[id], outcome)
			continue
		}
		verdicts[id] = append(verdicts[id], outcome)
		if name := gatetest.Between(body, `"name":"confirmed`, `"`); name != "" && outcome == "allowed" {
			used[name]++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	told := map[string]int{}
	for id, approval := range l.allowed {
		if got := strings.Join(verdicts[id], " "); got != "allowed" {
			t.Errorf("%s was told to run; the log says %q", id, got)
		}
		if told[approval]++; approval != "" && told[approval] > 1 {
			t.Errorf("the approval of %s was used twice", approval)
		}
	}
	for name, n := range used {
		if n > 1 {
			t.Errorf("the approval of confirmed%s was used %d times on record", name, n)
		}
	}
	for id := range l.asked {
		if got := strings.Join(verdicts[id], " "); got != "pending" {
			t.Errorf("%s was told to wait; the log says %q", id, got)
		}
	}
	for id := range l.finished {
		if got := strings.Join(outcomes[id], " "); got != "succeeded" {
			t.Errorf("%s was reported as succeeded; the log says %q", id, got)
		}
	}
	unknown := 0
	for id, v := range verdicts {
		if strings.Join(v, " ") != "allowed" {
			continue
		}
		switch strings.Join(outcomes[id], " ") {
		case "succeeded":
		case "unknown":
			unknown++
		default:
			t.Errorf("%s ended as %q", id, outcomes[id])
		}
	}
	for request := range l.approved {
		if got := l.w.look(request); got.State != "approved" {
			t.Errorf("%s was approved; it is %s", request, got.State)
		}
	}
	if open := gatetest.Rows(t, db, `SELECT id FROM open_call`); len(open) > 0 {
		t.Errorf("%d calls are still open", len(open))
	}
	if unknown == 0 || len(l.approved) == 0 || len(used) == 0 || len(l.finished) == 0 {
		t.Errorf("the load was none: %d unknown, %d approved, %d used, %d finished", unknown, len(l.approved), len(used), len(l.finished))
	}
}
