package link_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// TestMain plays an upstream when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "play-upstream" {
		play()
		return
	}
	goleak.VerifyTestMain(m)
}

// play answers each line: with its own text, with progress first, or by dying.
func play() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := wire.ReadLine(in)
		if err != nil {
			return
		}
		m, err := wire.Parse(line)
		if err != nil || m.Kind() != wire.Request {
			continue
		}
		switch m.Method {
		case "die":
			os.Exit(3)
		case "progress":
			for i := range 3 {
				fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", m.Value(m.Meta("progressToken")), i)
			}
		case "noise":
			fmt.Println("this is not a message")
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"pid":%d,"got":%s}}`+"\n", m.Value(m.ID), os.Getpid(), line)
	}
}

// heard keeps what it is told.
type heard struct {
	mu     sync.Mutex
	events []string
}

func (h *heard) Head(int, bool) {}

func (h *heard) Event(e wire.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, string(e.Data))
	return nil
}

func message(t *testing.T, raw string) *wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func upstream(t *testing.T, shared bool) *link.Keeper {
	t.Helper()
	k := link.NewKeeper(func() (link.Conn, error) {
		s, err := link.StartProcess(link.Process{Command: []string{os.Args[0], "play-upstream"}})
		if err != nil {
			return nil, err
		}
		return link.NewPipe(s, shared), nil
	})
	t.Cleanup(func() { k.Close() })
	return k
}

// TestProcess: bytes go in and come out, numbers untouched, noise unheard,
// progress before the response and in order.
func TestProcess(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		k := upstream(t, shared)
		out := &heard{}
		m := message(t, `{"jsonrpc":"2.0","id":9007199254740993,"method":"progress","params":{"_meta":{"progressToken":1.50},"n":1.0}}`)
		if err := k.Send(t.Context(), m, nil, out); err != nil {
			t.Fatal(err)
		}
		for i, e := range out.events[:3] {
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.50,"progress":%d}}`, i); e != want {
				t.Errorf("shared %v: event %d is %s", shared, i, e)
			}
		}
		last := out.events[len(out.events)-1]
		if !strings.HasPrefix(last, `{"jsonrpc":"2.0","id":9007199254740993,`) || !strings.Contains(last, `"n":1.0`) {
			t.Errorf("shared %v: %s", shared, last)
		}
		out = &heard{}
		if err := k.Send(t.Context(), message(t, `{"jsonrpc":"2.0","id":"n","method":"noise"}`), nil, out); err != nil || len(out.events) != 1 {
			t.Errorf("shared %v: noise is heard: %q, %v", shared, out.events, err)
		}
	}
}

// TestShared: two clients that choose the same id get each their own answer.
func TestShared(t *testing.T) {
	t.Parallel()
	k := upstream(t, true)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			out := &heard{}
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"progress","params":{"_meta":{"progressToken":"t"},"who":"client-%d."}}`, i)
			if err := k.Send(context.Background(), message(t, raw), nil, out); err != nil {
				t.Error(err)
				return
			}
			if len(out.events) != 4 || !strings.Contains(out.events[3], fmt.Sprintf("client-%d.", i)) || !strings.HasPrefix(out.events[3], `{"jsonrpc":"2.0","id":1,`) {
				t.Errorf("client %d hears %q", i, out.events)
			}
		})
	}
	all.Wait()
}

// TestRestart: a server that dies fails its own request, is started again, and
// gets the client's handshake again.
func TestRestart(t *testing.T) {
	t.Parallel()
	k := upstream(t, false)
	out := &heard{}
	for _, raw := range []string{`{"jsonrpc":"2.0","id":0,"method":"initialize"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"echo"}`} {
		if err := k.Send(t.Context(), message(t, raw), nil, out); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Send(t.Context(), message(t, `{"jsonrpc":"2.0","id":2,"method":"die"}`), nil, out); !errors.Is(err, link.ErrGone) {
		t.Fatalf("the request that killed it: %v", err)
	}
	again := &heard{}
	if err := k.Send(t.Context(), message(t, `{"jsonrpc":"2.0","id":3,"method":"echo"}`), nil, again); err != nil {
		t.Fatalf("after the first death it is started at once: %v", err)
	}
	if slices.Contains(out.events, again.events[0]) {
		t.Error("the same process answered")
	}
	if err := k.Send(t.Context(), message(t, `{"jsonrpc":"2.0","id":4,"method":"die"}`), nil, out); !errors.Is(err, link.ErrGone) {
		t.Fatal(err)
	}
	if err := k.Send(t.Context(), message(t, `{"jsonrpc":"2.0","id":5,"method":"echo"}`), nil, out); err == nil {
		t.Error("after the second death there is no pause")
	}
}

// recorder is a stream that notes what is written and says nothing.
type recorder struct {
	mu      sync.Mutex
	written []string
	closed  chan struct{}
	once    sync.Once
}

func (r *recorder) Read() ([]byte, error) {
	<-r.closed
	return nil, net.ErrClosed
}

func (r *recorder) Write(_ context.Context, m []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, string(m))
	return nil
}

func (r *recorder) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// TestDisconnect: when whoever asked goes away the upstream is told, with the
// id that it knows.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	r := &recorder{closed: make(chan struct{})}
	p := link.NewPipe(r, true)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		sent <- p.Send(ctx, message(t, `{"jsonrpc":"2.0","id":"mine","method":"slow"}`), http.Header{}, &heard{})
	}()
	for {
		r.mu.Lock()
		n := len(r.written)
		r.mu.Unlock()
		if n > 0 {
			break
		}
	}
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(r.written) != 2 || r.written[0] != `{"jsonrpc":"2.0","id":1,"method":"slow"}` || !strings.Contains(r.written[1], `"method":"notifications/cancelled","params":{"requestId":1,`) {
		t.Errorf("the upstream hears %q", r.written)
	}
}
