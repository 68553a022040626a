package admin

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// PastCall is an earlier call of the same agent.
type PastCall struct {
	Call  string    `json:"call"`
	At    time.Time `json:"at"`
	Words string    `json:"words"`
}

// historyDepth is how many earlier calls are looked at.
const historyDepth = 100

// history says for each offer of a waiting request which earlier calls of the
// agent, of those that asked, it would have covered: what a person takes on
// shows best in what it would have meant.
func (d *Desk) history(ctx context.Context, r *Request) ([][]PastCall, error) {
	out := make([][]PastCall, len(r.Offers))
	if r.Decision == nil || r.Call == nil || len(r.Offers) < 2 {
		return out, nil
	}
	page, err := d.opts.Log.List(ctx, audit.Filter{
		Kind: "call", Principal: r.Call.Principal.Agent, Level: call.ConfirmSession.String(),
	}, "", historyDepth)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{r.CallID: true}
	for _, rec := range page.Records {
		if seen[rec.CallID] {
			continue
		}
		seen[rec.CallID] = true
		full, err := d.opts.Log.Get(ctx, rec.ID)
		if err != nil {
			return nil, err
		}
		var past struct {
			Call     *call.Call     `json:"call"`
			Facts    *Facts         `json:"facts"`
			Decision *call.Decision `json:"decision"`
		}
		if json.Unmarshal(full.Body, &past) != nil || past.Call == nil || past.Decision == nil {
			continue // retention has dropped it
		}
		words := past.Call.Operation
		if past.Facts != nil && past.Facts.Words != "" {
			words = past.Facts.Words
		}
		for i, o := range r.Offers {
			if wouldCover(&o, r.Decision, past.Call, past.Decision) {
				out[i] = append(out[i], PastCall{Call: rec.CallID, At: rec.Time, Words: words})
			}
		}
	}
	return out, nil
}

// wouldCover says whether a grant as offered would have let an earlier call
// through.
func wouldCover(o *grant.Offer, shown *call.Decision, c *call.Call, d *call.Decision) bool {
	if o.Use != grant.Session {
		return false
	}
	g := grant.Grant{
		ID: "offer", Use: o.Use, Principal: c.Principal, Votes: grant.Keys(shown), Operation: o.Operation, ElementType: o.ElementType, Needs: o.Needs,
	}
	_, open := grant.Cover(c, d, []grant.Grant{g}, policy.Holds)
	return len(open) == 0
}
