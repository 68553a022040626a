package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestEditReachesAnAgentThatPolls: an agent that does not wait finds the edit
// in the state of its request, and repeating its own call runs the edited one,
// once.
func TestEditReachesAnAgentThatPolls(t *testing.T) {
	t.Parallel()
	w := begin(t)
	const edited = `{"description":"a test","name":"better"}`
	asked := w.want(gate.Pending, create("worse"))
	state := func() *api.RequestStatus {
		t.Helper()
		out := &api.RequestStatus{}
		if err := w.agent.Do(context.Background(), "GET", "/v1/requests/"+asked.Request, nil, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	next := &api.EditResponse{}
	w.do("POST", "/v1/approvals/"+asked.Request+"/edit", &api.EditRequest{Digest: w.look(asked.Request).Digest, Args: []byte(edited)}, next)
	if got := state(); got.State != "edited" || got.EditedTo != next.Request || got.EditedArgs != nil {
		t.Errorf("before it is approved the request is %+v", got)
	}
	// Until the edit is approved the call waits for that, and files nothing new.
	if got := w.want(gate.Pending, create("worse")); got.Request != next.Request || got.Edited != nil {
		t.Errorf("the call waits for %s with %s, want %s", got.Request, got.Edited, next.Request)
	}
	if got := len(w.pending()); got != 1 {
		t.Errorf("%d requests wait", got)
	}
	w.approve(next.Request)
	if got := state(); string(got.EditedArgs) != edited {
		t.Errorf("the agent is told %s", got.EditedArgs)
	}
	ran := w.want(gate.Allowed, create("worse"))
	if string(ran.Edited) != edited || !strings.Contains(ran.Message, "edited_args") {
		t.Errorf("the agent would run %s: %s", ran.Edited, ran.Message)
	}
	w.done(ran)
	// It was approved once: the next asks anew, about the agent's own call.
	again := w.want(gate.Pending, create("worse"))
	if again.Request == asked.Request || again.Request == next.Request || again.Edited != nil {
		t.Errorf("a second time: %+v", again)
	}
	w.verify()
}

// TestEditThatCannotRun: an edit that breaks the parameters of its operation is refused to the person who
// makes it, in words; what was asked for still waits, and can be edited rightly.
func TestEditThatCannotRun(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, create("sound"))
	edit := func(args string) error {
		return w.person.Do(context.Background(), "POST", "/v1/approvals/"+asked.Request+"/edit",
			&api.EditRequest{Digest: w.look(asked.Request).Digest, Args: []byte(args)}, &api.EditResponse{})
	}
	for args, why := range map[string]string{
		`{"element_type":"skill","description":"d"}`:                           "name",
		`{"element_type":"skill","name":"sound"}`:                              "description",
		`{"element_type":"skill","name":7,"description":"d"}`:                  "name",
		`{"element_type":"skill","name":"n","description":"d","colour":"red"}`: "colour",
		`{"element_type":"sword","name":"n","description":"d"}`:                "sword",
		`{"element_type":"skill","name":"n","name":"m","description":"d"}`:     "",
		`[]`: "",
	} {
		err := edit(args)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the edit %s: %v", args, err)
		}
		if got := w.look(asked.Request); got.State != "pending" {
			t.Fatalf("after the edit %s the request is %s", args, got.State)
		}
	}
	if err := edit(`{"element_type":"skill","name":"sounder","description":"d"}`); err != nil {
		t.Errorf("a right edit: %v", err)
	}
}

// TestEditThatIsDenied: an edit that is not approved leaves nothing to run.
func TestEditThatIsDenied(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, create("worse"))
	next := &api.EditResponse{}
	w.do("POST", "/v1/approvals/"+asked.Request+"/edit", &api.EditRequest{Digest: w.look(asked.Request).Digest, Args: []byte(`{"element_type":"skill","name":"better","description":"a test"}`)}, next)
	if err := w.answer(next.Request, "deny", func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest} }); err != nil {
		t.Fatal(err)
	}
	if got := w.want(gate.Pending, create("worse")); got.Request == next.Request || got.Edited != nil {
		t.Errorf("after a denial: %+v", got)
	}
}

// TestAgentEndsItsSession: what it asked is withdrawn, and the end is on
// record.
func TestAgentEndsItsSession(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := w.want(gate.Pending, create("x"))
	other := w.Client(w.Gate.Agent(w.credential, "other"))
	refused(t, "another agent ends it", other.Do(context.Background(), "DELETE", "/v1/sessions/"+asked.Session, nil, nil), http.StatusForbidden, http.StatusNotFound)
	if err := w.agent.Do(context.Background(), "DELETE", "/v1/sessions/"+asked.Session, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.look(asked.Request); got.State != "cancelled" {
		t.Errorf("its request is %s", got.State)
	}
	list := &api.LogPage{}
	w.do("GET", "/v1/log?operation=session.end", nil, list)
	if len(list.Records) != 1 || list.Records[0].Principal != "coder" {
		t.Errorf("on record is %+v", list.Records)
	}
	in := create("y")
	in.Session = asked.Session
	if err := w.agent.Do(context.Background(), "POST", "/v1/calls", in, &api.CallResponse{}); err == nil {
		if got := w.submit(in); got.Verdict != gate.Denied {
			t.Errorf("the ended session takes calls: %s", got.Message)
		}
	}
}
