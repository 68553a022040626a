package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// plan submits a plan.
func (w *world) plan(in *api.PlanRequest) *api.CallResponse {
	w.t.Helper()
	out := &api.CallResponse{}
	if err := w.agent.Do(context.Background(), "POST", "/v1/plans", in, out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// writing is a call that writes a file in a directory and draws from a budget.
func writing(dir, name, budget, path string) *api.CallRequest {
	in := callOf("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, name))
	in.Dir, in.Budget, in.Path = dir, budget, path
	return in
}

// TestPlanEndToEnd: one question for a plan, whose calls then draw from its
// budget; what leaves it asks again; a sub-agent gets a part; what is left is
// returned; the end of the plan ends it all.
func TestPlanEndToEnd(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	in := &api.PlanRequest{Name: "refactor", Dir: dir, Calls: []api.PlannedCall{
		{Operation: "Write", Args: []byte(`{"file_path":"a.go","content":"one"}`)},
		{Operation: "Write", Args: []byte(`{"file_path":"a.go","content":"two"}`)},
		{Operation: "Edit", Args: []byte(`{"file_path":"b.go","old_string":"x","new_string":"y"}`)},
		{Operation: "Read", Args: []byte(`{"file_path":"c.go"}`)},
	}}
	asked := w.plan(in)
	if asked.Verdict != gate.Pending || asked.Budget != nil {
		t.Fatalf("the plan: %s (%s)", asked.Verdict, asked.Message)
	}
	r := w.look(asked.Request)
	if len(r.Offers) != 1 || r.Offers[0].Use != grant.Once {
		t.Errorf("a plan is offered %v", r.Offers)
	}
	if !strings.Contains(string(r.Call.Args), "old_string") || !strings.Contains(r.Facts.Words, "plans 4 steps") {
		t.Errorf("the person does not see the steps: %s: %s", r.Facts.Words, r.Call.Args)
	}
	w.approve(asked.Request)
	plan := w.plan(in)
	if plan.Verdict != gate.Allowed || plan.Budget == nil || len(plan.Budget.Lines) != 2 {
		t.Fatalf("the approved plan: %s, budget %+v", plan.Verdict, plan.Budget)
	}
	id := plan.Budget.ID

	// Two writes of a.go are in it, from as many callers at once as like to.
	var wg sync.WaitGroup
	verdicts := make([]gate.Verdict, 4)
	for i := range verdicts {
		wg.Go(func() { verdicts[i] = w.submit(writing(dir, "a.go", id, "")).Verdict })
	}
	wg.Wait()
	allowed := 0
	for _, v := range verdicts {
		if v == gate.Allowed {
			allowed++
		}
	}
	if allowed != 2 {
		t.Errorf("%d writes went ahead, the plan has two: %v", allowed, verdicts)
	}
	w.want(gate.Pending, writing(dir, "other.go", id, ""))
	w.want(gate.Pending, writing(dir, "b.go", "", "")) // without the budget it asks

	// A sub-agent gets a part, and no more.
	delegate := func(to, need string, uses int) (*grant.Budget, error) {
		out := &grant.Budget{}
		ask := &api.DelegateRequest{To: to, Needs: []api.PlannedNeed{{Need: need, Uses: uses}}}
		return out, w.agent.Do(context.Background(), "POST", "/v1/budgets/"+id+"/delegate", ask, out)
	}
	for _, want := range []string{"fs.write:./other.go", "fs.write:./**", "fs.delete:./b.go"} {
		if _, err := delegate("helper", want, 1); err == nil {
			t.Errorf("a sub-agent got %s, which is not in the plan", want)
		}
	}
	if _, err := delegate("helper", "fs.write:./b.go", 2); err == nil {
		t.Error("a sub-agent got more than is left")
	}
	sub, err := delegate("helper", "fs.write:./b.go", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.want(gate.Pending, writing(dir, "b.go", id, ""))            // it is reserved
	w.want(gate.Pending, writing(dir, "b.go", id, "helper"))      // not its budget
	w.want(gate.Pending, writing(dir, "b.go", sub.ID, "another")) // nor another's
	if err := w.agent.Do(context.Background(), "POST", "/v1/budgets/"+sub.ID+"/return", &api.ReturnRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	w.want(gate.Pending, writing(dir, "b.go", sub.ID, "helper")) // it is over
	got := w.want(gate.Allowed, writing(dir, "b.go", id, ""))    // and what was left came back
	w.done(got)

	var log api.LogPage
	w.do("GET", "/v1/log/calls/"+got.CallID, nil, &log)
	if len(log.Records) == 0 || !strings.Contains(string(log.Records[0].Body), `"budget":"`+id+`"`) {
		t.Error("the log does not say which budget the call drew from")
	}
	// Nobody else's agent sees it.
	other := w.Agent(w.credential, "other")
	if res, _ := w.HTTP("GET", "/v1/budgets/"+id, other, nil, nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("another agent gets %d", res.StatusCode)
	}
	w.done(plan)
	if err := w.agent.Do(context.Background(), "GET", "/v1/budgets/"+id, nil, &grant.Budget{}); err == nil {
		t.Error("the budget outlived its plan")
	}
}

// TestPlanIsDecidedAsAWhole: a step that would be denied denies the plan, and
// one that asks for every use asks again although the plan was approved.
func TestPlanIsDecidedAsAWhole(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "old.txt"), "x")
	denied := w.plan(&api.PlanRequest{Name: "sly", Dir: dir, Calls: []api.PlannedCall{
		{Operation: "Write", Args: []byte(`{"file_path":"a.go","content":"one"}`)},
		{Operation: "Read", Args: []byte(fmt.Sprintf(`{"file_path":%q}`, filepath.Join(w.Home, "keys", "x")))},
	}})
	if denied.Verdict != gate.Denied || !strings.Contains(denied.Message, "reaches the gate itself") {
		t.Errorf("a plan with a denied step: %s (%s)", denied.Verdict, denied.Message)
	}
	in := &api.PlanRequest{Name: "clean", Dir: dir, Calls: []api.PlannedCall{
		{Operation: "Write", Args: []byte(`{"file_path":"a.go","content":"one"}`)},
		{Operation: "Bash", Args: []byte(`{"command":"rm old.txt"}`)},
	}}
	asked := w.plan(in)
	w.approve(asked.Request)
	plan := w.plan(in)
	if plan.Verdict != gate.Allowed {
		t.Fatal(plan.Message)
	}
	w.want(gate.Allowed, writing(dir, "a.go", plan.Budget.ID, ""))
	rm := callOf("Bash", `{"command":"rm old.txt"}`)
	rm.Dir, rm.Budget = dir, plan.Budget.ID
	w.want(gate.Pending, rm)

	file := filepath.Join(t.TempDir(), "plan.json")
	write(t, file, fmt.Sprintf(`{"name":"clean","dir":%q,"calls":[{"operation":"Write","args":{"file_path":"a.go"}},{"operation":"Bash","args":{"command":"rm old.txt"}}],"needs":[{"need":"fs.write:./gen/**","uses":5}]}`, dir))
	for _, args := range [][]string{{"check", "--plan", file}, {"check", "--plan", file, "--dry-run"}} {
		stdout, stderr, code := w.Run(args...)
		if code != 10 || !strings.Contains(stdout, "fs.write:./gen/**") || !strings.Contains(stdout, "CONFIRM_SINGLE_USE") {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestBudgetLivesAsLongAsPolicySays: a plan's budget, and what is cut from it, lives no longer than a grant
// for the session may, and is worth nothing afterwards.
func TestBudgetLivesAsLongAsPolicySays(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\n[limits]\nsession_grant_life = \"2s\"\n")
	dir := t.TempDir()
	in := &api.PlanRequest{Name: "refactor", Dir: dir, Needs: []api.PlannedNeed{{Need: "fs.write:./src/**", Uses: 5}}}
	w.approve(w.plan(in).Request)
	plan := w.plan(in)
	if plan.Budget == nil {
		t.Fatalf("the approved plan: %s (%s)", plan.Verdict, plan.Message)
	}
	if life := plan.Budget.Expires.Sub(plan.Budget.Given); life != 2*time.Second {
		t.Errorf("the budget lives for %s", life)
	}
	time.Sleep(time.Until(plan.Budget.Expires) + 10*time.Millisecond)
	w.want(gate.Pending, writing(dir, "src/a.go", plan.Budget.ID, ""))
}

// TestBudgetsCanBeTakenBack: a plan that only says what it will need gets a
// budget its calls can draw from; an approver sees it, and takes it back with
// what was cut from it. Agents cannot do either.
func TestBudgetsCanBeTakenBack(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	in := &api.PlanRequest{Name: "refactor", Dir: dir, Needs: []api.PlannedNeed{{Need: "fs.write:./src/**", Uses: 5}}}
	w.approve(w.plan(in).Request)
	plan := w.plan(in)
	if plan.Budget == nil {
		t.Fatalf("the approved plan: %s (%s)", plan.Verdict, plan.Message)
	}
	id := plan.Budget.ID
	w.want(gate.Allowed, writing(dir, "src/a.go", id, ""))
	w.want(gate.Pending, writing(dir, "other/a.go", id, ""))
	w.want(gate.Pending, writing(t.TempDir(), "src/a.go", id, "")) // a workspace of the same shape
	sub := &grant.Budget{}
	ask := &api.DelegateRequest{To: "helper", Needs: []api.PlannedNeed{{Need: "fs.write:./src/x.go", Uses: 2}}}
	if err := w.agent.Do(context.Background(), "POST", "/v1/budgets/"+id+"/delegate", ask, sub); err != nil {
		t.Fatal(err)
	}
	w.want(gate.Allowed, writing(dir, "src/x.go", sub.ID, "helper"))

	for _, method := range []string{"GET /v1/budgets", "DELETE /v1/budgets/" + id} {
		verb, path, _ := strings.Cut(method, " ")
		if err := w.agent.Do(context.Background(), verb, path, nil, nil); err == nil {
			t.Errorf("an agent may %s", method)
		}
	}
	list := &api.BudgetList{}
	w.do("GET", "/v1/budgets", nil, list)
	if len(list.Budgets) != 2 {
		t.Fatalf("%d budgets are listed, want the plan's and the sub-agent's", len(list.Budgets))
	}
	w.do("DELETE", "/v1/budgets/"+id, nil, nil)
	w.want(gate.Pending, writing(dir, "src/a.go", id, ""))
	w.want(gate.Pending, writing(dir, "src/x.go", sub.ID, "helper"))
	var log api.LogPage
	w.do("GET", "/v1/log?kind=admin&limit=5", nil, &log)
	if len(log.Records) == 0 || log.Records[0].Operation != "budget.revoke" {
		t.Errorf("the log does not say who took it back: %+v", log.Records)
	}
}
