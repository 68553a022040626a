package egress_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

func TestBadPatternsAreRefused(t *testing.T) {
	for _, p := range []string{
		"", "*", "*.com", "http://x.test", "x.test/path", "x..test", "x.test:", "x.test:0", "x.test:70000", "[::1", "[::1]x", "127.1", "2130706433",
		"0x7f.1", "a b.test", "fe80::1%eth0", "x.test:80:90", "10.0.0.0/99", "ex*mple.test", "-\x00.test",
	} {
		if _, err := egress.ParseRules([]string{p}, nil); err == nil {
			t.Errorf("%q was accepted", p)
		}
	}
	for _, p := range []string{"x.test", "*.x.test", "x.test:8080", "x.test:*", "10.0.0.0/8:443", "[::1]:80", "::1", "localhost:4873", "X.Test.", "bücher.test", "_dmarc.x.test"} {
		if _, err := egress.ParseRules([]string{p}, nil); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func FuzzParseRules(f *testing.F) {
	for _, s := range []string{"x.test:80", "*.x.test", "[::1]:80", "10.0.0.0/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = egress.ParseRules([]string{s}, []string{s})
	})
}
