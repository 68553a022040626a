package mcp

import (
	"bufio"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// placedServer is a server that an agent's host started and handed to the gate
// over a connection. It runs with the rights of whoever started it; the gate
// starts nothing.
type placedServer struct {
	conn   *link.Pipe
	origin string
}

// ServeUpgrade is the protocol of a connection that brings a server.
const ServeUpgrade = "gatehouse-mcp"

// serveInPlace takes over a connection as the server with a name, for the
// agent that opened it and nobody else.
func (f *Front) serveInPlace(w http.ResponseWriter, r *http.Request, name string) {
	who, err := f.opts.Caller(r, "")
	if err != nil {
		f.refuseCaller(w, err)
		return
	}
	if err := upstream.CheckName(name); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	list, err := f.opts.Upstreams.List(r.Context())
	if err != nil {
		http.Error(w, "the upstreams cannot be read", http.StatusInternalServerError)
		return
	}
	for _, e := range list {
		if e.Name == name {
			http.Error(w, "the upstream "+name+" is an approver's entry: use `gatehouse mcp --upstream "+name+"` without a command", http.StatusConflict)
			return
		}
	}
	var command []string
	if json.Unmarshal([]byte(r.Header.Get("Gatehouse-Command")), &command) != nil || len(command) == 0 || r.Header.Get("Upgrade") != ServeUpgrade {
		http.Error(w, "this is for `gatehouse mcp --upstream NAME -- COMMAND`", http.StatusBadRequest)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+ServeUpgrade+"\r\n\r\n"); err != nil {
		conn.Close()
		return
	}
	origin, err := json.Marshal(command)
	if err != nil {
		conn.Close()
		return
	}
	p := &placedServer{origin: string(origin), conn: link.NewPipe(link.NewLines(&hijacked{conn, buf.Reader}), true)}
	key := sharedKey{who.Principal, name}
	f.mu.Lock()
	old := f.placed[key]
	f.placed[key] = p
	delete(f.shared, key)
	f.mu.Unlock()
	if old != nil {
		_ = old.conn.Close() // the same agent brought another in its place
	}
	<-p.conn.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.placed[key] == p {
		delete(f.placed, key)
		delete(f.shared, key)
	}
}

// hijacked is a connection some of whose bytes were read already.
type hijacked struct {
	io.ReadWriteCloser
	in *bufio.Reader
}

// Read reads what was read already first.
func (h *hijacked) Read(p []byte) (int, error) { return h.in.Read(p) }
