package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Pool keeps connections to upstreams that speak plain HTTP, for messages that are posted. Whoever posts writes and reads
// by himself: [http.Transport] has two goroutines for each connection, and handing a message to one and its answer
// back from the other costs more than the message. What the pool cannot do, and that is everything but a message of
// moderate size to a plain URL, the client that it was made with does.
type Pool struct {
	client *http.Client
	direct bool

	mu   sync.Mutex
	idle map[string][]*poolConn // by address, the one used last at the end
}

const (
	// maxDirect is the largest message that is written before anything of its answer is read: it fits into the buffers
	// of two sockets, so that an upstream which answers before it has read all cannot stop both sides.
	maxDirect = 128 << 10
	// maxHead bounds the status line and the headers of an answer.
	maxHead = 1 << 20
	// poolIdle is how long a connection may be silent, poolSize how many are kept for one address.
	poolIdle, poolSize = 90 * time.Second, 256
)

// NewPool makes a pool; the client is for what it leaves to others. One that reaches servers in a way of its own gets all.
func NewPool(client *http.Client) *Pool {
	_, plain := client.Transport.(*http.Transport)
	return &Pool{client: client, direct: plain, idle: make(map[string][]*poolConn)}
}

// errRedirect keeps an answer from leading elsewhere.
var errRedirect = errors.New("the upstream redirects, and a credential must not follow")

// NoRedirect is for a client's CheckRedirect.
func NoRedirect(*http.Request, []*http.Request) error { return errRedirect }

// place is where a URL's messages go, "" where the pool does not do it.
type place struct {
	addr, host, target string
}

// place finds out whether the pool can post to a URL.
func (p *Pool) place(at string) place {
	u, err := url.Parse(at)
	if err != nil || !p.direct || !poolWorks || u.Scheme != "http" || u.User != nil || u.Host == "" || !httpguts.ValidHostHeader(u.Host) {
		return place{}
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err != nil || proxy != nil {
		return place{}
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	for _, c := range []byte(u.Host) {
		if c >= 0x80 || c == '%' {
			return place{} // names in other scripts and zones are for those who know how they are written
		}
	}
	return place{addr: net.JoinHostPort(u.Hostname(), port), host: u.Host, target: u.RequestURI()}
}

// post sends a message and returns the beginning of the answer, whose body must be closed.
func (p *Pool) post(ctx context.Context, to place, header http.Header, body []byte) (*http.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c, err := p.conn(ctx, to.addr)
	if err != nil {
		return nil, err
	}
	// The end of the context ends what is being read or written, until the answer has been read.
	c.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // a connection that is closed needs none
	resp, err := c.exchange(to, header, body)
	if err != nil {
		c.end(false)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	resp.Body = &poolBody{ReadCloser: resp.Body, conn: c, over: resp.ContentLength == 0, keep: !resp.Close}
	if redirects(resp) {
		return nil, errors.Join(errRedirect, resp.Body.Close())
	}
	return resp, nil
}

func redirects(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	}
	return false
}

// conn returns a connection that nobody uses: one from before, if the upstream has not closed it since, or a new one.
func (p *Pool) conn(ctx context.Context, addr string) (*poolConn, error) {
	for {
		c := p.take(addr)
		if c == nil {
			break
		}
		if time.Since(c.used) < poolIdle && quiet(c.TCPConn) {
			return c, nil
		}
		_ = c.Close() // it is of no more use
	}
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &poolConn{TCPConn: conn.(*net.TCPConn), pool: p, addr: addr}
	c.in = bufio.NewReaderSize(c, 4<<10)
	return c, nil
}

func (p *Pool) take(addr string) *poolConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[addr]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[addr] = list[:len(list)-1]
	return c
}

// Sweep closes the connections that were silent for long, or all at the zero time.
func (p *Pool) Sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, list := range p.idle {
		n := 0
		for n < len(list) && (now.IsZero() || now.Sub(list[n].used) > poolIdle) {
			_ = list[n].Close() // nobody uses it
			n++
		}
		if p.idle[addr] = list[n:]; n == len(list) {
			delete(p.idle, addr)
		}
	}
}

// poolConn is one connection. It belongs to whoever posts.
type poolConn struct {
	*net.TCPConn
	pool *Pool
	addr string
	in   *bufio.Reader
	out  []byte
	room int         // how much may still come before the headers have ended; -1 after that
	stop func() bool // takes back what happens when the context ends
	used time.Time
}

// Read reads from the connection, and no more than what a head may be before it has ended.
func (c *poolConn) Read(b []byte) (int, error) {
	switch {
	case c.room == 0:
		return 0, fmt.Errorf("the upstream's headers are larger than %d bytes", maxHead)
	case c.room > 0:
		b = b[:min(len(b), c.room)]
	}
	n, err := c.TCPConn.Read(b)
	if c.room > 0 {
		c.room -= n
	}
	return n, err
}

// exchange writes a request and reads the head of its answer.
func (c *poolConn) exchange(to place, header http.Header, body []byte) (*http.Response, error) {
	head, err := appendHead(c.out[:0], to, header, len(body))
	if err != nil {
		return nil, err
	}
	c.out = head
	if _, err := (&net.Buffers{head, body}).WriteTo(c.TCPConn); err != nil {
		return nil, err
	}
	for {
		c.room = maxHead
		resp, err := http.ReadResponse(c.in, nil)
		c.room = -1
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return nil, errors.New("the upstream closed the connection before it answered")
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the upstream wants to speak another protocol")
		case resp.StatusCode >= http.StatusOK:
			return resp, nil
		}
	}
}

// framing are the headers that say where a message begins and ends, and are the connection's own.
var framing = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Connection": true, "User-Agent": true}

// appendHead writes the head of a request. What would end a header early is refused.
func appendHead(b []byte, to place, header http.Header, size int) ([]byte, error) {
	b = append(append(append(b, "POST "...), to.target...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, to.host...), "\r\nContent-Length: "...)
	b = append(strconv.AppendInt(b, int64(size), 10), "\r\nUser-Agent: gatehouse\r\n"...)
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%q is no name of a header", name)
		}
		if framing[http.CanonicalHeaderKey(name)] {
			continue
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, fmt.Errorf("the header %s has a value that no header can have", name)
			}
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(b, "\r\n"...), nil
}

// end gives the connection back, or closes it.
func (c *poolConn) end(keep bool) {
	if !c.stop() || !keep || c.in.Buffered() > 0 || !c.pool.put(c) {
		_ = c.Close() // it is of no more use
	}
}

func (p *Pool) put(c *poolConn) bool {
	c.used = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[c.addr]) >= poolSize {
		return false
	}
	p.idle[c.addr] = append(p.idle[c.addr], c)
	return true
}

// poolBody is the body of an answer. A connection whose answer was read to its end is used again.
type poolBody struct {
	io.ReadCloser
	conn       *poolConn
	over, keep bool
}

// Read reads on.
func (b *poolBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.over = true
	}
	return n, err
}

// Close gives the connection back.
func (b *poolBody) Close() error {
	if c := b.conn; c != nil {
		b.conn = nil
		c.end(b.over && b.keep)
	}
	return nil
}
