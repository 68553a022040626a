package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Rules is a parsed host policy.
//
// A pattern is NAME, *.NAME (any depth below, not NAME itself), an IP address,
// a CIDR, or "localhost", each optionally followed by :PORT or :* for any
// port. Without a port it means 80 and 443. A bare star is not a pattern:
// reaching every public host is a mode, not a rule.
type Rules struct {
	allow, deny []rule
}

type rule struct {
	text  string
	name  string // exact name, or the suffix with its leading dot
	sub   bool
	net   netip.Prefix
	ports []uint16 // nil means any
}

// ParseRules reads both lists and reports every bad pattern at once.
func ParseRules(allow, deny []string) (*Rules, error) {
	var r Rules
	var errs []error
	read := func(list []string, defaults []uint16) (rules []rule) {
		for _, text := range list {
			one, err := parseRule(text, defaults)
			if err != nil {
				errs = append(errs, fmt.Errorf("host %q: %w", text, err))
				continue
			}
			rules = append(rules, one)
		}
		return rules
	}
	r.allow = read(allow, []uint16{80, 443})
	// A deny without a port denies the host altogether.
	r.deny = read(deny, nil)
	return &r, errors.Join(errs...)
}

func parseRule(text string, defaults []uint16) (rule, error) {
	r := rule{text: text, ports: defaults}
	host, port := text, ""
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return r, errors.New("unclosed bracket")
		}
		host, port = text[1:end], text[end+1:]
		if port != "" && port[0] != ':' {
			return r, errors.New("text after the bracket")
		}
		port = strings.TrimPrefix(port, ":")
	case strings.Count(text, ":") == 1:
		host, port, _ = strings.Cut(text, ":")
		if port == "" {
			return r, errors.New("empty port")
		}
	}
	if port != "" {
		if err := r.setPort(port); err != nil {
			return r, err
		}
	}
	return r, r.setHost(host)
}

func (r *rule) setPort(port string) error {
	if port == "*" {
		r.ports = nil
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return errors.New("bad port")
	}
	r.ports = []uint16{uint16(n)}
	return nil
}

func (r *rule) setHost(host string) error {
	if strings.ContainsAny(host, "/") {
		p, err := netip.ParsePrefix(host)
		if err != nil {
			return errors.New("not an address range; scheme and path do not belong here")
		}
		r.net = p.Masked()
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return errors.New("an address with a zone")
		}
		a = embedded(a)
		r.net = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	rest, sub := strings.CutPrefix(host, "*.")
	name, err := normalName(rest)
	if err != nil {
		return err
	}
	if sub {
		if !strings.Contains(name, ".") {
			return errors.New("a star in front of a top-level name")
		}
		r.sub, r.name = true, "."+name
		return nil
	}
	r.name = name
	return nil
}

// normalName folds a name to the one form that is compared: ASCII, lower case,
// no trailing dot. Numbers that a resolver would take for an address are
// refused, and so is everything that is no host name.
func normalName(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return "", errors.New("not a host name")
	}
	name, err := idna.Lookup.ToASCII(s)
	if err != nil {
		// The lookup profile refuses underscores, which real hosts have.
		if name = strings.ToLower(s); !plainName(name) {
			return "", errors.New("not a host name")
		}
	}
	name = strings.TrimSuffix(name, ".")
	if !plainName(name) {
		return "", errors.New("not a host name")
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' {
		return "", errors.New("a number is not a host name")
	}
	return name, nil
}

func plainName(s string) bool {
	for _, label := range strings.Split(s, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

func (r rule) port(p uint16) bool {
	if r.ports == nil {
		return true
	}
	for _, q := range r.ports {
		if p == q {
			return true
		}
	}
	return false
}

func (r rule) matchName(name string) bool {
	if r.name == "" {
		return false
	}
	if r.sub {
		return strings.HasSuffix(name, r.name)
	}
	return name == r.name
}

func (r rule) matchAddr(a netip.Addr) bool { return r.net.IsValid() && r.net.Contains(a) }

// embedded returns the IPv4 address inside an IPv6 one (mapped, compatible,
// NAT64, 6to4, Teredo), which is where such a packet may end up; other
// addresses are returned unchanged.
func embedded(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Is4() {
		return a
	}
	b := a.As16()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return v4(12)
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return v4(2)
	case netip.MustParsePrefix("2001::/32").Contains(a): // Teredo stores it inverted
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	case netip.MustParsePrefix("::/96").Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback():
		return v4(12)
	}
	return a
}

// special are ranges that are not the public Internet beyond those netip
// already names.
var special = []struct {
	net  netip.Prefix
	what string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this-network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local translation"},
	{netip.MustParsePrefix("::/96"), "embedded"},
}

// metadata are the addresses at which clouds hand out credentials.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true,
	netip.MustParseAddr("169.254.170.2"):   true,
	netip.MustParseAddr("169.254.170.23"):  true,
	netip.MustParseAddr("100.100.100.200"): true,
	netip.MustParseAddr("168.63.129.16"):   true,
	netip.MustParseAddr("fd00:ec2::254"):   true,
	netip.MustParseAddr("fd00:ec2::23"):    true,
	netip.MustParseAddr("fd20:ce::254"):    true,
}

// class names what makes an address other than public; "" is public.
func class(a netip.Addr) string {
	a = embedded(a)
	switch {
	case metadata[a]:
		return "metadata"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a.IsPrivate():
		return "private"
	}
	for _, s := range special {
		if s.net.Contains(a) {
			return s.what
		}
	}
	return ""
}
