package call_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// TestEncoding: what is written quickly is what is written plainly, whatever
// of it was made in advance.
func TestEncoding(t *testing.T) {
	t.Parallel()
	vote := func(s call.Stage, reason string) call.Vote {
		return call.Vote{Stage: s, Source: "a \"b\" <c>", Rule: "r", Level: call.AutoApprove, Reason: reason}
	}
	plain := call.Ballot{Stage: call.StageRisk, Level: call.AutoApprove, Votes: []call.Vote{vote(call.StageRisk, "one"), vote(call.StageRisk, "two")},
		Conflicts: []call.Conflict{{Source: "x", Wanted: call.Deny, Reason: "lost"}}}
	tests := map[string]call.Decision{
		"empty":      {},
		"plain":      {Level: call.AutoApprove, Ballots: []call.Ballot{plain, plain}, Digest: call.Digest{1, 2}, World: call.Digest{3}, Policy: call.Digest{0xff}},
		"shared":     {Level: call.AutoApprove, Ballots: []call.Ballot{plain.Share(), plain, plain.Share()}},
		"pinned":     {Level: call.ConfirmSingleUse, Ballots: []call.Ballot{plain.Share()}, Pinned: true, TakesCode: true},
		"guaranteed": {Ballots: []call.Ballot{plain}, Requires: []call.Guarantee{{Name: "confined"}}},
		"no vote":    {Ballots: []call.Ballot{{}, plain, {}}},
	}
	for name, d := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.AppendJSON([]byte("before "))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("before "+string(want), string(got)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			votes := []call.Vote{}
			for v := range d.Votes() {
				votes = append(votes, v)
			}
			if want, err = json.Marshal(votes); err != nil {
				t.Fatal(err)
			}
			if got, err = d.AppendVotes(nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("votes (-want +got):\n%s", diff)
			}
		})
	}
}
