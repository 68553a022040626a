package match

import (
	"net/netip"
	"strconv"
	"strings"
)

// A Class says where an address or host lies. Higher classes are closer to what an agent should
// not reach; the zero value is no class at all.
type Class uint8

// The classes, from the least to the most delicate.
const (
	ClassInvalid     Class = iota
	ClassName              // a DNS name: only resolving it can tell
	ClassPublic            // a public address
	ClassReserved          // documentation, benchmarking, future use, broadcast
	ClassMulticast         // one to many
	ClassCGNAT             // carrier-grade NAT, 100.64.0.0/10
	ClassPrivate           // private networks and unique local addresses; names that only exist there
	ClassLinkLocal         // this link only
	ClassUnspecified       // 0.0.0.0 and ::, which reach the local host
	ClassLoopback          // the local host
	ClassMetadata          // a cloud's metadata service, which hands out credentials
)

var classNames = [...]string{"invalid", "name", "public", "reserved", "multicast", "cgnat", "private", "link-local",
	"unspecified", "loopback", "metadata"}

// String returns the class in lower case.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Local reports whether the class lies outside the public network.
func (c Class) Local() bool { return c > ClassPublic || c == ClassInvalid }

var metadataAddrs = addrSet(
	"169.254.169.254", // AWS, Google, Azure, DigitalOcean, OpenStack, Oracle …
	"169.254.170.2",   // AWS container credentials
	"169.254.170.23",  // AWS pod identity
	"169.254.42.42",   // Scaleway
	"100.100.100.200", // Alibaba
	"192.0.0.192",     // Oracle, older
	"168.63.129.16",   // Azure host agent
	"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
)

func addrSet(list ...string) map[netip.Addr]bool {
	m := make(map[netip.Addr]bool, len(list))
	for _, s := range list {
		m[netip.MustParseAddr(s)] = true
	}
	return m
}

var classPrefixes = []struct {
	p netip.Prefix
	c Class
}{
	{netip.MustParsePrefix("0.0.0.0/8"), ClassUnspecified},
	{netip.MustParsePrefix("::/128"), ClassUnspecified},
	{netip.MustParsePrefix("127.0.0.0/8"), ClassLoopback},
	{netip.MustParsePrefix("::1/128"), ClassLoopback},
	{netip.MustParsePrefix("10.0.0.0/8"), ClassPrivate},
	{netip.MustParsePrefix("172.16.0.0/12"), ClassPrivate},
	{netip.MustParsePrefix("192.168.0.0/16"), ClassPrivate},
	{netip.MustParsePrefix("fc00::/7"), ClassPrivate},
	{netip.MustParsePrefix("fec0::/10"), ClassPrivate},
	{netip.MustParsePrefix("169.254.0.0/16"), ClassLinkLocal},
	{netip.MustParsePrefix("fe80::/10"), ClassLinkLocal},
	{netip.MustParsePrefix("100.64.0.0/10"), ClassCGNAT},
	{netip.MustParsePrefix("224.0.0.0/4"), ClassMulticast},
	{netip.MustParsePrefix("ff00::/8"), ClassMulticast},
	{netip.MustParsePrefix("192.0.0.0/24"), ClassReserved},
	{netip.MustParsePrefix("192.0.2.0/24"), ClassReserved},
	{netip.MustParsePrefix("198.18.0.0/15"), ClassReserved},
	{netip.MustParsePrefix("198.51.100.0/24"), ClassReserved},
	{netip.MustParsePrefix("203.0.113.0/24"), ClassReserved},
	{netip.MustParsePrefix("240.0.0.0/4"), ClassReserved},
	{netip.MustParsePrefix("100::/64"), ClassReserved},
	{netip.MustParsePrefix("2001:db8::/32"), ClassReserved},
	{netip.MustParsePrefix("3fff::/20"), ClassReserved},
}

// ClassOf returns the most delicate class of an address and of every IPv4 address inside it.
func ClassOf(a netip.Addr) Class {
	if !a.IsValid() {
		return ClassInvalid
	}
	worst := classOne(a.WithZone("").Unmap())
	for _, e := range Embedded(a) {
		worst = max(worst, classOne(e))
	}
	return worst
}

func classOne(a netip.Addr) Class {
	if metadataAddrs[a] {
		return ClassMetadata
	}
	for _, e := range classPrefixes {
		if e.p.Contains(a) {
			return e.c
		}
	}
	return ClassPublic
}

var (
	nat64Well  = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	v4Compat   = netip.MustParsePrefix("::/96")
	v4Trans    = netip.MustParsePrefix("::ffff:0:0:0/96")
)

// Embedded returns the IPv4 addresses that an IPv6 address carries and that a translator or tunnel
// on the way would connect to: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
func Embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	a = a.WithZone("")
	b := a.As16()
	last := v4(b[12], b[13], b[14], b[15])
	switch {
	case a.Is4In6():
		return []netip.Addr{a.Unmap()}
	case v4Compat.Contains(a):
		if b[12] == 0 && b[13] == 0 && b[14] == 0 && b[15] <= 1 {
			return nil // :: and ::1 are themselves
		}
		return []netip.Addr{last}
	case v4Trans.Contains(a), nat64Well.Contains(a):
		return []netip.Addr{last}
	case nat64Local.Contains(a):
		// RFC 6052 lets a network choose the prefix length; both ends are read.
		return []netip.Addr{last, v4(b[6], b[7], b[9], b[10]), v4(b[7], b[9], b[10], b[11])}
	case sixToFour.Contains(a):
		return []netip.Addr{v4(b[2], b[3], b[4], b[5])}
	case teredo.Contains(a):
		return []netip.Addr{v4(b[4], b[5], b[6], b[7]), v4(^b[12], ^b[13], ^b[14], ^b[15])}
	case b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5E && b[11] == 0xFE:
		return []netip.Addr{last}
	}
	return nil
}

func v4(a, b, c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{a, b, c, d}) }

// parseIPv4 reads the spellings the C library reads: one to four parts, each decimal, octal (0177)
// or hexadecimal (0x7f), the last filling the rest. isNumber is true if the text can only be meant
// as an address; ok if it is one. A part with a leading zero is octal to some programs and decimal
// to others, so both readings are returned.
func parseIPv4(s string) (addrs []netip.Addr, odd, isNumber, ok bool) {
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	if !numeric(parts[len(parts)-1]) {
		return nil, false, false, false
	}
	if len(parts) > 4 {
		return nil, false, true, false
	}
	octal, ok1 := joinIPv4(parts, true)
	plain, ok2 := joinIPv4(parts, false)
	if !ok1 && !ok2 {
		return nil, false, true, false
	}
	if ok1 {
		addrs = append(addrs, octal)
	}
	if ok2 && (!ok1 || plain != octal) {
		addrs = append(addrs, plain)
	}
	odd = len(addrs) > 1 || addrs[0].String() != s
	return addrs, odd, true, true
}

func numeric(s string) bool {
	if len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		for i := 2; i < len(s); i++ {
			if unhex(s[i]) < 0 {
				return false
			}
		}
		return true
	}
	return allDigits(s)
}

func joinIPv4(parts []string, octal bool) (netip.Addr, bool) {
	var v uint64
	for i, p := range parts {
		n, ok := ipv4Part(p, octal)
		width := 8
		if i == len(parts)-1 {
			width = 8 * (5 - len(parts))
		}
		if !ok || n >= 1<<width {
			return netip.Addr{}, false
		}
		v = v<<width | n
	}
	return v4(byte(v>>24), byte(v>>16), byte(v>>8), byte(v)), true
}

func ipv4Part(p string, octal bool) (uint64, bool) {
	base := 10
	switch {
	case len(p) >= 2 && p[0] == '0' && p[1]|0x20 == 'x':
		if p = p[2:]; p == "" {
			return 0, true // WHATWG reads "0x" as zero
		}
		base = 16
	case octal && len(p) > 1 && p[0] == '0':
		base = 8
	}
	for len(p) > 1 && p[0] == '0' {
		p = p[1:] // "0000000000000000177" is no overflow
	}
	n, err := strconv.ParseUint(p, base, 32)
	return n, err == nil
}
