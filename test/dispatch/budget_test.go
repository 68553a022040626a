package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// TestBudgetOfARun: attack row 21. A run that is asked for inside a plan draws from
// the part of the plan's budget that was set aside for it: what is in it is not
// asked about again, more than that is, nobody else can spend it meanwhile, and
// what is left goes back. A run that gets none has none.
func TestBudgetOfARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "grok", cli(t, "grok").Program)
	agent := h.Client(h.Agent(h.credential, "coder"))
	do := func(path string, in, out any) error { return agent.Do(context.Background(), "POST", path, in, out) }
	request := func(in args) *dispatch.Answer {
		t.Helper()
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		got, a := &api.ToolResponse{}, &dispatch.Answer{}
		if err := do("/v1/tools/grok_request", &api.ToolRequest{Args: raw, Dir: h.dir}, got); err != nil {
			t.Logf("refused: %v", err)
			return nil
		}
		if err := json.Unmarshal(got.Answer, a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	in := &api.PlanRequest{Name: "make files", Dir: h.dir, Calls: []api.PlannedCall{
		{Operation: "Bash", Args: []byte(`{"command":"touch one.txt"}`)}, {Operation: "Bash", Args: []byte(`{"command":"touch one.txt"}`)},
		{Operation: "Bash", Args: []byte(`{"command":"touch two.txt"}`)},
	}}
	plan := &api.CallResponse{}
	if err := do("/v1/plans", in, plan); err != nil || plan.Verdict != gate.Pending {
		t.Fatalf("%+v, %v", plan, err)
	}
	h.approve(nil)
	if err := do("/v1/plans", in, plan); err != nil || plan.Budget == nil {
		t.Fatalf("%+v, %v", plan, err)
	}
	left := func() map[string]int {
		t.Helper()
		b, n := &grant.Budget{}, map[string]int{}
		if err := agent.Do(context.Background(), "GET", "/v1/budgets/"+plan.Budget.ID, nil, b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Lines {
			n[fmt.Sprint(b.Lines[i].Need)] = b.Lines[i].Left()
		}
		return n
	}
	const one, two = "fs.write:./one.txt", "fs.write:./two.txt"
	if l := left(); l[one] != 2 || l[two] != 1 {
		t.Fatalf("the plan's budget: %v", l)
	}
	share := func(need string, uses int) args {
		return args{"id": plan.Budget.ID, "needs": []args{{"need": need, "uses": uses}}}
	}

	h.model.Play(canary.Step{Command: "touch one.txt"})
	if request(args{"prompt": "without a part"}); h.exists("one.txt") {
		t.Error("a run without a part drew from the budget")
	}
	for _, more := range []args{share(one, 3), share("fs.write:./**", 1), {"id": "b_nobody", "needs": []args{{"need": one}}}} {
		if a := request(args{"prompt": "too much", "budget": more}); a != nil {
			t.Errorf("%v was set aside: %+v", more, a)
		}
	}
	meanwhile := -1
	h.model.Play(canary.Step{Command: "touch one.txt"}, canary.Step{Make: func([]string) canary.Step {
		meanwhile = left()[one]
		return canary.Step{Command: "touch two.txt"}
	}})
	a := request(args{"prompt": "with a part", "budget": share(one, 2)})
	if a == nil || !a.Success || !h.exists("one.txt") {
		t.Errorf("what is in the part was asked about: %+v", a)
	}
	if h.exists("two.txt") {
		t.Error("what is not in the part ran")
	}
	for i := 0; i < 200 && left()[one] == 0; i++ { // the answer may come before the run's folder and its part are cleared away
		time.Sleep(50 * time.Millisecond)
	}
	if l := left(); meanwhile != 0 || l[one] != 1 || l[two] != 1 {
		t.Errorf("%d left while it ran, afterwards %v", meanwhile, l)
	}
}
