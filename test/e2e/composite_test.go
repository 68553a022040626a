package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	sdk "github.com/seed-3ebc6b8a/gatehouse/tool"
)

type page struct {
	Path string `json:"path" gate:"write"`
	Text string `json:"text" gate:"text"`
}

type site struct {
	Pages []string `json:"pages" gate:"text"`
	// More is a page that the tool does not plan.
	More string `json:"more,omitzero" gate:"text"`
}

// TestCompositeToolsPlan: a composite tool says beforehand what it will call,
// a person is asked once about all of it, its calls draw from that, and what
// was not planned is decided by itself.
func TestCompositeToolsPlan(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\n[tools]\nwrite_page = \"file.write\"\npublish = \"agent.note\"\n")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writePage := sdk.New(sdk.Spec{Name: "write_page", Policy: &sdk.Policy{Risk: sdk.Low, Filesystem: sdk.Filesystem{Read: sdk.None, Write: sdk.Only("./site/**", "./other/**")}}},
		func(_ context.Context, env *sdk.Env, in page) (string, error) {
			return in.Path, env.WriteFile(in.Path, []byte(in.Text))
		})
	step := func(name string) sdk.Step { return sdk.Step{Tool: "write_page", Args: page{Path: name, Text: "x"}} }
	publish := sdk.Plan(sdk.New(sdk.Spec{Name: "publish", Parts: []string{"write_page"}, Policy: &sdk.Policy{Risk: sdk.Low, Network: sdk.None}},
		func(ctx context.Context, env *sdk.Env, in site) (string, error) {
			for _, name := range append(in.Pages, in.More) {
				if name == "" {
					continue
				}
				if _, err := env.Call(ctx, "write_page", step(name).Args); err != nil {
					return "", err
				}
			}
			return "published", nil
		}), func(in site) []sdk.Step {
		var steps []sdk.Step
		for _, name := range in.Pages {
			steps = append(steps, step(name))
		}
		return steps
	})
	gate, err := sdk.Connect(sdk.GateOptions{Home: w.Home, TokenFile: tokenFile(t, w.token), Dir: dir, Wait: 1})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := sdk.NewAgent(sdk.AgentSpec{Name: "publisher", Tools: []*sdk.Tool{writePage, publish}, Gate: gate, Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	call := func(args string) sdk.Outcome {
		return agent.Invoke().Call(t.Context(), "publish", json.RawMessage(args))
	}
	for _, sub := range []string{"site", "other"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	// One question about both pages, then it runs.
	const both = `{"pages":["site/a","site/b"]}`
	out := call(both)
	if out.Pending == "" {
		t.Fatalf("nobody was asked: %+v", out)
	}
	r := w.look(out.Pending)
	if !strings.Contains(r.Facts.Words, "site/a") || !strings.Contains(r.Facts.Words, "site/b") {
		t.Errorf("the person does not see the steps: %s", r.Facts.Words)
	}
	w.approve(out.Pending)
	if out = call(both); out.Denied || out.Err != nil {
		t.Fatalf("approved, and then: %+v", out)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := os.Stat(filepath.Join(dir, "site", name)); err != nil {
			t.Error(err)
		}
	}
	if n := drew(t, w, "write_page"); n != 2 {
		t.Errorf("%d calls drew from the budget, want 2", n)
	}
	// A call beyond the plan is not covered by its approval.
	const beyond = `{"pages":["site/c"],"more":"other/d"}`
	out = call(beyond)
	w.approve(out.Pending)
	if out = call(beyond); out.Err == nil || !strings.Contains(out.Err.Error(), "needs a person") {
		t.Errorf("a call that was not planned: %+v", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "other", "d")); err == nil {
		t.Error("what was not planned ran without a question")
	}
	// What a step's own tool does not declare is not even asked about.
	if out = call(`{"pages":["/etc/x"]}`); !out.Denied || out.Pending != "" || !strings.Contains(out.Reason, "policy") {
		t.Errorf("a step beyond its declaration: %+v", out)
	}
}

// drew counts the records of an operation that drew from a budget.
func drew(t *testing.T, w *world, operation string) int {
	t.Helper()
	page, n := &api.LogPage{}, 0
	w.do("GET", "/v1/log?operation="+operation, nil, page)
	for _, r := range page.Records {
		one := &admin.Record{}
		w.do("GET", "/v1/log/"+r.ID, nil, one)
		if strings.Contains(string(one.Body), `"budget":"b_`) {
			n++
		}
	}
	return n
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, fmt.Appendln(nil, token), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
