package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// TestParseRefuses: what two readers could read in two ways is not read at all.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"the same name twice":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping"}`,
		"twice within the arguments": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}`,
		"twice within the metadata":  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1,"a":2}}}`,
		"a batch":                    `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"trailing data":              `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"tools/call"}`,
		"invalid UTF-8":              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
		"a number as method":         `{"jsonrpc":"2.0","id":1,"method":1}`,
		"an object as id":            `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		"the wrong version":          `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		"no version":                 `{"id":1,"method":"ping"}`,
		"a request and a response":   `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`,
		"a result and an error":      `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
		"nothing":                    ``,
		"another case":               `{"jsonrpc":"2.0","id":1,"Method":"ping"}`,
	} {
		if m, err := wire.Parse([]byte(raw)); err == nil {
			t.Errorf("%s: read as %q", name, m.Method)
		}
	}
	if _, err := wire.Parse([]byte(`[]`)); !errors.Is(err, wire.ErrBatch) {
		t.Errorf("a batch: %v", err)
	}
}

// TestCase: a name in another case is another name, as it is upstream.
func TestCase(t *testing.T) {
	t.Parallel()
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"danger","NAME":"safe"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.String("name") != "danger" {
		t.Errorf("the tool is read as %q", m.String("name"))
	}
}

// TestFidelity: whatever is replaced, all other bytes stay.
func TestFidelity(t *testing.T) {
	t.Parallel()
	const raw = ` { "jsonrpc":"2.0", "id": 9007199254740993, "x-vendor": [1.0, 1e2],
"method":"tools/call","params":{"name":"a\u0062","arguments":{"n":9007199254740993,"f":1.0,"z":-0},"_meta":{"progressToken":1.50}} } `
	m, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Value(m.ID)); got != "9007199254740993" {
		t.Errorf("id %s", got)
	}
	if m.String("name") != "ab" || string(m.Value(m.Meta("progressToken"))) != "1.50" {
		t.Errorf("name %q, token %s", m.String("name"), m.Value(m.Meta("progressToken")))
	}
	got := string(wire.Splice(m.Raw, wire.Edit{Span: m.ID, New: []byte("7")}, wire.Edit{Span: m.Param("name"), New: wire.Quote("q")}))
	want := strings.Replace(strings.Replace(raw, "9007199254740993, \"x", "7, \"x", 1), `"a\u0062"`, `"q"`, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = string(m.WithParams(map[string]jsontext.Value{"name": wire.Quote("q"), "_meta": nil, "new": jsontext.Value("1")}))
	if !strings.Contains(got, `{"name":"q","arguments":{"n":9007199254740993,"f":1.0,"z":-0},"new":1}`) {
		t.Errorf("with other parameters: %s", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"ttlMs":5000,"tools":[ {"name":"a","x":1.0} , {"name":"b"},{"name":"c"} ],"cacheScope":"public","nextCursor":"n"}}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.ParseList(m, "tools", "name")
	if err != nil {
		t.Fatal(err)
	}
	got := string(l.Write(func(it wire.Item) []byte {
		if it.Name == "b" {
			return nil
		}
		return it.Of(m.Raw)
	}, map[string]jsontext.Value{"ttlMs": jsontext.Value("0"), "cacheScope": jsontext.Value(`"private"`), "absent": jsontext.Value("1")}))
	const want = `{"jsonrpc":"2.0","id":1,"result":{"ttlMs":0,"tools":[{"name":"a","x":1.0},{"name":"c"}],"cacheScope":"private","nextCursor":"n"}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wire.Text(l.Value("nextCursor")) != "n" {
		t.Error("the cursor is lost")
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	const raw = `{"result":{"content":[{"uri":"a\"b","text":"uri"},{"uri":"c"}],"uri":"d","n":9007199254740993},"x":["uri"]}`
	got, err := wire.Rewrite([]byte(raw), []string{"/result/content/*/uri"}, func(s string) string { return "p+" + s })
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"result":{"content":[{"uri":"p+a\"b","text":"uri"},{"uri":"p+c"}],"uri":"d","n":9007199254740993},"x":["uri"]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	const stream = ": hello\n\nevent: message\nid: 1\nretry: 10\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\nid: 2\ndata: \n\n"
	r := wire.NewReader(strings.NewReader(stream))
	var got []wire.Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []wire.Event{{Name: "message", ID: "1", Retry: "10", Data: []byte("{\"a\":\n1}")}, {Data: []byte("x")}, {ID: "2"}}
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := wire.NewReader(bytes.NewReader(want[0].Append(nil))).Next(); err != nil || !cmp.Equal(again, want[0]) {
		t.Errorf("written and read again: %+v, %v", again, err)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"plain", "with space", " leading", "grüße", "=?base64?x?=", "", "a\nb"} {
		enc := wire.EncodeHeader(s)
		if strings.ContainsAny(enc, "\n\r") || wire.DecodeHeader(enc) != s {
			t.Errorf("%q becomes %q and %q", s, enc, wire.DecodeHeader(enc))
		}
	}
}

// FuzzParse: what is read is strict JSON, and its spans are values of it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1},"arguments":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"tools":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := wire.Parse(raw)
		if err != nil {
			return
		}
		if !jsontext.Value(raw).IsValid() {
			t.Fatalf("%q is no JSON", raw)
		}
		for _, s := range []wire.Span{m.ID, m.Params, m.Result, m.Error, m.Param("name"), m.Param("_meta"), m.Meta("x")} {
			if !s.IsZero() && !m.Value(s).IsValid() {
				t.Fatalf("%q in %q", m.Value(s), raw)
			}
		}
		if again, err := wire.Parse(m.WithParams(nil)); err != nil || again.Method != m.Method {
			t.Fatalf("%q does not survive being written: %v", raw, err)
		}
	})
}
