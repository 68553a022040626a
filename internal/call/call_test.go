package call_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw, want string
		refused         bool
	}{
		{name: "nothing", raw: "", want: "{}"},
		{name: "white space", raw: " \n\t", want: "{}"},
		{name: "sorted, no space", raw: "{ \"b\": 1,\n \"a\": [ 1, 2 ] }", want: `{"a":[1,2],"b":1}`},
		{name: "escapes", raw: `{"a":"A\u00e9\/"}`, want: `{"a":"Aé/"}`},
		{name: "a number as it came", raw: `{"a":1.0,"b":1e2,"c":0.10}`, want: `{"a":1.0,"b":1e2,"c":0.10}`},
		{name: "2^53+1", raw: `{"a":9007199254740993}`, want: `{"a":9007199254740993}`},
		{name: "letter case", raw: `{"name":"danger","NAME":"safe"}`, want: `{"NAME":"safe","name":"danger"}`},
		{name: "64 levels", raw: nested(64), want: nested(64)},
		{name: "65 levels", raw: nested(65), refused: true},
		{name: "65 levels of lists", raw: `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}", refused: true},
		{name: "very deep", raw: strings.Repeat("[", 200_000), refused: true},
		{name: "duplicate", raw: `{"a":1,"a":2}`, refused: true},
		{name: "duplicate by escape", raw: `{"a":1,"\u0061":2}`, refused: true},
		{name: "duplicate deep down", raw: `{"x":[{"a":1,"a":2}]}`, refused: true},
		{name: "trailing data", raw: `{} {}`, refused: true},
		{name: "trailing rubbish", raw: `{}x`, refused: true},
		{name: "cut off", raw: `{"a":`, refused: true},
		{name: "invalid UTF-8", raw: "{\"a\":\"\xff\"}", refused: true},
		{name: "lone surrogate", raw: `{"a":"\ud800"}`, refused: true},
		{name: "comment", raw: `{/* x */}`, refused: true},
		{name: "trailing comma", raw: `{"a":1,}`, refused: true},
		{name: "not a number", raw: `{"a":NaN}`, refused: true},
		{name: "a list", raw: `[]`, refused: true},
		{name: "a text", raw: `"x"`, refused: true},
		{name: "null", raw: `null`, refused: true},
		{name: "as large as may be", raw: `{"a":"` + strings.Repeat("x", call.MaxArgs-8) + `"}`, want: `{"a":"` + strings.Repeat("x", call.MaxArgs-8) + `"}`},
		{name: "too large", raw: `{"a":"` + strings.Repeat("x", call.MaxArgs-7) + `"}`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := call.Canonical([]byte(tt.raw))
			var invalid *call.InvalidError
			switch {
			case tt.refused:
				if !errors.As(err, &invalid) || got != nil {
					t.Errorf("%.80s is taken: %v", got, err)
				}
			case err != nil || string(got) != tt.want:
				t.Errorf("got %.80s, %v; want %.80s", got, err, tt.want)
			}
		})
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.0,2e5,-0]}`, `{"a":{"a":{}}}`, `{"\u0061":"\ud83d\ude00"}`, `[1]`, `{"a":1,"a":1}`, "{\"a\":\"\x80\"}", `{"n":9007199254740993}`, ` `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		got, err := call.Canonical(raw)
		if !bytes.Equal(before, raw) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		if !json.Valid(got) || got[0] != '{' || len(got) > call.MaxArgs {
			t.Fatalf("%q is no JSON object", got)
		}
		again, err := call.Canonical(got)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q is not its own canonical form: %q, %v", got, again, err)
		}
	})
}

func sample() call.Call {
	return call.Call{
		ID: "1", Kind: call.External, Surface: "api", Principal: call.Principal{Agent: "a", Session: "s", Path: "p"},
		Operation: "Bash", ElementType: "skill", Args: []byte(`{"command":"ls"}`), Dir: "/w", Forward: []call.Field{{Name: "n", Value: "v"}},
		Note: "just looking", Parent: "0",
	}
}

// TestDigestCoversWhatHasAnEffect is ATTACKS 13: every field that reaches the
// effect changes the digest, and nothing else does.
func TestDigestCoversWhatHasAnEffect(t *testing.T) {
	t.Parallel()
	base := sample()
	digest := func(change func(*call.Call)) call.Digest {
		c := sample()
		change(&c)
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		return c.Digest()
	}
	want := digest(func(*call.Call) {})
	effects := map[string]func(*call.Call){
		"kind": func(c *call.Call) { c.Kind = call.Dispatch }, "surface": func(c *call.Call) { c.Surface = "hook" },
		"agent": func(c *call.Call) { c.Principal.Agent = "b" }, "session": func(c *call.Call) { c.Principal.Session = "t" },
		"path": func(c *call.Call) { c.Principal.Path = "" }, "operation": func(c *call.Call) { c.Operation = "Sh" },
		"element type": func(c *call.Call) { c.ElementType = "agent" }, "args": func(c *call.Call) { c.Args = []byte(`{"command":"rm"}`) },
		"directory": func(c *call.Call) { c.Dir = "/x" }, "forwarded name": func(c *call.Call) { c.Forward[0].Name = "m" },
		"forwarded value": func(c *call.Call) { c.Forward[0].Value = "w" }, "forwarded less": func(c *call.Call) { c.Forward = nil },
		"forwarded more": func(c *call.Call) { c.Forward = append(c.Forward, call.Field{}) },
		"field moved":    func(c *call.Call) { c.Surface, c.Principal.Agent = "apia", "" },
	}
	seen := map[call.Digest]string{want: "the call itself"}
	for name, change := range effects {
		d := digest(change)
		if other, ok := seen[d]; ok {
			t.Errorf("%s gives the digest of %s", name, other)
		}
		seen[d] = name
	}
	for name, change := range map[string]func(*call.Call){
		"id": func(c *call.Call) { c.ID = "2" }, "note": func(c *call.Call) { c.Note = "" }, "parent": func(c *call.Call) { c.Parent = "" },
		"spelling": func(c *call.Call) { c.Args = []byte(` {"command" : "l\u0073"}`) },
	} {
		if digest(change) != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	if base.Digest().IsZero() || len(want.String()) != 64 {
		t.Errorf("digest %s", want)
	}
	var back call.Digest
	if err := back.UnmarshalText([]byte(want.String())); err != nil || back != want {
		t.Errorf("the digest reads back as %s: %v", back, err)
	}
	if back.UnmarshalText([]byte("zz")) == nil || back.UnmarshalText([]byte(strings.Repeat("zz", 32))) == nil {
		t.Error("rubbish is a digest")
	}
}

// TestDigestOfLargeNumbers: 2^53 and 2^53+1 are the same to a float.
func TestDigestOfLargeNumbers(t *testing.T) {
	t.Parallel()
	seen := make(map[call.Digest]string)
	for _, n := range []string{"9007199254740992", "9007199254740993", "9007199254740992.0", "1e400", "1e401", "0.1", "0.10000000000000001"} {
		c := sample()
		c.Args = []byte(`{"n":` + n + `}`)
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[c.Digest()]; ok {
			t.Errorf("%s and %s have one digest", n, other)
		}
		seen[c.Digest()] = n
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	native := func(operation, elementType, args string) call.Call {
		return call.Call{Kind: call.Native, Operation: operation, ElementType: elementType, Args: []byte(args)}
	}
	tests := []struct {
		name           string
		call           call.Call
		operation, typ string
		wrong          string // the field that is refused
	}{
		{name: "alias", call: native("add_memory_entry", "", ""), operation: "addEntry"},
		{name: "canonical", call: native("addEntry", "", ""), operation: "addEntry"},
		{name: "an alias of another kind stays", call: call.Call{Kind: call.External, Operation: "search"}, operation: "search"},
		{name: "unknown native", call: native("make", "", ""), operation: "make"},
		{name: "type in the call", call: native("get_element", "personas", ""), operation: "get_element", typ: "persona"},
		{name: "element_type", call: native("get_element", "", `{"element_type":"memories"}`), operation: "get_element", typ: "memory"},
		{name: "elementType", call: native("get_element", "", `{"elementType":"skill"}`), operation: "get_element", typ: "skill"},
		{name: "type", call: native("get_element", "", `{"type":"agents"}`), operation: "get_element", typ: "agent"},
		{name: "another type", call: native("get_element", "", `{"type":"json"}`), operation: "get_element"},
		{name: "the same twice", call: native("get_element", "skill", `{"type":"skills","elementType":"skill"}`), operation: "get_element", typ: "skill"},
		{name: "two types", call: native("get_element", "skill", `{"type":"agent"}`), wrong: "element_type"},
		{name: "two types in the arguments", call: native("get_element", "", `{"element_type":"skill","elementType":"agent"}`), wrong: "element_type"},
		{name: "external keeps its type", call: call.Call{Kind: call.External, Operation: "x", Args: []byte(`{"type":"agents"}`)}, operation: "x"},
		{name: "no kind", call: call.Call{Operation: "x"}, wrong: "kind"},
		{name: "no operation", call: call.Call{Kind: call.External}, wrong: "operation"},
		{name: "control character", call: native("get\nelement", "", ""), wrong: "operation"},
		{name: "invalid UTF-8", call: call.Call{Kind: call.External, Operation: "x", Surface: "\xff"}, wrong: "surface"},
		{name: "long name", call: call.Call{Kind: call.External, Operation: strings.Repeat("x", 513)}, wrong: "operation"},
		{name: "NUL in the directory", call: call.Call{Kind: call.External, Operation: "x", Dir: "/a\x00"}, wrong: "dir"},
		{name: "bad arguments", call: native("get_element", "", `{"a":1,"a":2}`), wrong: "args"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := tt.call
			err := c.Normalize()
			var invalid *call.InvalidError
			if tt.wrong != "" {
				if !errors.As(err, &invalid) || invalid.Field != tt.wrong {
					t.Errorf("got %v, want a problem with %s", err, tt.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.operation, tt.typ}, []string{c.Operation, c.ElementType}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNeed(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"fs.read", "fs.write:./src/**", "net.egress:api.example.com:443"} {
		if got := call.ParseNeed(s).String(); got != s {
			t.Errorf("%s reads as %s", s, got)
		}
	}
	if n := call.ParseNeed("net.egress:a:443"); n.Capability != call.NetEgress || n.Scope != "a:443" {
		t.Errorf("%+v", n)
	}
}
