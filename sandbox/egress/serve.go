package egress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// headTime bounds how long a client may take over its first words.
const headTime = 60 * time.Second

const maxHead = 64 << 10

// What may wait in a connection within this machine, on its way out of the
// proxy and into it. What would be a window on a long line is only memory here:
// left alone it grows to megabytes, which fall out of the processor's cache
// before they are read. Measured by BenchmarkEgress.
const (
	localOut = 128 << 10
	localIn  = 512 << 10
)

// within sets the buffers of a connection if both its ends are on this machine.
// Others keep the kernel's, which grow with the distance.
func within(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	here, ok1 := t.LocalAddr().(*net.TCPAddr)
	there, ok2 := t.RemoteAddr().(*net.TCPAddr)
	if ok1 && ok2 && here.IP.Equal(there.IP) {
		_ = t.SetWriteBuffer(localOut)
		_ = t.SetReadBuffer(localIn)
	}
}

func (p *Proxy) serveConn(c net.Conn) {
	within(c)
	_ = c.SetReadDeadline(time.Now().Add(headTime))
	br := bufio.NewReaderSize(c, maxHead)
	first, err := br.Peek(1)
	if err != nil {
		return
	}
	if first[0] == 5 {
		p.serveSOCKS(c, br)
		return
	}
	p.serveHTTP(c, br, nil)
}

// serveHTTP answers requests of one connection. fixed is the destination when
// the requests arrive inside a tunnel, where each must still name it.
func (p *Proxy) serveHTTP(c net.Conn, br *bufio.Reader, fixed *target) {
	for {
		_ = c.SetReadDeadline(time.Now().Add(headTime))
		header := peekHost(br)
		req, err := http.ReadRequest(br)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			}
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		// The library prefers the target's host; what matters is whether the
		// two agree.
		req.Host = header
		if req.Method == http.MethodConnect && fixed == nil {
			p.serveConnect(c, br, req)
			return
		}
		if !p.forward(c, br, req, fixed) {
			return
		}
	}
}

func (p *Proxy) serveConnect(c net.Conn, br *bufio.Reader, req *http.Request) {
	host, port, err := splitHostPort(req.RequestURI)
	if err != nil {
		p.tell(Decision{Host: req.RequestURI, Reason: "malformed destination"})
		denyHTTP(c, req.RequestURI, "malformed destination")
		return
	}
	if req.Host != "" && !sameHost(req.Host, host, port) {
		p.tell(Decision{Host: host, Port: port, Reason: "the Host header says " + req.Host})
		denyHTTP(c, host, "the Host header names another host")
		return
	}
	t := p.decide(host, port)
	if len(t.addrs) == 0 {
		denyHTTP(c, t.host, t.why)
		return
	}
	up, err := p.dial(t)
	if err != nil {
		badGateway(c)
		return
	}
	defer p.untrack(up)
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	p.tunnel(c, br, up, t)
}

// denyHTTP says no in a way both programs and people understand.
func denyHTTP(c net.Conn, host, why string) {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '?'
			}
			return r
		}, s)
	}
	body := "gatehouse: " + clean(host) + ": " + clean(why) + "\n"
	_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\nX-Gatehouse-Refused: "+
		clean(why)+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
}

func (p *Proxy) serveSOCKS(c net.Conn, br *bufio.Reader) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(br, head); err != nil {
		return
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(br, methods); err != nil {
		return
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return
	}
	reply := func(code byte) { _, _ = c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0}) }
	req := make([]byte, 4)
	if _, err := io.ReadFull(br, req); err != nil || req[0] != 5 {
		return
	}
	host, err := socksHost(br, req[3])
	if err != nil {
		reply(8)
		return
	}
	var port [2]byte
	if _, err := io.ReadFull(br, port[:]); err != nil {
		return
	}
	// Listening and datagrams are not things a proxy with a host list offers.
	if req[1] != 1 {
		p.tell(Decision{Host: host, Reason: "only connections are carried"})
		reply(7)
		return
	}
	t := p.decide(host, binary.BigEndian.Uint16(port[:]))
	if len(t.addrs) == 0 {
		reply(2)
		return
	}
	up, err := p.dial(t)
	if err != nil {
		reply(5)
		return
	}
	defer p.untrack(up)
	reply(0)
	_ = c.SetReadDeadline(time.Time{})
	p.tunnel(c, br, up, t)
}

func socksHost(br *bufio.Reader, kind byte) (string, error) {
	n := 0
	switch kind {
	case 1:
		n = 4
	case 4:
		n = 16
	case 3:
		b, err := br.ReadByte()
		if err != nil {
			return "", err
		}
		n = int(b)
	default:
		return "", errors.New("unknown address type")
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(br, raw); err != nil {
		return "", err
	}
	if kind == 3 {
		return string(raw), nil
	}
	a, _ := netip.AddrFromSlice(raw)
	return a.String(), nil
}

// tunnel carries bytes both ways. What the server says flows at once, because
// in some protocols it speaks first; what the client says is looked at before
// its first byte leaves: a TLS greeting must name the host the tunnel was opened
// for, and so must every plain request.
func (p *Proxy) tunnel(c net.Conn, br *bufio.Reader, up net.Conn, t target) {
	_ = c.SetReadDeadline(time.Time{})
	first := make(chan byte, 1)
	go func() {
		b, err := br.Peek(1)
		if err == nil {
			first <- b[0]
		}
		close(first)
	}()
	// A server that speaks first must not wait for a client that listens.
	down := make(chan struct{})
	var detached atomic.Bool
	go func() {
		defer close(down)
		_, _ = io.Copy(c, up)
		if !detached.Load() {
			closeWrite(c)
		}
	}()
	b, ok := <-first
	switch {
	case ok && b == 0x16:
		if why := p.agreeTLS(br, t); why != "" {
			p.tell(Decision{Host: t.host, Port: t.port, Reason: why})
			_ = up.Close()
			_ = c.Close()
			break
		}
		upstream(c, br, up)
	case ok && looksHTTP(br):
		// Each request of the connection is judged, so the tunnel ends here
		// and the connection is served as the proxy requests it consists of.
		detached.Store(true)
		_ = up.Close()
		<-down
		p.serveHTTP(c, br, &t)
		_ = c.Close()
		return
	default:
		upstream(c, br, up)
	}
	<-down
}

// upstream carries what the client says until it stops.
func upstream(c net.Conn, br *bufio.Reader, up net.Conn) {
	err := carryAll(up, br, c)
	closeWrite(up)
	if err != nil {
		_ = up.Close()
	}
}

// held passes on what a reader took from its connection beyond what it was
// asked for, at most n bytes of it, and returns how many those were.
func held(dst net.Conn, br *bufio.Reader, n int64) (int64, error) {
	b, _ := br.Peek(int(min(n, int64(br.Buffered()))))
	if len(b) == 0 {
		return 0, nil
	}
	_, err := dst.Write(b)
	_, _ = br.Discard(len(b))
	return int64(len(b)), err
}

// carryAll passes on what a reader holds and then all that comes: from socket to
// socket, where the kernel moves the bytes by itself.
func carryAll(dst net.Conn, br *bufio.Reader, src net.Conn) error {
	if _, err := held(dst, br, math.MaxInt64); err != nil {
		return err
	}
	_, err := io.Copy(dst, src)
	return err
}

// carry is carryAll for n bytes.
func carry(dst net.Conn, br *bufio.Reader, src net.Conn, n int64) error {
	if n == 0 {
		return nil
	}
	early, err := held(dst, br, n)
	if err != nil || early == n {
		return err
	}
	_, err = io.CopyN(dst, src, n-early)
	return err
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = c.Close()
}
