package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
)

// Watch is what the console needs of the desk for codes, the danger zone and
// executions.
type Watch interface {
	// Challenges lists what waits for a code and notes who is shown it;
	// ChallengeIDs lists the ids alone, and shows nobody anything.
	Challenges(ctx context.Context, a admin.Actor) ([]admin.Challenge, error)
	ChallengeIDs(ctx context.Context) ([]string, error)
	ReleaseChallenge(ctx context.Context, a admin.Actor, id string, yes admin.Release) error
	RefuseChallenge(ctx context.Context, a admin.Actor, id string) error
	Danger(ctx context.Context) (admin.Danger, error)
	// Block shows a block with the challenge that releases it.
	Block(ctx context.Context, a admin.Actor, id string) (*admin.BlockView, error)
	Executions(ctx context.Context) ([]*autonomy.Execution, error)
}

// codes is what the list of challenges needs: them, and whether the person has
// a second factor to release with.
type codes struct {
	List   []admin.Challenge
	Factor bool
}

func (c *Console) codes(r *http.Request, who visitor) (out codes, err error) {
	if out.List, err = c.desk.Challenges(r.Context(), who.actor()); err != nil {
		return out, err
	}
	out.Factor, err = c.hasFactor(r, who)
	return out, err
}

// waitingCodes names the challenges that wait, so that a page notices when
// there is another.
func (c *Console) waitingCodes(r *http.Request) (string, error) {
	ids, err := c.desk.ChallengeIDs(r.Context())
	return strings.Join(ids, " "), err
}

// dangerPage shows who is blocked, with the code that releases each: looking
// at a block makes a challenge for it.
func (c *Console) dangerPage(w http.ResponseWriter, r *http.Request, who visitor) error {
	zone, err := c.desk.Danger(r.Context())
	if err != nil {
		return err
	}
	var page struct {
		Blocks     []*admin.BlockView
		Codes      codes
		Executions []*autonomy.Execution
	}
	for _, b := range zone.Blocks {
		v, err := c.desk.Block(r.Context(), who.actor(), b.ID)
		if err != nil {
			return err
		}
		page.Blocks = append(page.Blocks, v)
	}
	if page.Codes, err = c.codes(r, who); err != nil {
		return err
	}
	if page.Executions, err = c.desk.Executions(r.Context()); err != nil {
		return err
	}
	return c.render(w, r, who, "danger", frame{Title: "Danger zone", Nav: "danger", Page: page})
}

func (c *Console) releaseChallenge(r *http.Request, who visitor) (done, error) {
	f := r.PostForm
	d := done{"/danger", "Released.", "allow"}
	return d, c.desk.ReleaseChallenge(r.Context(), who.actor(), r.PathValue("id"), admin.Release{
		Challenge: f.Get("challenge"), Code: strings.TrimSpace(f.Get("code")), All: f.Get("all") == "yes",
	})
}

func (c *Console) refuseChallenge(r *http.Request, who visitor) (done, error) {
	return done{"/danger", "Refused. Its code is void.", "deny"}, c.desk.RefuseChallenge(r.Context(), who.actor(), r.PathValue("id"))
}
