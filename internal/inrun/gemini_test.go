package inrun_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// TestGeminiKeep: the file of a session gets another name, once, and nothing
// else is touched, whatever the session is called.
func TestGeminiKeep(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	chats := filepath.Join(home, ".gemini", "tmp", "project", "chats")
	if err := os.MkdirAll(chats, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(chats, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name, want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(chats, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	const session, kept = "0b0c5a9e-6c1f-4a63-9d5c-0a2f3c9b7e11", "session-2000-01-01T00-00-0b0c5a9e.jsonl"
	put("session-2026-11-15T12-26-0b0c5a9e.jsonl", "said")
	put("session-2026-11-15T12-26-ffffffff.jsonl", "another's")
	if err := inrun.GeminiKeep(home, session); err != nil {
		t.Fatal(err)
	}
	check(kept, "said")
	put("session-2026-11-15T12-26-0b0c5a9e.jsonl", "begun")
	if err := inrun.GeminiKeep(home, session); err != nil {
		t.Fatal(err)
	}
	check(kept, "said")
	check("session-2026-11-15T12-26-0b0c5a9e.jsonl", "begun")
	check("session-2026-11-15T12-26-ffffffff.jsonl", "another's")
	for _, name := range []string{"../../../x", "*", "????????"} {
		if inrun.GeminiKeep(home, name) == nil {
			t.Errorf("%q was taken for a session", name)
		}
	}
}
