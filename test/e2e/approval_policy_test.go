package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// asks is a skill with an approval policy.
func asks(name, policy string) string {
	return persona(name, "gatekeeper:\n  externalRestrictions:\n    description: test\n    approvalPolicy:\n"+policy)
}

// asked has a host ask about a call that must wait, and returns the request.
func (k *keeper) asked(tool string, input map[string]any) *admin.Request {
	k.t.Helper()
	if b, message := k.promptFor(tool, input); b != "deny" {
		k.t.Fatalf("%s %v: %s %s", tool, input, b, message)
	}
	waiting := k.requests()
	if len(waiting) != 1 {
		k.t.Fatalf("%s %v: %d requests wait, want one", tool, input, len(waiting))
	}
	return k.look(waiting[0].ID)
}

// take approves a request as one of its offers says.
func (k *keeper) take(r *admin.Request, offer int) {
	k.t.Helper()
	if err := k.person.Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Offer: offer}, nil); err != nil {
		k.t.Fatalf("approve %s: %v", r.ID, err)
	}
}

// goes has a host ask about a call that must be let through.
func (k *keeper) goes(tool string, input map[string]any) {
	k.t.Helper()
	if b, message := k.promptFor(tool, input); b != "allow" {
		k.t.Errorf("%s %v: %s %s", tool, input, b, message)
	}
}

func edit(path string) map[string]any {
	return map[string]any{"file_path": path, "content": "x"}
}

// TestApprovalPolicyForTheSession: an approval policy whose scope is the
// session asks in a way that an answer for the session meets: for the place
// that was shown, never for the whole tool, never for what is dangerous, and
// no longer than it says.
func TestApprovalPolicyForTheSession(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"skills/asks.md": asks("asks", "      requireApproval: [moderate, dangerous]\n      defaultScope: tool_session\n      ttlSeconds: 600\n")})
	if out := k.Must("element", "lint", k.Home+"/elements/skills/asks.md"); strings.Contains(out, "defaultScope") || strings.Contains(out, "ttlSeconds") {
		t.Errorf("lint still objects: %s", out)
	}
	k.ok("activate_element", "skill", named("asks"))
	r := k.asked("Write", edit("/srv/site/a/one"))
	if len(r.Offers) < 2 || !r.Offers[1].Suggested || r.Offers[0].Suggested || !strings.Contains(r.Offers[1].Words, "10m0s at most") {
		t.Fatalf("offers: %+v", r.Offers)
	}
	if page := k.SignedIn(k.credential).Get("/requests/" + r.ID); !strings.Contains(page.Body, "what the active elements ask for") {
		t.Error("the page does not say which answer the elements have in mind")
	}
	k.take(r, 1)
	k.goes("Write", edit("/srv/site/a/one"))
	k.goes("Write", edit("/srv/site/a/two")) // the same place

	list := &api.GrantList{}
	k.do("GET", "/v1/grants", nil, list)
	if len(list.Grants) != 1 || list.Grants[0].Use != grant.Session || list.Grants[0].Expires.Sub(list.Grants[0].Given) != 10*time.Minute {
		t.Errorf("the grant: %+v", list.Grants)
	}
	// Elsewhere, and with the same tool: a question of its own.
	elsewhere := k.asked("Write", edit("/srv/other/one"))
	k.take(elsewhere, 0)
	k.goes("Write", edit("/srv/other/one"))
	// What is dangerous is asked about every time.
	if r := k.asked("Bash", map[string]any{"command": "rm -rf /srv/site/a"}); len(r.Offers) != 1 {
		t.Errorf("what destroys is offered for the session: %+v", r.Offers)
	}
	k.verify()
}

// TestApprovalPolicyForSingleCalls: under one whose scope is single, nothing is
// offered for the session, and an answer for the session that was given before
// does not count. Taking the policy out of force needs a person.
func TestApprovalPolicyForSingleCalls(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"skills/single.md": asks("single", "      defaultScope: single\n      ttlSeconds: 30\n")})
	before := k.asked("Write", edit("/srv/site/a/one"))
	if len(before.Offers) < 2 || before.Offers[1].Suggested || before.Offers[1].Seconds != 0 {
		t.Fatalf("offers without a policy: %+v", before.Offers)
	}
	k.take(before, 1)
	k.goes("Write", edit("/srv/site/a/one"))

	k.ok("activate_element", "skill", named("single")) // it only tightens
	r := k.asked("Write", edit("/srv/site/a/one"))
	if len(r.Offers) != 1 || r.Offers[0].Seconds != 30 {
		t.Fatalf("offers: %+v", r.Offers)
	}
	k.take(r, 0)
	list := &api.GrantList{}
	k.do("GET", "/v1/grants", nil, list)
	for _, g := range list.Grants {
		if g.Use == grant.Once && g.Expires.Sub(g.Given) != 30*time.Second {
			t.Errorf("an answer lives for %s", g.Expires.Sub(g.Given))
		}
	}
	k.goes("Write", edit("/srv/site/a/one"))
	again := k.asked("Write", edit("/srv/site/a/one"))
	k.take(again, 0)

	out := k.pending("deactivate_element", "skill", named("single"))
	if r := k.look(out.Told.Request); !r.Pinned || !strings.Contains(strings.Join(r.Facts.Loosens, " "), "answers count for longer") {
		t.Errorf("the person is told %q", r.Facts.Loosens)
	}
}
