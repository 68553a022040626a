package daemon

import (
	"io"
	"log/slog"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestRestIsTheEvents: what was written about another event is never taken for what an event says, whichever field it
// differs in.
func TestRestIsTheEvents(t *testing.T) {
	t.Parallel()
	r := newRecorder(slog.New(slog.NewTextHandler(io.Discard, nil)))
	allowed := func() stored {
		return stored{
			Verdict: &gate.Ruling{Verdict: gate.Allowed, By: []string{"policy"}, Channel: []string{"policy"}, Reason: "why"},
			Start:   &gate.Start{Runs: "host"}, Manifest: "m",
		}
	}
	ended := func() stored { return stored{Outcome: &gate.End{Outcome: gate.Succeeded}, Manifest: "m"} }
	var all []stored
	for _, like := range []func() stored{allowed, ended} {
		all = append(all, like(), like())
		for _, section := range []string{"", "Verdict", "Start", "Outcome"} {
			of := func(s *stored) reflect.Value {
				v := reflect.ValueOf(s).Elem()
				if section != "" {
					v = v.FieldByName(section).Elem()
				}
				return v
			}
			first := like()
			if !of(&first).IsValid() {
				continue
			}
			for i := range of(&first).NumField() {
				other := like()
				change(of(&other).Field(i))
				all = append(all, other)
			}
		}
	}
	for range 2 {
		for _, s := range all {
			want, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := r.rest(s); err != nil || string(got) != string(want) {
				t.Errorf("%s is written as %s, error %v", want, got, err)
			}
		}
	}
}

// change makes a value another.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8:
		v.SetUint(0)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	}
}

// TestRedactorKnowsAgain: a text that was clean is clean under the same names only, and one that is not is never.
func TestRedactorKnowsAgain(t *testing.T) {
	t.Parallel()
	r := newRecorder(slog.New(slog.NewTextHandler(io.Discard, nil)))
	const secret = "with token ghp_R8x2LqZ5vN1kTy7WbC4dFg9HjM3pSa6UeXoQ" // of no account
	for range 3 {
		if got := r.text("nothing to object"); got != "nothing to object" {
			t.Errorf("a clean text became %q", got)
		}
		if got := r.text(secret); got == secret {
			t.Error("a secret stays")
		}
	}
}
