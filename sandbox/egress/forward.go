package egress

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// forward handles one plain request and reports whether the connection lives.
func (p *Proxy) forward(c net.Conn, br *bufio.Reader, req *http.Request, fixed *target) bool {
	authority := req.URL.Host
	if fixed != nil {
		authority = hostPort(fixed.host, fixed.port)
		req.URL.Host, req.URL.Scheme = authority, "http"
	}
	if req.URL.Scheme != "http" || authority == "" {
		denyHTTP(c, authority, "not a proxy request")
		return false
	}
	host, port, err := splitHostPort(authority)
	if err != nil {
		if host, port, err = splitHostPort(net.JoinHostPort(strings.Trim(authority, "[]"), "80")); err != nil {
			denyHTTP(c, authority, "malformed destination")
			return false
		}
	}
	if !sameHost(req.Host, host, port) {
		p.tell(Decision{Host: host, Port: port, Reason: "the Host header says " + req.Host})
		denyHTTP(c, host, "the Host header names another host")
		return false
	}
	if fixed != nil {
		return p.roundTrip(c, br, req, *fixed)
	}
	t := p.decide(host, port)
	if len(t.addrs) == 0 {
		denyHTTP(c, t.host, t.why)
		return false
	}
	return p.roundTrip(c, br, req, t)
}

// hopHeaders concern one connection only. The first of them are taken out of
// answers too.
var hopHeaders = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer"}

// lingerTime is how long the rest of a request may take that was answered
// before all of it was said.
const lingerTime = time.Second

func badGateway(c net.Conn) {
	_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
}

// roundTrip takes one request to where it may go and the answer back, over a
// connection of its own, and reports whether the client's connection lives.
func (p *Proxy) roundTrip(c net.Conn, br *bufio.Reader, req *http.Request, t target) bool {
	up, err := p.dial(t)
	if err != nil {
		badGateway(c)
		return false
	}
	defer p.untrack(up)
	sent := make(chan struct{})
	send := func() {
		defer close(sent)
		if err = sendRequest(up, c, br, req); err != nil {
			closeWrite(up) // there will be no more of it to wait for
		}
	}
	if req.ContentLength == 0 {
		send()
	} else {
		go send() // a server may answer before it has heard everything
	}
	lives := p.answer(c, br, up, req)
	select {
	case <-sent:
		if err == nil {
			return lives
		}
	case <-time.After(lingerTime):
	}
	// Nobody listens any more. The client gets to read its answer before the
	// connection is cut under what it still says.
	_ = up.Close()
	closeWrite(c)
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	<-sent
	_, _ = io.Copy(io.Discard, br)
	return false
}

// upgrades reports whether a request asks for another protocol. One that has a
// body to send first does not get it.
func upgrades(req *http.Request) bool {
	return req.Header.Get("Upgrade") != "" && req.ContentLength == 0
}

func sendRequest(up, c net.Conn, br *bufio.Reader, req *http.Request) error {
	out := *req
	out.Header = req.Header.Clone()
	for _, h := range hopHeaders {
		out.Header.Del(h)
	}
	if upgrades(req) {
		out.Header.Set("Connection", "Upgrade")
	} else {
		out.Header.Del("Upgrade")
		out.Header.Set("Connection", "close")
	}
	out.Host = req.URL.Host
	if req.ContentLength < 0 {
		return out.Write(up)
	}
	var head bytes.Buffer
	head.WriteString(req.Method + " " + req.URL.RequestURI() + " HTTP/1.1\r\nHost: " + out.Host + "\r\n")
	if err := writeHead(up, &head, out.Header, req.ContentLength); err != nil {
		return err
	}
	return carry(up, br, c, req.ContentLength)
}

// writeHead ends a head that has its first lines. A length that was stated is
// stated again, in one way.
func writeHead(to net.Conn, head *bytes.Buffer, h http.Header, length int64) error {
	if h.Get("Content-Length") != "" {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if err := h.Write(head); err != nil {
		return err
	}
	head.WriteString("\r\n")
	_, err := to.Write(head.Bytes())
	return err
}

// answer passes on what the server says to a request, and reports whether the
// client's connection can take another one.
func (p *Proxy) answer(c net.Conn, br *bufio.Reader, up net.Conn, req *http.Request) bool {
	ubr := bufio.NewReader(up)
	for {
		resp, err := http.ReadResponse(ubr, req)
		if err != nil || resp.StatusCode == http.StatusSwitchingProtocols && !upgrades(req) {
			badGateway(c)
			return false
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			switched(c, br, up, ubr, resp)
			return false
		case resp.StatusCode >= 200:
			return sendResponse(c, up, ubr, resp, req.Close)
		case req.ProtoAtLeast(1, 1):
			// Go on, or wait: the client may hold its body back until it hears.
			if sendHead(c, resp, 0) != nil {
				return false
			}
		}
	}
}

func sendHead(c net.Conn, resp *http.Response, length int64) error {
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 " + resp.Status + "\r\n")
	return writeHead(c, &head, resp.Header, length)
}

func sendResponse(c, up net.Conn, ubr *bufio.Reader, resp *http.Response, last bool) bool {
	for _, h := range hopHeaders[:3] {
		resp.Header.Del(h)
	}
	if resp.ContentLength < 0 {
		resp.Close = last
		return resp.Write(c) == nil && !last && len(resp.TransferEncoding) > 0
	}
	if last {
		resp.Header.Set("Connection", "close")
	}
	if sendHead(c, resp, resp.ContentLength) != nil {
		return false
	}
	// An answer to HEAD states the length of a body that does not come.
	if resp.Body == http.NoBody {
		return !last
	}
	return carry(c, ubr, up, resp.ContentLength) == nil && !last
}

// switched carries on after an upgrade.
func switched(c net.Conn, br *bufio.Reader, up net.Conn, ubr *bufio.Reader, resp *http.Response) {
	if sendHead(c, resp, 0) != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = carryAll(c, ubr, up)
		closeWrite(c)
	}()
	upstream(c, br, up)
	<-done
}
