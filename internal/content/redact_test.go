package content_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

func redactor() *content.Redactor {
	return content.NewRedactor(content.RedactorConfig{Rand: rand.Reader, Names: []string{"Launch-Code"}})
}

func TestRedactJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"a": 1.50, "b":[true , null]}`, `{"a": 1.50, "b":[true , null]}`},
		{`{"password": "hunter2", "user":"ann"}`, `{"password": "[redacted:field:1]", "user":"ann"}`},
		{`{"Pass-Word":"x","API_KEY":"y","dbPassword":"z"}`, `{"Pass-Word":"[redacted:field:1]","API_KEY":"[redacted:field:2]","dbPassword":"[redacted:field:3]"}`},
		{`{"pass\u0077ord":"x"}`, `{"pass\u0077ord":"[redacted:field:1]"}`},
		{`{"pаssword":"x"}`, `{"pаssword":"[redacted:field:1]"}`}, // Cyrillic а
		{`{"launch_code":"0000"}`, `{"launch_code":"[redacted:field:1]"}`},
		{`{"pin":1234,"max_tokens":4096,"tokens":12,"mapping":3}`, `{"pin":"[redacted:field:1]","max_tokens":4096,"tokens":12,"mapping":3}`},
		{`{"token":null,"secret":false,"password":""}`, `{"token":null,"secret":false,"password":""}`},
		{`{"token":"$TOKEN","password":"${DB_PASS}"}`, `{"token":"$TOKEN","password":"${DB_PASS}"}`},
		{`{"credentials":{"user":"ann","pw":["longvalue"]},"note":"longvalue"}`, `{"credentials":"[redacted:field:3]","note":"[redacted:field:2]"}`},
		{`{"env":[{"name":"DB_PASSWORD","value":"x1"},{"name":"HOME","value":"/root"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"[redacted:field:1]"},{"name":"HOME","value":"/root"}]}`},
		{`["tool","--password","hunter2","--verbose","x"]`, `["tool","--password","[redacted:field:1]","--verbose","x"]`},
		{`{"cmd":"curl -u ann:s3cret https://x"}`, `{"cmd":"curl -u ann:[redacted:user:1] https://x"}`},
		{`{"body":"{\"password\":\"q\\\"uote\"}"}`, `{"body":"{\"password\":\"[redacted:field:1]\"}"}`},
		{`{"password":"hunter2hunter2","log":"used hunter2hunter2 twice: hunter2hunter2"}`, `{"password":"[redacted:field:1]","log":"used [redacted:field:1] twice: [redacted:field:1]"}`},
		{`{"hunter2hunter2":1,"password":"hunter2hunter2"}`, `{"[redacted:field:1]":1,"password":"[redacted:field:1]"}`},
		{`{"password":"[redacted:field:9]"}`, `{"password":"[redacted:field:9]"}`},
		{`{"password":"hunter2[redacted:field:9]"}`, `{"password":"[redacted:field:1]"}`},
		{`"a plain string"`, `"a plain string"`},
		{`{"password":`, `"[redacted:unreadable:1]"`},
		{`{"a":1}{"password":"x"}`, `"[redacted:unreadable:1]"`},
		{"{\"a\":\"\xff\"}", `"[redacted:unreadable:1]"`},
		{``, `"[redacted:unreadable:1]"`},
	} {
		got, _ := redactor().JSON([]byte(c.in))
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestRedactText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"nothing here", "nothing here"},
		{"password=hunter2", "password=[redacted:assign:1]"},
		{`export DB_PASSWORD="a b;c"`, `export DB_PASSWORD="[redacted:assign:1]"`},
		{"PGPASSWORD=x psql", "PGPASSWORD=[redacted:assign:1] psql"},
		{"mysql -u root -phunter2 db", "mysql -u root -p[redacted:short-flag:1] db"},
		{"sshpass -p 'x y' ssh h", "sshpass -p '[redacted:short-flag:1]' ssh h"},
		{"tool --password x --token=y --verbose", "tool --password [redacted:flag:1] --token=[redacted:assign:2] --verbose"},
		{"tool --password-file f", "tool --password-file [redacted:flag:1]"},
		{"tool --token --verbose", "tool --token --verbose"},
		{"postgres://app:s3cr@db/x", "postgres://app:[redacted:url:1]@db/x"},
		{"https://0123456789abcdef01@github.com/x", "https://[redacted:url:1]@github.com/x"},
		{"ssh://git@github.com/x", "ssh://git@github.com/x"},
		{"Authorization: Bearer abc.def.ghi", "Authorization: Bearer [redacted:header:1]"},
		{"-H 'Authorization: Basic dTpw'", "-H 'Authorization: Basic [redacted:header:1]'"},
		{"Cookie: a=1; b=2\nHost: x", "Cookie: [redacted:header:1]\nHost: x"},
		{"use bearer tokens", "use bearer tokens"},
		{"https://x/?token=abc&q=1", "https://x/?token=[redacted:assign:1]&q=1"},
		{"token: string, tokens: 500, tokenizer: fast", "token: string, tokens: 500, tokenizer: fast"},
		{"password=$PASS token=${TOKEN}", "password=$PASS token=${TOKEN}"},
		{"password=$ecret", "password=[redacted:assign:1]"},
		{"%70assword=hunter2", "%70assword=[redacted:assign:1]"},
		{"pаssword=hunter2", "pаssword=[redacted:assign:1]"}, // Cyrillic а
		{"gh" + "p_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted:github:1]"},
		{"x [redacted:token:3] password=[redacted:assign:4]", "x [redacted:token:3] password=[redacted:assign:4]"},
	} {
		got, _ := redactor().Text(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}

// TestRedactAttacks: no credential of the attack corpus survives.
func TestRedactAttacks(t *testing.T) {
	t.Parallel()
	for _, a := range loadAttacks(t) {
		if !strings.HasPrefix(a.Rule, "credential.") {
			continue
		}
		out, _ := redactor().Text(a.Text)
		for _, f := range content.Scan(out, nil) {
			if f.Category == content.Credential && f.Severity > content.Low {
				t.Errorf("%s: %q still holds %s", a.Name, out, f.Rule)
			}
		}
	}
}

func TestCommitment(t *testing.T) {
	t.Parallel()
	_, cs := redactor().JSON([]byte(`{"a":{"token":"t-one"},"b":"--password t-two"}`))
	var got []string
	for _, c := range cs {
		got = append(got, fmt.Sprint(c.N, c.Rule, c.Pointer, c.Verify("t-one"), c.Verify("t-two")))
	}
	want := []string{"1 field /a/token true false", "2 flag /b false true"}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
		got[i] = strings.ReplaceAll(got[i], " ", "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, again := redactor().JSON([]byte(`{"a":{"token":"t-one"}}`))
	if again[0].Sum == cs[0].Sum {
		t.Error("two commitments to the same value must differ")
	}
}

type brokenRand struct{}

func (brokenRand) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

// TestRedactWithoutRandomness: what cannot be committed to is hidden all the same.
func TestRedactWithoutRandomness(t *testing.T) {
	t.Parallel()
	r := content.NewRedactor(content.RedactorConfig{Rand: brokenRand{}})
	out, cs := r.JSON([]byte(`{"password":"hunter2"}`))
	if bytes.Contains(out, []byte("hunter2")) || len(cs) != 0 {
		t.Errorf("%s, %v", out, cs)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	s := content.Secret("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "cmd", redactor().Value("login --password hunter2"))
	js, err := json.Marshal(map[string]any{"s": s})
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{log.String(), string(js), fmt.Sprint(s), fmt.Sprintf("%s %v %+v %#v %q %x", s, s, s, s, s, s)} {
		if strings.Contains(out, "hunter2") || strings.Contains(out, "68756e74") || !strings.Contains(out, "[redacted:") {
			t.Errorf("%s", out)
		}
	}
}

// places are the ways a secret gets into a document.
var places = []string{
	`{"password":%s}`, `{"a":[{"apiKey":%s}]}`, `{"x":{"authorization":%s},"y":%s}`, `{"env":[{"name":"TOKEN","value":%s}]}`,
	`["--token",%s]`, `{"%[1]s":0,"secret":%[1]s}`, `{"tokens":[%s,%s]}`, `{"session_id":%s,"nested":"{\"password\":%s}"}`,
}

var textPlaces = []string{
	"password=%s", "--password %s", "Authorization: Bearer %s", "https://u:%s@h/x", "curl -u a:%s x", "{\"secret\": \"%s\"}",
	"API_KEY='%s' run; echo %s", "mysql -p%s", "Set-Cookie: sid=%s; Path=/", "token: %s and again %s",
}

// secretShape keeps secrets apart from the words of markers and templates.
var secretShape = rapid.StringMatching(`[A-Z][A-Z0-9]{3}[a-zA-Z0-9+_.-]{4,60}[A-Z0-9]`)

// TestRedactLaws: the secret is gone, redacting twice changes nothing, JSON stays JSON.
func TestRedactLaws(t *testing.T) {
	t.Parallel()
	r := redactor()
	rapid.Check(t, func(t *rapid.T) {
		secret := secretShape.Draw(t, "secret")
		if rapid.Bool().Draw(t, "text") {
			in := strings.ReplaceAll(rapid.SampledFrom(textPlaces).Draw(t, "place"), "%s", secret)
			in = rapid.StringMatching(`[a-z ]{0,20}`).Draw(t, "before") + " " + in
			out, _ := r.Text(in)
			if strings.Contains(out, secret) {
				t.Fatalf("%q became %q", in, out)
			}
			if again, _ := r.Text(out); again != out {
				t.Fatalf("not idempotent: %q, %q", out, again)
			}
			return
		}
		quoted, _ := json.Marshal(secret)
		place := rapid.SampledFrom(places).Draw(t, "place")
		place = strings.ReplaceAll(strings.ReplaceAll(place, `"%[1]s"`, string(quoted)), "%[1]s", string(quoted))
		place = strings.ReplaceAll(place, `:%s}"`, `:\"`+secret+`\"}"`)
		in := strings.ReplaceAll(place, "%s", string(quoted))
		if !json.Valid([]byte(in)) {
			t.Fatalf("bad template: %s", in)
		}
		out, cs := r.JSON([]byte(in))
		if bytes.Contains(out, []byte(secret)) {
			t.Fatalf("%s became %s", in, out)
		}
		if !json.Valid(out) {
			t.Fatalf("%s is not JSON", out)
		}
		proved := false
		for _, c := range cs {
			proved = proved || c.Verify(secret)
		}
		if !proved {
			t.Fatalf("no commitment proves the secret of %s", in)
		}
		if again, _ := r.JSON(out); !bytes.Equal(again, out) {
			t.Fatalf("not idempotent: %s, %s", out, again)
		}
	})
}

// TestRedactIdempotent: on arbitrary documents of telling words.
func TestRedactIdempotent(t *testing.T) {
	t.Parallel()
	r := redactor()
	word := rapid.SampledFrom([]string{"password", "token", "=", ":", " ", "\"", "'", "--token", "[redacted:field:1]", "[redacted:", "]", "hunter2", "\\", "\n",
		"://", "a:b@c", "Bearer ", "Cookie: ", "s", "&", "?", "secret", "{", "}", "[", ",", "%3d", "$X", "YWJjZGVmZ2hpamtsbW5vcA==", " -u ", "abcdefghijklmnopqrstuvwxyz0123456789"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), "")
		once, _ := r.Text(s)
		if twice, _ := r.Text(once); twice != once {
			t.Fatalf("text %q: %q, then %q", s, once, twice)
		}
		raw, _ := json.Marshal(map[string]any{"a": s, s: []string{s, "x"}})
		first, _ := r.JSON(raw)
		if second, _ := r.JSON(first); !bytes.Equal(first, second) {
			t.Fatalf("json %s: %s, then %s", raw, first, second)
		}
	})
}
