package console_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// The danger zone of the desk in memory.

func (d *desk) Challenges(context.Context, admin.Actor) ([]admin.Challenge, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.challenges, d.broken
}

func (d *desk) ChallengeIDs(context.Context) (ids []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.challenges {
		ids = append(ids, c.ID)
	}
	return ids, d.broken
}

func (d *desk) ReleaseChallenge(_ context.Context, a admin.Actor, id string, yes admin.Release) error {
	d.change(func() { d.act(a, "release %s %s %s %v", id, yes.Challenge, yes.Code, yes.All) })
	return nil
}

func (d *desk) RefuseChallenge(_ context.Context, a admin.Actor, id string) error {
	d.change(func() { d.act(a, "refuse %s", id) })
	return nil
}

func (d *desk) Danger(context.Context) (admin.Danger, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return admin.Danger{Blocks: d.blocks}, d.broken
}

func (d *desk) Block(_ context.Context, _ admin.Actor, id string) (*admin.BlockView, error) {
	for _, b := range d.blocks {
		if b.ID == id {
			return &admin.BlockView{Block: b}, nil
		}
	}
	return nil, public("no such block")
}

func (d *desk) Executions(context.Context) ([]*autonomy.Execution, error) { return nil, nil }

// TestDangerPage: blocks and codes are shown to who is signed in, and what is
// released is what the form says.
func TestDangerPage(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	d := cl.desk
	d.blocks = []session.Block{{ID: "b_1", Agent: "coder", Reason: "<b>went wild</b>", By: "gatehouse", At: day}}
	d.challenges = []admin.Challenge{
		{ID: "ch_1", Kind: "block", Subject: "b_1", Agent: "coder", Words: "releases coder", Code: "K7M2PX", State: "open", Expires: time.Now().Add(time.Minute)},
		{ID: "ch_2", Kind: "pause", Subject: "p_1", Agent: "coder", Words: "lets it go on", Code: "ABCDEF", State: "given", Expires: time.Now().Add(time.Minute)},
	}
	page := cl.get("/danger")
	for _, want := range []string{"K7M2PX", "ABCDEF", "coder", "&lt;b&gt;went wild", "handed in the right code"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if inbox := cl.get("/"); !strings.Contains(inbox, "K7M2PX") {
		t.Error("the inbox does not show the codes")
	}
	cl.says("/challenges/ch_1/release", url.Values{"challenge": {"K7M2PX"}, "code": {"123456"}, "all": {"yes"}})
	cl.says("/challenges/ch_2/refuse", url.Values{})
	acts := strings.Join(d.acts, "\n")
	if !strings.Contains(acts, "release ch_1 K7M2PX 123456 true") || !strings.Contains(acts, "refuse ch_2") {
		t.Errorf("what was done: %s", acts)
	}
}
