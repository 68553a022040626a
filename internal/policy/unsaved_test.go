package policy_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// TestUnsavedWorkIsNeverLostByASessionGrant takes the loosest profile one can
// write, which asks about deletions once per session, and a session grant for
// all of them: a call that destroys what is saved nowhere else still asks, for
// this very use and with the names of the files, and no other answer is offered.
func TestUnsavedWorkIsNeverLostByASessionGrant(t *testing.T) {
	t.Parallel()
	loose := user(t, `profile = "loose"
[risk]
irreversible = "AUTO_APPROVE"
confirm_at = 100
[profiles.loose.classes]
safe = "AUTO_APPROVE"
mutating = "CONFIRM_SESSION"
network = "CONFIRM_SESSION"
destructive = "AUTO_APPROVE"
unknown = "AUTO_APPROVE"
[profiles.loose.capabilities]
"fs.read" = "AUTO_APPROVE"
"fs.write" = "CONFIRM_SESSION"
"fs.delete" = "CONFIRM_SESSION"
"net.egress" = "CONFIRM_SESSION"
"proc.exec" = "AUTO_APPROVE"
"data.user" = "CONFIRM_SESSION"
"secrets.access" = "CONFIRM_SINGLE_USE"
`)
	in := external(t, "Bash", facts.Facts{Class: "destructive", Needs: needs("fs.delete:./a")})
	saved := loose.Decide(in, nil)
	if saved.Level != call.ConfirmSession {
		t.Fatalf("without unsaved work it is %s, because %s", saved.Level, saved.Why())
	}
	everything := grant.Grant{
		ID: "g", Use: grant.Session, Principal: in.Call.Principal, Votes: grant.Keys(&saved), Needs: needs("fs.delete:./a"),
	}
	if _, open := grant.Cover(in.Call, &saved, []grant.Grant{everything}, nil); len(open) > 0 {
		t.Fatalf("the session grant does not even cover saved work: %v", open)
	}
	in.Facts.Destroys = []string{"a (changed)"}
	lost := loose.Decide(in, nil)
	everything.Votes = grant.Keys(&lost) // even one that was shown this very vote
	if _, open := grant.Cover(in.Call, &lost, []grant.Grant{everything}, nil); len(open) != 1 || open[0].Rule != "unsaved" {
		t.Errorf("unsaved work is covered by a session grant; open votes: %v", open)
	}
	if offers := grant.Offers(in.Call, &lost, call.Terms{}); len(offers) != 1 || offers[0].Use != grant.Once {
		t.Errorf("offered %v, want this call, once", offers)
	}
	if why := lost.Why(); why != "it destroys work that is saved nowhere else: a (changed)" {
		t.Errorf("the reason does not name the file: %q", why)
	}
}
