package match_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// TestParseHost lists spellings and where they lead: "host:port class".
func TestParseHost(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"https://api.example.com/v1?x=a@b":   "api.example.com:443 name",
		"HTTP://EXAMPLE.com.":                "example.com:80 name",
		"http://example.com:8080/@x":         "example.com:8080 name",
		"example.com":                        "example.com name",
		"example.com:443":                    "example.com:443 name",
		"//example.com/x":                    "example.com name",
		"git@github.com:o/r.git":             "github.com:22 name",
		"ssh://git@github.com/o/r":           "github.com:22 name",
		"postgres://u:p@db.internal/x":       "db.internal:5432 private",
		"https://user:pw@evil.example/":      "evil.example:443 name",
		"http://127.0.0.1/":                  "127.0.0.1:80 loopback",
		"http://2130706433/":                 "127.0.0.1:80 loopback",
		"http://017700000001/":               "127.0.0.1:80 loopback",
		"http://0x7f000001/":                 "127.0.0.1:80 loopback",
		"http://0x7f.1/":                     "127.0.0.1:80 loopback",
		"http://127.1/":                      "127.0.0.1:80 loopback",
		"http://127.0.1/":                    "127.0.0.1:80 loopback",
		"http://0177.0.0.1/":                 "127.0.0.1:80 loopback",
		"http://010.0.0.1/":                  "8.0.0.1:80 private", // octal or decimal: the worse reading counts
		"http://0/":                          "0.0.0.0:80 unspecified",
		"http://１２７.０.０.１/":                  "127.0.0.1:80 loopback",
		"http://①②⑦。⓪。⓪。①/":                  "127.0.0.1:80 loopback",
		"http://169.254.169.254/latest":      "169.254.169.254:80 metadata",
		"http://0xa9fea9fe/":                 "169.254.169.254:80 metadata",
		"http://metadata.google.internal./":  "metadata.google.internal:80 metadata",
		"http://100.100.100.200":             "100.100.100.200:80 metadata",
		"http://[fd00:ec2::254]/":            "[fd00:ec2::254]:80 metadata",
		"http://[::1]:8080/":                 "[::1]:8080 loopback",
		"::1":                                "[::1] loopback",
		"[::1]":                              "[::1] loopback",
		"http://[::ffff:127.0.0.1]/":         "127.0.0.1:80 loopback",
		"http://[::127.0.0.1]/":              "[::7f00:1]:80 loopback",
		"http://[64:ff9b::7f00:1]/":          "[64:ff9b::7f00:1]:80 loopback",
		"http://[64:ff9b:1::a9fe:a9fe]/":     "[64:ff9b:1::a9fe:a9fe]:80 metadata",
		"http://[2002:7f00:1::]/":            "[2002:7f00:1::]:80 loopback",
		"http://[2001:0:a00:1::f5ff:fffe]/":  "[2001:0:a00:1::f5ff:fffe]:80 private",
		"http://[2001:470::200:5efe:a00:1]/": "[2001:470::200:5efe:a00:1]:80 private",
		"http://[::ffff:0:7f00:1]/":          "[::ffff:0:7f00:1]:80 loopback",
		"http://[fe80::1%25eth0]/":           "[fe80::1%eth0]:80 link-local",
		"http://[::]/":                       "[::]:80 unspecified",
		"http://[2606:4700::1]/":             "[2606:4700::1]:80 public",
		"http://8.8.8.8":                     "8.8.8.8:80 public",
		"http://10.1.2.3":                    "10.1.2.3:80 private",
		"http://192.0.2.1":                   "192.0.2.1:80 reserved",
		"http://224.0.0.1":                   "224.0.0.1:80 multicast",
		"http://100.64.0.1":                  "100.64.0.1:80 cgnat",
		"http://255.255.255.255":             "255.255.255.255:80 reserved",
		"http://localhost:3000":              "localhost:3000 loopback",
		"http://a.localhost":                 "a.localhost:80 loopback",
		"http://printer.local":               "printer.local:80 link-local",
		"http://intranet/":                   "intranet:80 private",
		"http://127.0.0.1.nip.io/":           "127.0.0.1.nip.io:80 loopback",
		"http://x-169-254-169-254.sslip.io/": "x-169-254-169-254.sslip.io:80 metadata",
		"http://7f000001.nip.io/":            "7f000001.nip.io:80 loopback",
		"https://bücher.example":             "xn--bcher-kva.example:443 name",
		"https://exa\u00admple.com":          "example.com:443 name",
		"https://my_host.example.com":        "my_host.example.com:443 name",
		"https://ｅxample。com":                "example.com:443 name",
		"http://host.docker.internal:2375/":  "host.docker.internal:2375 loopback",
	} {
		h, err := match.ParseHost(word)
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		if diff := cmp.Diff(want, h.String()+" "+h.Class().String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", word, diff)
		}
	}
}

func TestParseHostRefuses(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]error{
		"":                                   match.ErrNoHost,
		"http://good.example\\@evil.example": match.ErrAmbiguousHost,
		"http://good.example#@evil.example/": match.ErrAmbiguousHost,
		"http://good.example?@evil.example/": match.ErrAmbiguousHost,
		"http://a@b@evil.example/":           match.ErrAmbiguousHost,
		"http://ev\til.example/":             match.ErrAmbiguousHost,
		"http://evil.example\n/":             match.ErrAmbiguousHost,
		"http://%65vil.example/":             match.ErrAmbiguousHost,
		"http:///evil.example/":              match.ErrAmbiguousHost,
		"https:evil.example":                 match.ErrAmbiguousHost,
		"https:/evil.example":                match.ErrAmbiguousHost,
		"http://256.1.1.1/":                  match.ErrBadHost,
		"http://1.2.3.4.5/":                  match.ErrBadHost,
		"http://0x100000000/":                match.ErrBadHost,
		"http://[::1/":                       match.ErrBadHost,
		"http://[::1]x/":                     match.ErrBadHost,
		"http://[127.0.0.1]/":                match.ErrBadHost,
		"http://a..b/":                       match.ErrBadHost,
		"http://-a.example/":                 match.ErrBadHost,
		"http://xn--a.example/":              match.ErrBadHost,
		"http://a b/":                        match.ErrAmbiguousHost,
		"http://example.com:0/":              match.ErrBadPort,
		"http://example.com:99999/":          match.ErrBadPort,
		"http://example.com:8x/":             match.ErrBadPort,
		"http:///":                           match.ErrAmbiguousHost,
		"http://":                            match.ErrBadHost,
		"data:text/html,x":                   match.ErrNoHost,
		"javascript:alert(1)":                match.ErrNoHost,
		"file:///etc/passwd":                 match.ErrNoHost,
		"http://\xff/":                       match.ErrBadHost,
	} {
		if h, err := match.ParseHost(word); !errors.Is(err, want) {
			t.Errorf("%q: got %v, %v; want %v", word, h, err, want)
		}
	}
}

func TestHostOdd(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"https://github.com@evil.example/": "looks like a host",
		"http://2130706433/":               "unusual spelling of 127.0.0.1",
		"http://[::ffff:10.0.0.1]/":        "carries the IPv4 address 10.0.0.1",
		"https://аpple.example/":           "mixed-script",
		"https://exa\u200bmple.com/":       "zero-width",
	} {
		h, err := match.ParseHost(word)
		if err != nil || !strings.Contains(strings.Join(h.Odd, "; "), want) {
			t.Errorf("%q: %v, %v; want %q", word, h.Odd, err, want)
		}
	}
	h, err := match.ParseHost("https://u:p@example.com")
	if err != nil || !h.User || len(h.Odd) != 0 {
		t.Errorf("plain user information is not odd: %+v %v", h, err)
	}
}

func mustHosts(t testing.TB, ps ...string) []match.HostPattern {
	t.Helper()
	var out []match.HostPattern
	for _, p := range ps {
		c, err := match.CompileHost(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestHostPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern       string
		yes, may, not []string // may: MayMatch only; not: neither
	}{
		{"api.example.com", []string{"https://api.example.com", "api.example.com:80"}, []string{"api.example.com", "api.example.com:22"}, []string{"https://x.api.example.com", "https://example.com"}},
		{"*.example.com:443", []string{"https://a.example.com", "https://a.b.example.com."}, []string{"a.example.com"}, []string{"https://example.com", "http://a.example.com", "https://aexample.com"}},
		{"example.com:*", []string{"example.com", "example.com:9"}, nil, []string{"a.example.com"}},
		{":443", []string{"https://x.example", "https://10.0.0.1"}, []string{"x.example"}, []string{"http://x.example"}},
		{"*:*", []string{"x", "::1", "http://1.1.1.1:9"}, nil, nil},
		{"127.0.0.1", []string{"http://2130706433/", "http://[::ffff:7f00:1]/"}, []string{"127.1:8080", "http://[64:ff9b::7f00:1]/"}, []string{"http://localhost/"}},
		{"10.0.0.0/8:5432", []string{"postgres://10.9.9.9/x"}, nil, []string{"http://10.9.9.9/"}},
		{"8.0.0.0/8", nil, []string{"http://010.0.0.1/"}, nil}, // one reading is 10.0.0.1
		{"[::1]:8080", []string{"http://[::1]:8080/"}, nil, []string{"http://[::1]/"}},
		{"fd00::/8", []string{"http://[fd12::1]/"}, nil, []string{"http://[2606::1]/"}},
		{"bücher.example", []string{"https://xn--bcher-kva.example"}, nil, nil},
	} {
		p := mustHosts(t, c.pattern)[0]
		check := func(words []string, match1, may bool) {
			for _, w := range words {
				h, err := match.ParseHost(w)
				if err != nil {
					t.Fatalf("%q: %v", w, err)
				}
				if p.Match(h) != match1 || p.MayMatch(h) != may {
					t.Errorf("%q on %q: Match %v, MayMatch %v; want %v, %v", c.pattern, w, p.Match(h), p.MayMatch(h), match1, may)
				}
			}
		}
		check(c.yes, true, true)
		check(c.may, false, true)
		check(c.not, false, false)
	}
	for _, bad := range []string{"", "a*.example.com", "*.10.0.0.1", "10.0.0.1/8", "127.1", "0x7f.1", "a:99999", "a:x", "u@h", "**.x", "a/b", ":", "*.com.."} {
		if _, err := match.CompileHost(bad); err == nil {
			t.Errorf("%q should not compile", bad)
		}
	}
}

func TestCoversHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow []string
		want         match.Answer
	}{
		{[]string{"*.example.com"}, []string{"a.example.com:443", "*.b.example.com"}, match.Yes},
		{[]string{"*.example.com"}, []string{"example.com"}, match.No},
		{[]string{"a.example.com"}, []string{"a.example.com:*"}, match.No},
		{[]string{"a.example.com:80", "a.example.com:443"}, []string{"a.example.com"}, match.Yes},
		{[]string{"10.0.0.0/9", "10.128.0.0/9"}, []string{"10.0.0.0/8"}, match.Yes},
		{[]string{"10.0.0.0/9", "10.128.0.0/10"}, []string{"10.0.0.0/8"}, match.No},
		{[]string{"0.0.0.0/0:*", "[::/0]:*"}, []string{"1.2.3.4", "::1"}, match.Yes},
		{[]string{"0.0.0.0/0:*"}, []string{"example.com"}, match.No},
		{[]string{":443"}, []string{"x.example:443"}, match.Yes},
		{[]string{":443"}, []string{"x.example"}, match.No},
		{[]string{"*:*"}, []string{"*", ":22", "10.0.0.1", "a:*"}, match.Yes},
		{[]string{"a", "b", "*.c"}, []string{"*"}, match.No},
		{nil, nil, match.Yes},
	} {
		if got := match.CoversHosts(mustHosts(t, c.wide...), mustHosts(t, c.narrow...)); got != c.want {
			t.Errorf("CoversHosts(%q, %q) = %v, want %v", c.wide, c.narrow, got, c.want)
		}
	}
}

var (
	smallPattern = rapid.StringMatching(`(\*|a\.x|\*\.x|b\.a\.x|\*\.a\.x|1\.0\.0\.0/30|1\.0\.0\.[0-3]|1\.0\.0\.[02]/31|::/127|::1)`)
	smallPort    = rapid.SampledFrom([]string{"", ":*", ":80", ":443", ":22"})
)

// TestCoversHostsSound: the answer agrees with trying every small host on every small port.
func TestCoversHostsSound(t *testing.T) {
	t.Parallel()
	var hosts []match.Host
	for _, name := range []string{"a.x", "x", "b.a.x", "c.b.a.x", "z.x", "q", "1.0.0.0", "1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "::", "::1", "::2"} {
		h, err := match.ParseHost(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range []int{0, 22, 80, 443, 9} {
			h.Port = port
			hosts = append(hosts, h)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, most int) (out []match.HostPattern) {
			for range rapid.IntRange(0, most).Draw(t, label+" n") {
				host, port := smallPattern.Draw(t, label), smallPort.Draw(t, label+" port")
				if strings.HasPrefix(host, "::") {
					host = "[" + host + "]"
				}
				p, err := match.CompileHost(host + port)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, p)
			}
			return out
		}
		wide, narrow := draw("wide", 4), draw("narrow", 2)
		holds := func(ps []match.HostPattern, h match.Host) bool {
			for _, p := range ps {
				if p.Match(h) {
					return true
				}
			}
			return false
		}
		counter := ""
		for _, h := range hosts {
			if holds(narrow, h) && !holds(wide, h) {
				counter = h.String()
			}
		}
		if got := match.CoversHosts(wide, narrow); (got == match.Yes) != (counter == "") {
			t.Fatalf("%v, counterexample %q", got, counter)
		}
	})
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"::ffff:1.2.3.4": {"1.2.3.4"}, "64:ff9b::1.2.3.4": {"1.2.3.4"}, "2002:102:304::": {"1.2.3.4"},
		"2001:0:102:304::fefd:fcfb": {"1.2.3.4", "1.2.3.4"}, "::1": nil, "::": nil, "1.2.3.4": nil, "2606::1": nil,
	} {
		var got []string
		for _, a := range match.Embedded(netip.MustParseAddr(in)) {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}
