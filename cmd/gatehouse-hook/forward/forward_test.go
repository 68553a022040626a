package forward_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/cmd/gatehouse-hook/forward"
)

// TestParseAnswer: an answer is taken whole or not at all.
func TestParseAnswer(t *testing.T) {
	t.Parallel()
	const good = "HTTP/1.0 200 OK\r\nContent-Length: 9\r\nGatehouse-Answer: 2 4 5\r\n\r\nout\nerrs\n"
	exit, stdout, stderr, err := forward.ParseAnswer([]byte(good))
	if err != nil || exit != 2 || stdout != "out\n" || stderr != "errs\n" {
		t.Errorf("%d %q %q %v", exit, stdout, stderr, err)
	}
	if _, _, _, err := forward.ParseAnswer([]byte("HTTP/1.1 200 OK\r\nGatehouse-Answer: 0 0 0\r\n\r\n")); err != nil {
		t.Errorf("an empty answer: %v", err)
	}
	bad := map[string]string{
		"nothing": "", "no head": "hello", "cut off": good[:len(good)-1], "too much": good + "x",
		"refused":         strings.Replace(good, "200 OK", "401 Unauthorized", 1),
		"redirected":      strings.Replace(good, "200 OK", "302 Found", 1),
		"another's":       strings.Replace(good, "HTTP/1.0", "SSH-2.0x", 1),
		"no answer":       strings.Replace(good, "Gatehouse-Answer", "Other", 1),
		"in lower case":   strings.Replace(good, "Gatehouse-Answer", "gatehouse-answer", 1),
		"a code too big":  strings.Replace(good, ": 2 4 5", ": 256 4 5", 1),
		"a negative code": strings.Replace(good, ": 2 4 5", ": -1 4 5", 1),
		"two numbers":     strings.Replace(good, ": 2 4 5", ": 2 9", 1),
		"four numbers":    strings.Replace(good, ": 2 4 5", ": 2 4 5 0", 1),
		"wrong lengths":   strings.Replace(good, ": 2 4 5", ": 2 5 5", 1),
		"huge lengths":    strings.Replace(good, ": 2 4 5", ": 2 4294967295 5", 1),
		"in the body":     "HTTP/1.0 200 OK\r\n\r\nGatehouse-Answer: 0 0 0\r\n",
	}
	for name, reply := range bad {
		if exit, _, _, err := forward.ParseAnswer([]byte(reply)); err == nil {
			t.Errorf("%s is an answer: exit %d", name, exit)
		}
	}
}

// TestParse: a command line says everything, or the hook blocks.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"claude --socket /s/x --owner 0", "claude --socket /s/x --owner 1000 --deadline 240 --program /p --home /h --defer",
	} {
		if err := forward.Parse(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{
		"", "--socket /s/x --owner 0", "claude", "claude --socket /s/x", "claude --owner 0", "claude --socket s/x --owner 0", "claude --socket / --owner 0",
		"claude --socket /s/x --owner root", "claude --socket /s/x --owner -1", "claude --socket /s/x --owner 0 --deadline 0", "claude --socket /s/x --owner 0 --deadline",
		"claude --socket /s/x --owner 0 extra more", "Claude --socket /s/x --owner 0", "cl/aude --socket /s/x --owner 0",
	} {
		if err := forward.Parse(strings.Fields(line)); err == nil {
			t.Errorf("%q is a command line", line)
		}
	}
}

// FuzzParseAnswer: no bytes make the hook print more than it was told to, or
// panic.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.0 200 OK\r\nGatehouse-Answer: 2 1 1\r\n\r\nab"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		exit, stdout, stderr, err := forward.ParseAnswer(reply)
		if err == nil && (exit < 0 || exit > 255 || !strings.HasSuffix(string(reply), stdout+stderr)) {
			t.Fatalf("%d %q %q of %q", exit, stdout, stderr, reply)
		}
	})
}
