package content_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

type attack struct {
	Name, Text, Rule, Min, Form string
}

// loadAttacks reads the corpus. A bar stands in texts that would otherwise look like live
// credentials to whoever searches repositories for them.
func loadAttacks(t testing.TB) []attack {
	t.Helper()
	data, err := os.ReadFile("testdata/attacks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []attack
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var a attack
		if err := json.Unmarshal(sc.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		a.Text = strings.ReplaceAll(a.Text, "¦", "")
		out = append(out, a)
	}
	return out
}

func loadHonest(t testing.TB) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile("testdata/honest.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

func severity(t testing.TB, name string) content.Severity {
	t.Helper()
	for s := content.Low; s <= content.Critical; s++ {
		if s.String() == name {
			return s
		}
	}
	t.Fatalf("unknown severity %q", name)
	return 0
}

// TestAttacks: each attack of the corpus is found by its rule, at its severity, in its form, and the
// span lies in the text.
func TestAttacks(t *testing.T) {
	t.Parallel()
	attacks := loadAttacks(t)
	if len(attacks) < 120 {
		t.Errorf("only %d attacks", len(attacks))
	}
	for _, a := range attacks {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			fs := content.Scan(a.Text, nil)
			found := false
			for _, f := range fs {
				if f.Start < 0 || f.End > len(a.Text) || f.Start >= f.End {
					t.Errorf("span %d to %d of %d bytes", f.Start, f.End, len(a.Text))
				}
				found = found || f.Rule == a.Rule && f.Severity >= severity(t, a.Min) && (a.Form == "" || a.Form == f.Form)
			}
			if !found {
				t.Errorf("%q: want %s at %s %s, got %v", a.Text, a.Rule, a.Min, a.Form, fs)
			}
		})
	}
}

// TestAttacksInJSON: the same attacks are found in a call's arguments, wherever they stand.
func TestAttacksInJSON(t *testing.T) {
	t.Parallel()
	for _, a := range loadAttacks(t) {
		raw, err := json.Marshal(map[string]any{"list": []any{1, map[string]any{"text": "so: " + a.Text + " ok"}}})
		if err != nil {
			t.Fatal(err)
		}
		fs, err := content.ScanJSON(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range fs {
			found = found || f.Rule == a.Rule && f.Pointer == "/list/1/text" && !f.Key
		}
		if !found {
			t.Errorf("%s: want %s at /list/1/text, got %v", a.Name, a.Rule, fs)
		}
	}
}

// TestHonest: ordinary texts stay at or below the severity their name says, and below critical.
func TestHonest(t *testing.T) {
	t.Parallel()
	files := loadHonest(t)
	if len(files) < 60 {
		t.Errorf("only %d honest texts", len(files))
	}
	for _, f := range files {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			level, _, _ := strings.Cut(f.Name, "/")
			if max := severity(t, level); content.Worst(content.Scan(string(f.Data), nil)) > max {
				for _, x := range content.Scan(string(f.Data), nil) {
					if x.Severity > max {
						t.Errorf("%s: %s %s in %q", x.Severity, x.Rule, x.Form, f.Data[x.Start:x.End])
					}
				}
			}
		})
	}
}
