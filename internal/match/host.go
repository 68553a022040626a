package match

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Errors of hosts. A caller that guards denies on each of them.
var (
	ErrNoHost        = errors.New("names no host")
	ErrBadHost       = errors.New("is no valid host")
	ErrAmbiguousHost = errors.New("is read as different hosts by different programs")
	ErrBadPort       = errors.New("has no valid port")
)

// maxHostWord bounds what ParseHost looks at: a URL's path may be long, its authority may not.
const maxHostWord = 64 << 10

// A Host is where a connection would go.
type Host struct {
	// Name is lower-case ASCII without a trailing dot; for an address its canonical text.
	Name string
	// Addr is set if the host is an address.
	Addr netip.Addr
	// Port is 0 if neither written nor implied by the scheme.
	Port int
	// Scheme is lower case; empty if the word had none.
	Scheme string
	// User is set if the word carried user information before an "@".
	User bool
	// Odd lists, in words, what is unusual about the spelling.
	Odd []string

	alts []netip.Addr // further readings of the address
}

// ParseHost reads a URL, "//host/path", "host:port", "[v6]:port", a bare address in any spelling
// or "user@host:path". What two common programs would connect to differently is an error, never a
// choice: backslashes, control characters, percent signs in the host, several "@".
func ParseHost(word string) (Host, error) {
	h, err := parseHost(word)
	if err != nil {
		if len(word) > 200 {
			word = word[:200] + "…"
		}
		return Host{}, fmt.Errorf("host %s: %w", Visible(word), err)
	}
	return h, nil
}

func parseHost(word string) (Host, error) {
	switch {
	case word == "":
		return Host{}, ErrNoHost
	case len(word) > maxHostWord || !utf8.ValidString(word):
		return Host{}, ErrBadHost
	}
	for i := 0; i < len(word); i++ {
		if word[i] <= ' ' || word[i] == 0x7F || word[i] == '\\' {
			// Browsers drop tabs and line ends and read "\" as "/"; others do not.
			return Host{}, ErrAmbiguousHost
		}
	}
	h := Host{}
	rest, err := h.takeScheme(word)
	if err != nil {
		return Host{}, err
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if err := h.takeUser(&authority, tail); err != nil {
		return Host{}, err
	}
	host, port, err := h.splitPort(authority)
	if err != nil {
		return Host{}, err
	}
	if err := h.setName(host); err != nil {
		return Host{}, err
	}
	h.Port = port
	if port == 0 {
		h.Port = defaultPorts[h.Scheme]
	}
	return h, nil
}

// defaultPorts of the schemes agents use.
var defaultPorts = map[string]int{
	"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ftps": 990, "sftp": 22, "ssh": 22, "scp": 22, "git": 9418,
	"git+ssh": 22, "ssh+git": 22, "git+https": 443, "git+http": 80, "svn": 3690, "rsync": 873, "telnet": 23, "ldap": 389, "ldaps": 636,
	"postgres": 5432, "postgresql": 5432, "mysql": 3306, "mariadb": 3306, "redis": 6379, "rediss": 6379, "mongodb": 27017,
	"amqp": 5672, "amqps": 5671, "smtp": 25, "smtps": 465, "imap": 143, "imaps": 993, "pop3": 110, "mqtt": 1883, "nats": 4222,
	"gopher": 70, "docker": 2375, "socks5": 1080, "socks5h": 1080,
}

// takeScheme splits off "scheme://" or "//".
func (h *Host) takeScheme(word string) (string, error) {
	if rest, ok := strings.CutPrefix(word, "//"); ok {
		return rest, nil
	}
	i := strings.IndexByte(word, ':')
	if i <= 0 || !isScheme(word[:i]) {
		return word, nil
	}
	scheme := strings.ToLower(word[:i])
	if rest, ok := strings.CutPrefix(word[i+1:], "//"); ok {
		h.Scheme = scheme
		if scheme == "file" {
			return "", ErrNoHost
		}
		if _, web := webSchemes[scheme]; web && strings.HasPrefix(rest, "/") {
			return "", ErrAmbiguousHost // browsers skip further slashes
		}
		return rest, nil
	}
	switch scheme {
	case "data", "mailto", "javascript", "about", "blob", "file", "urn", "tel":
		return "", ErrNoHost
	}
	if _, web := webSchemes[scheme]; web {
		// "https:host" and "https:/host" reach host in a browser and nothing elsewhere.
		if rest := word[i+1:]; !allDigits(rest) {
			return "", ErrAmbiguousHost
		}
	}
	return word, nil
}

var webSchemes = map[string]struct{}{"http": {}, "https": {}, "ws": {}, "wss": {}, "ftp": {}}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if c >= 'a' && c <= 'z' || i > 0 && (s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.') {
			continue
		}
		return false
	}
	return s != ""
}

// takeUser removes user information.
func (h *Host) takeUser(authority *string, tail string) error {
	a := *authority
	i := strings.LastIndexByte(a, '@')
	if i >= 0 {
		user := a[:i]
		if strings.IndexByte(user, '@') >= 0 {
			return ErrAmbiguousHost
		}
		h.User = true
		if name, _, _ := strings.Cut(user, ":"); strings.IndexByte(name, '.') >= 0 {
			h.Odd = append(h.Odd, "the part before @ looks like a host")
		}
		*authority = a[i+1:]
		return nil
	}
	// "http://good.example#@evil.example/": some programs look for the "@" first. Only before the
	// first slash of the tail can it be meant as an authority; an "@" in a path is ordinary.
	if tail != "" && tail[0] != '/' {
		if end := strings.IndexByte(tail, '/'); end >= 0 {
			tail = tail[:end]
		}
		if at := strings.IndexByte(tail, '@'); at >= 0 && (tail[0] == '#' || at == 1) {
			return ErrAmbiguousHost
		}
	}
	return nil
}

// splitPort separates host and port; "host:path" without a scheme is how scp and git write.
func (h *Host) splitPort(a string) (host string, port int, err error) {
	if strings.HasPrefix(a, "[") {
		end := strings.IndexByte(a, ']')
		if end < 0 {
			return "", 0, ErrBadHost
		}
		rest := a[end+1:]
		if rest == "" || rest == ":" {
			return a[:end+1], 0, nil
		}
		if rest[0] != ':' {
			return "", 0, ErrBadHost
		}
		port, err = parsePort(rest[1:])
		return a[:end+1], port, err
	}
	if strings.Count(a, ":") > 1 {
		return a, 0, nil // a bare IPv6 address, or nothing
	}
	host, after, ok := strings.Cut(a, ":")
	if !ok || after == "" {
		return host, 0, nil
	}
	if h.Scheme == "" && !allDigits(after) {
		h.Scheme = "ssh"
		return host, 0, nil
	}
	port, err = parsePort(after)
	return host, port, err
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || !allDigits(s) {
		return 0, ErrBadPort
	}
	return int(n), nil
}

func (h *Host) setName(host string) error {
	if strings.IndexByte(host, ':') >= 0 || strings.HasPrefix(host, "[") {
		return h.setIPv6(host)
	}
	if strings.IndexByte(host, '%') >= 0 {
		return ErrAmbiguousHost // curl decodes it, others refuse
	}
	name, err := asciiName(host)
	if err != nil {
		return err
	}
	if FormOf(host) != FormASCII {
		h.Odd = append(h.Odd, "not ASCII; on the wire it is "+name)
		for _, m := range Inspect(host) {
			if m.Kind == MarkMixedScript || m.Kind == MarkLookAlike || m.Kind.stripped() {
				h.Odd = append(h.Odd, m.Kind.String()+" in the host name")
			}
		}
	}
	addrs, odd, isNumber, ok := parseIPv4(name)
	switch {
	case isNumber && !ok:
		return ErrBadHost
	case ok:
		h.Addr, h.alts = addrs[0], addrs[1:]
		h.Name = h.Addr.String()
		if odd {
			h.Odd = append(h.Odd, "an unusual spelling of "+h.Name)
		}
		return nil
	}
	h.Name = name
	return nil
}

func (h *Host) setIPv6(host string) error {
	inner := host
	if strings.HasPrefix(host, "[") {
		inner = strings.TrimSuffix(host[1:], "]")
	}
	if z, zone, ok := strings.Cut(inner, "%"); ok {
		zone = strings.TrimPrefix(zone, "25")
		// A zone that starts with "25" again reads differently each time its "%" is decoded.
		if !validZone(zone) || strings.HasPrefix(zone, "25") {
			return ErrBadHost
		}
		inner = z + "%" + zone
	}
	a, err := netip.ParseAddr(inner)
	if err != nil || !a.Is6() {
		return ErrBadHost
	}
	h.Addr = a.Unmap()
	h.Name = h.Addr.String()
	for _, e := range Embedded(a) {
		h.Odd = append(h.Odd, "carries the IPv4 address "+e.String())
	}
	return nil
}

// validZone keeps a zone to what an interface is called and a URL may spell unescaped (RFC 6874).
func validZone(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// hostProfile maps as browsers do (UTS #46, not transitional) and leaves the choice of characters
// to validName, since real hosts have underscores.
var hostProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.CheckHyphens(false),
	idna.StrictDomainName(false), idna.ValidateLabels(true))

func asciiName(host string) (string, error) {
	name := host
	if FormOf(host) != FormASCII || strings.Contains(strings.ToLower(host), "xn--") {
		var err error
		if name, err = hostProfile.ToASCII(host); err != nil {
			return "", ErrBadHost
		}
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if !validName(name) {
		return "", ErrBadHost
	}
	return name, nil
}

func validName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := 0; i < len(label); i++ {
			c := label[i]
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' && i > 0 {
				continue
			}
			return false
		}
	}
	return true
}

// Class returns the most delicate class of all readings of the host.
func (h Host) Class() Class {
	if h.Addr.IsValid() {
		worst := ClassOf(h.Addr)
		for _, a := range h.alts {
			worst = max(worst, ClassOf(a))
		}
		return worst
	}
	if h.Name == "" {
		return ClassInvalid
	}
	return classOfName(h.Name)
}

var nameClasses = map[string]Class{
	"localhost": ClassLoopback, "localhost.localdomain": ClassLoopback, "localhost4": ClassLoopback, "localhost6": ClassLoopback,
	"ip6-localhost": ClassLoopback, "ip6-loopback": ClassLoopback, "localtest.me": ClassLoopback, "lvh.me": ClassLoopback,
	"vcap.me": ClassLoopback, "metadata": ClassMetadata, "metadata.google.internal": ClassMetadata, "metadata.goog": ClassMetadata,
	"metadata.azure.internal": ClassMetadata, "instance-data": ClassMetadata, "instance-data.ec2.internal": ClassMetadata,
	"metadata.tencentyun.com": ClassMetadata, "metadata.platformequinix.com": ClassMetadata,
	"host.docker.internal": ClassLoopback, "gateway.docker.internal": ClassPrivate, "host.containers.internal": ClassLoopback,
	"kubernetes": ClassPrivate, "kubernetes.default": ClassPrivate, "kubernetes.default.svc": ClassPrivate,
}

func classOfName(name string) Class {
	if c, ok := nameClasses[name]; ok {
		return c
	}
	if c, ok := wildcardDNS(name); ok {
		return c
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		switch rest {
		case "localtest.me", "lvh.me", "vcap.me":
			return ClassLoopback
		}
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "localhost":
		return ClassLoopback
	case "local":
		return ClassLinkLocal
	case name, "internal", "intranet", "lan", "home", "corp", "private", "localdomain":
		return ClassPrivate // also every name of one label
	}
	if strings.HasSuffix(name, ".home.arpa") {
		return ClassPrivate
	}
	return ClassName
}

// wildcardDNS reads the address out of names under public services that answer with it:
// 10.0.0.1.nip.io, app-127-0-0-1.sslip.io, 7f000001.nip.io.
func wildcardDNS(name string) (Class, bool) {
	for _, zone := range []string{".nip.io", ".sslip.io", ".xip.io", ".traefik.me"} {
		sub, ok := strings.CutSuffix(name, zone)
		if !ok {
			continue
		}
		parts := strings.FieldsFunc(sub, func(r rune) bool { return r == '.' || r == '-' })
		for i := len(parts); i >= 4; i-- {
			if a, err := netip.ParseAddr(strings.Join(parts[i-4:i], ".")); err == nil {
				return ClassOf(a), true
			}
		}
		for _, p := range parts {
			if len(p) == 8 && numeric("0x"+p) {
				if a, ok := joinIPv4([]string{"0x" + p}, false); ok {
					return ClassOf(a), true
				}
			}
		}
		return ClassPrivate, true // sslip.io's IPv6 spellings, and anything else it may come to mean
	}
	return ClassInvalid, false
}

// String returns the host with its port, as it would be written in a rule.
func (h Host) String() string {
	name := h.Name
	if h.Addr.Is6() {
		name = "[" + name + "]"
	}
	if h.Port != 0 {
		return name + ":" + strconv.Itoa(h.Port)
	}
	return name
}
