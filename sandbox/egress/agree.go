package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// parseHost tells an address from a name and normalises the latter.
func parseHost(host string) (netip.Addr, string, error) {
	if strings.ContainsAny(host, "\x00\r\n /@?#%\\") {
		return netip.Addr{}, "", errors.New("malformed host")
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return embedded(a), "", nil
	}
	name, err := normalName(host)
	return netip.Addr{}, name, err
}

func splitHostPort(s string) (string, uint16, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, errors.New("malformed destination")
	}
	return host, uint16(n), nil
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// sameHost compares a Host header with a destination.
func sameHost(header, host string, port uint16) bool {
	h, n, err := splitHostPort(header)
	if err != nil {
		h, n = strings.Trim(header, "[]"), port
		if strings.Contains(header, ":") && !strings.HasPrefix(header, "[") && strings.Count(header, ":") == 1 {
			return false
		}
	}
	if n != port {
		return false
	}
	a1, n1, err1 := parseHost(h)
	a2, n2, err2 := parseHost(host)
	return err1 == nil && err2 == nil && a1 == a2 && n1 == n2
}

// agreeTLS reads the server name out of the greeting. A greeting without one
// names nobody and passes; one that cannot be read is refused.
func (p *Proxy) agreeTLS(br *bufio.Reader, t target) string {
	head, err := br.Peek(5)
	if err != nil {
		return "a malformed TLS greeting"
	}
	size := int(head[3])<<8 | int(head[4])
	if size > 16<<10 {
		return "a malformed TLS greeting"
	}
	rec, err := br.Peek(5 + size)
	if err != nil {
		return "a malformed TLS greeting"
	}
	name, ok := serverName(rec[5:])
	if !ok {
		return "an unreadable TLS greeting"
	}
	if name == "" {
		return ""
	}
	norm, err := normalName(name)
	if err != nil {
		return "a malformed server name"
	}
	if norm == t.host {
		return ""
	}
	// A tunnel to an address has no name to agree with; then the name must be
	// declared in its own right.
	if a, _, err := parseHost(t.host); err == nil && a.IsValid() && p.declared(norm, netip.Addr{}, t.port) {
		return ""
	}
	return "the TLS greeting names " + norm
}

// serverName extracts the SNI host of a ClientHello. A greeting split over
// several records is not read: no client does that but to hide its name.
func serverName(b []byte) (string, bool) {
	r := reader{b: b}
	if r.u8() != 1 {
		return "", false
	}
	body := reader{b: r.take(int(r.u8())<<16 | int(r.u8())<<8 | int(r.u8()))}
	if r.bad {
		return "", false
	}
	body.take(2 + 32)
	body.take(int(body.u8()))
	body.take(body.u16())
	body.take(int(body.u8()))
	if body.bad {
		return "", false
	}
	if len(body.b) == 0 {
		return "", true
	}
	exts := reader{b: body.take(body.u16())}
	for len(exts.b) > 0 && !exts.bad {
		kind := exts.u16()
		data := reader{b: exts.take(exts.u16())}
		if kind != 0 || exts.bad {
			continue
		}
		list := reader{b: data.take(data.u16())}
		if list.u8() != 0 {
			return "", false
		}
		name := string(list.take(list.u16()))
		return name, !data.bad && !list.bad && len(list.b) == 0
	}
	return "", !exts.bad && !body.bad
}

// reader walks a greeting; running past its end sets bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() int { return int(r.u8())<<8 | int(r.u8()) }

var httpMethods = []string{"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "TRACE ", "CONNECT "}

// maxLine is how much of a first line is waited for.
const maxLine = 8 << 10

// looksHTTP reports whether a tunnel begins with a plain request: by its whole
// first line, because servers take any method, skip empty lines before it and
// do not mind how it is split. What has a control character in it is no line of
// text. A line without an end is taken for a request, which it then fails to be.
func looksHTTP(br *bufio.Reader) bool {
	for n := 1; n < maxLine; n = br.Buffered() + 1 {
		_, err := br.Peek(n)
		b, _ := br.Peek(br.Buffered())
		line, _, whole := bytes.Cut(bytes.TrimLeft(b, "\r\n"), []byte("\n"))
		line = bytes.TrimRight(line, "\r")
		if bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return false
		}
		if whole || err != nil {
			return bytes.Contains(line, []byte(" HTTP/")) || slices.ContainsFunc(httpMethods, func(m string) bool { return bytes.HasPrefix(line, []byte(m)) })
		}
	}
	return true
}

// peekHost returns the Host header of the request that is about to be read,
// without consuming it; "" if there is none within the limits.
func peekHost(br *bufio.Reader) string {
	n := 1
	for {
		if _, err := br.Peek(n); err != nil {
			return ""
		}
		if b, _ := br.Peek(br.Buffered()); bytes.Contains(b, []byte("\r\n\r\n")) || bytes.Contains(b, []byte("\n\n")) {
			break
		}
		n = br.Buffered() + 1
	}
	b, _ := br.Peek(br.Buffered())
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(bytes.TrimSpace(k), []byte("host")) {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}
