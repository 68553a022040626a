package console_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

var (
	shownText = regexp.MustCompile(`(?s)<code>command</code>.*?<pre[^>]*><code>(.*?)</code></pre>`)
	editText  = regexp.MustCompile(`(?s)data-test="edit-args">(.*?)</textarea>`)
)

// FuzzVisible: whatever an agent sends, the page that asks holds no character
// that one does not see, and the text for editing is the same value.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"ls", "a\x1b[2K\r\nb", "\u202egnp\u2066", "a\u200b\u2060\ufeff\u00ad", "\U000E0041\U000E007F", "</code></pre><script>", `\u202e \\ \n`, "  \t \n\n ", "\u0085\u2028\u2029\u00a0\u3164", "e\u0301\u0489", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cl := signedIn(t, console.Options{})
		args, err := json.Marshal(map[string]string{"command": s})
		if err != nil || len(args) > 64<<10 {
			t.Skip("not a string that a call can carry")
		}
		want, err := call.Canonical(args)
		if err != nil {
			t.Skip("not arguments that a call can have")
		}
		cl.add("r-1", string(args))
		page := cl.get("/requests/r-1")
		for _, r := range page {
			if r != '\n' && match.Visible(string(r)) != string(r) {
				t.Fatalf("the page holds %U as it is", r)
			}
		}
		shown := shownText.FindStringSubmatch(page)
		if shown == nil {
			t.Fatal("the argument is not shown")
		}
		if n := strings.Count(shown[1], `<span class="ln">`); n != strings.Count(valid(s), "\n")+1 {
			t.Errorf("%d lines shown of %q", n, s)
		}
		form := editText.FindStringSubmatch(page)
		if form == nil {
			t.Fatal("no text to edit")
		}
		if got, err := call.Canonical([]byte(text(form[1]))); err != nil || string(got) != string(want) {
			t.Errorf("edited without a change: %s, was %s (%v)", got, want, err)
		}
	})
}

// valid is s as JSON carries it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
