package call_test

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
		"votes":      {Ballots: []call.Ballot{{Stage: call.StageSelf, Level: call.Deny, Votes: []call.Vote{vote(call.StageRisk, "one"), vote(call.StageSelf, "\u2028")}}}},
		"evidence":   {Ballots: []call.Ballot{{Votes: []call.Vote{{Evidence: []call.Evidence{{Where: "x"}}}}}}},
		"no need":    {Ballots: []call.Ballot{{Votes: []call.Vote{{Need: &call.Need{}}, {Evidence: []call.Evidence{}}}}}},
		"no list":    {Ballots: []call.Ballot{{Votes: []call.Vote{}, Conflicts: []call.Conflict{}}}},
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

// TestCallEncoding: a call that is written quickly is written as it is plainly.
func TestCallEncoding(t *testing.T) {
	t.Parallel()
	full := call.Call{
		ID: "c_1", Kind: call.External, Surface: "mcp", Principal: call.Principal{Agent: "a \"b\" <c>", Session: "s\u2028", Path: "x/y"},
		Operation: "mcp__a__b", Args: jsontext.Value("{\"a\":\"\u2028\",\"b\":[1.50,null]}"), Dir: "/w é", Forward: []call.Field{{Name: "a", Value: "\n"}, {Name: "b"}},
		Held: true, Sessionless: true, Rewrites: true,
	}
	// Each field alone, and all without it, so that a field that is added later and forgotten is found.
	calls := []call.Call{{}, full}
	for i := range reflect.TypeFor[call.Call]().NumField() {
		alone, without := call.Call{}, full
		reflect.ValueOf(&without).Elem().Field(i).SetZero()
		f := reflect.ValueOf(&alone).Elem().Field(i)
		if f.Set(reflect.ValueOf(full).Field(i)); f.IsZero() {
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Uint8:
				f.SetUint(1)
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			default:
				t.Fatalf("how is %s set?", reflect.TypeFor[call.Call]().Field(i).Name)
			}
		}
		calls = append(calls, alone, without)
	}
	calls = append(calls, call.Call{Forward: []call.Field{}})
	for _, c := range calls {
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.AppendJSON([]byte("before "))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("before "+string(want), string(got)); diff != "" {
			t.Errorf("call (-want +got):\n%s", diff)
		}
	}
	if _, err := (&call.Call{Surface: "\xff"}).AppendJSON(nil); err == nil {
		t.Error("what is no text was written")
	}
}
