package match

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrHostPattern is wrapped with what is wrong in a pattern.
var ErrHostPattern = errors.New("no host pattern (host, *.host, address, network/bits or *, then :port or :*)")

// webPorts are what a pattern without a port stands for.
var webPorts = []int{80, 443}

// A HostPattern holds hosts with ports:
//
//	api.example.com     that host, ports 80 and 443
//	*.example.com:443   any host below, at any depth, not example.com itself
//	example.com:*       any port, also an unknown one
//	10.0.0.0/8:5432     addresses of a network
//	[::1]:8080          one address
//	:443                any host on that port
//	*                   any host, ports 80 and 443
//
// Names and addresses are different things: "*.example.com" holds no address, a network no name.
type HostPattern struct {
	src     string
	kind    hostKind
	name    string // for hostName; for hostBelow with its leading dot
	prefix  netip.Prefix
	port    int // 0: as anyPort says
	anyPort bool
}

type hostKind uint8

const (
	hostNothing hostKind = iota // the zero pattern
	hostAny
	hostName
	hostBelow
	hostNet
)

// CompileHost compiles a host pattern.
func CompileHost(pattern string) (HostPattern, error) {
	p, err := compileHost(pattern)
	if err != nil {
		return HostPattern{}, fmt.Errorf("host pattern %q: %w", pattern, err)
	}
	return p, nil
}

func compileHost(pattern string) (HostPattern, error) {
	if err := checkPattern(pattern); err != nil {
		return HostPattern{}, err
	}
	p := HostPattern{src: pattern}
	host, port := splitPattern(pattern)
	switch {
	case port == "*":
		p.anyPort = true
	case port != "":
		n, err := parsePort(port)
		if err != nil {
			return HostPattern{}, err
		}
		p.port = n
	}
	switch {
	case host == "*" || host == "" && port != "":
		p.kind = hostAny
		return p, nil
	case strings.Contains(host, "/"):
		net, err := netip.ParsePrefix(strings.NewReplacer("[", "", "]", "").Replace(host))
		if err != nil {
			return HostPattern{}, ErrHostPattern
		}
		if net != net.Masked() {
			return HostPattern{}, fmt.Errorf("%w: write %s", ErrHostPattern, net.Masked())
		}
		p.kind, p.prefix = hostNet, unmapPrefix(net)
		return p, nil
	case strings.HasPrefix(host, "*."):
		name, err := asciiName(host[2:])
		if err != nil || numeric(name[strings.LastIndexByte(name, '.')+1:]) {
			return HostPattern{}, ErrHostPattern
		}
		p.kind, p.name = hostBelow, "."+name
		return p, nil
	case strings.ContainsAny(host, "*@?#"):
		return HostPattern{}, ErrHostPattern
	}
	var h Host
	if err := h.setName(host); err != nil {
		return HostPattern{}, err
	}
	if len(h.alts) > 0 || h.Addr.IsValid() && len(h.Odd) > 0 && h.Addr.Is4() {
		return HostPattern{}, fmt.Errorf("%w: write %s", ErrHostPattern, h.Name)
	}
	if h.Addr.IsValid() {
		a := h.Addr.WithZone("")
		p.kind, p.prefix = hostNet, netip.PrefixFrom(a, a.BitLen())
		return p, nil
	}
	p.kind, p.name = hostName, h.Name
	return p, nil
}

// splitPattern separates the port; a bare IPv6 address has none.
func splitPattern(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.Count(s[:i], ":") > 0 && !strings.Contains(s[:i], "]") {
		return s, ""
	}
	if strings.HasPrefix(s, "[") && strings.IndexByte(s, ']') > i {
		return s, ""
	}
	if i == len(s)-1 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// String returns the pattern as it was written.
func (p HostPattern) String() string { return p.src }

// Match reports whether the pattern holds every reading of the host. Use it to allow. An unknown
// port is only in ":*". That the address may lead somewhere else is what [Host.Class] tells.
func (p HostPattern) Match(h Host) bool {
	if !p.holdsPort(h.Port) || h.Name == "" {
		return false
	}
	switch p.kind {
	case hostAny:
		return true
	case hostName:
		return !h.Addr.IsValid() && h.Name == p.name
	case hostBelow:
		return !h.Addr.IsValid() && strings.HasSuffix(h.Name, p.name) && len(h.Name) > len(p.name)
	case hostNet:
		if !h.Addr.IsValid() || !p.contains(h.Addr) {
			return false
		}
		for _, a := range h.alts {
			if !p.contains(a) {
				return false
			}
		}
		return true
	}
	return false
}

// MayMatch reports whether the pattern may hold some reading of the host. Use it to deny: a pattern
// without a port then means every port, an unknown port may be any, and the IPv4 address inside an
// IPv6 one counts.
func (p HostPattern) MayMatch(h Host) bool {
	if p.port != 0 && h.Port != 0 && p.port != h.Port {
		return false
	}
	switch p.kind {
	case hostAny:
		return true
	case hostName:
		return h.Name == p.name
	case hostBelow:
		return !h.Addr.IsValid() && strings.HasSuffix(h.Name, p.name)
	case hostNet:
		for _, a := range append([]netip.Addr{h.Addr}, h.alts...) {
			if a.IsValid() && p.contains(a) {
				return true
			}
			for _, e := range Embedded(a) {
				if p.contains(e) {
					return true
				}
			}
		}
	}
	return false
}

func (p HostPattern) contains(a netip.Addr) bool { return p.prefix.Contains(a.WithZone("").Unmap()) }

func (p HostPattern) holdsPort(port int) bool {
	switch {
	case p.anyPort:
		return true
	case p.port != 0:
		return p.port == port
	}
	return port == webPorts[0] || port == webPorts[1]
}

// ports returns the ports a pattern stands for; nil means all, an unknown one included.
func (p HostPattern) ports() []int {
	switch {
	case p.anyPort:
		return nil
	case p.port != 0:
		return []int{p.port}
	}
	return webPorts
}

// CoversHosts reports whether every host and port that some pattern of narrow holds for Match is
// held by some pattern of wide.
func CoversHosts(wide, narrow []HostPattern) Answer {
	for _, n := range narrow {
		if n.kind == hostNothing {
			continue
		}
		if n.anyPort {
			if !coversAt(wide, n, 0) {
				return No // an unknown port is in ":*" alone
			}
			continue
		}
		for _, port := range n.ports() {
			if !coversAt(wide, n, port) {
				return No
			}
		}
	}
	return Yes
}

// coversAt decides for one port. Names below a wildcard are without number, so no finite list of
// names or deeper wildcards can make one up; only networks can be put together from parts.
func coversAt(wide []HostPattern, n HostPattern, port int) bool {
	var nets []netip.Prefix
	for _, w := range wide {
		if !w.holdsPort(port) {
			continue
		}
		switch w.kind {
		case hostAny:
			return true
		case hostName:
			if n.kind == hostName && n.name == w.name {
				return true
			}
		case hostBelow:
			if (n.kind == hostName || n.kind == hostBelow) && strings.HasSuffix(n.name, w.name) && (n.kind == hostBelow || len(n.name) > len(w.name)) {
				return true
			}
		case hostNet:
			nets = append(nets, w.prefix)
		}
	}
	return n.kind == hostNet && netCovered(nets, n.prefix)
}

// netCovered splits n in halves until each part lies in one network or meets none. Only networks
// that overlap are followed, so the work is bounded by their number times the address length.
func netCovered(nets []netip.Prefix, n netip.Prefix) bool {
	var inside []netip.Prefix
	for _, w := range nets {
		if !w.Overlaps(n) {
			continue
		}
		if w.Bits() <= n.Bits() {
			return true
		}
		inside = append(inside, w)
	}
	if len(inside) == 0 {
		return false
	}
	lo, hi := halves(n)
	return netCovered(inside, lo) && netCovered(inside, hi)
}

func halves(n netip.Prefix) (lo, hi netip.Prefix) {
	bits := n.Bits() + 1
	b := n.Addr().AsSlice()
	b[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
	up, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(n.Addr(), bits), netip.PrefixFrom(up, bits)
}
