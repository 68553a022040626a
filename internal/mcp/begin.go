package mcp

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// initialize begins a session of the older wire. It is a session of the gate
// too, so that what is granted "for the session" ends with it.
func (x *exchange) initialize(ctx context.Context) {
	m := x.message
	id := m.Value(m.ID)
	if x.session != nil {
		x.out.fail(http.StatusBadRequest, id, codeInvalid, "the session has begun already")
		return
	}
	who := x.who
	if !who.Bound {
		var err error
		if who, err = x.front.opts.Caller(x.request, NewSession); err != nil {
			x.out.fail(http.StatusOK, id, codeRefused, err.Error())
			return
		}
	}
	s, err := x.front.newSession(who, x.only, m)
	if err != nil {
		x.out.fail(http.StatusOK, id, codeRefused, err.Error())
		return
	}
	x.who, x.session = who, s
	data, ok := x.introduce(ctx)
	if !ok {
		x.front.drop(s)
	} else {
		x.out.w.Header().Set("Mcp-Session-Id", s.id)
	}
	x.out.Head(http.StatusOK, false)
	_ = x.out.Event(wire.Event{Data: data}) // a client that is gone begins again
}

// introduce passes the client's handshake on and returns the answer.
func (x *exchange) introduce(ctx context.Context) (data []byte, ok bool) {
	m := x.message
	if x.only == "" {
		return x.introduceAll(ctx)
	}
	t, err := x.front.target(ctx, x.who.Principal, x.only)
	if err == nil {
		var r *wire.Message
		if r, err = x.capture(ctx, t, m); err == nil {
			return x.pinInstructions(ctx, t, r), !r.Result.IsZero()
		}
	}
	return errorMessage(m.Value(m.ID), codeInternal, err.Error(), nil), false
}

// capture sends a request to an upstream and returns its response.
func (x *exchange) capture(ctx context.Context, t *target, m *wire.Message) (*wire.Message, error) {
	l, err := x.live(ctx, t)
	if err != nil {
		return nil, err
	}
	if t.own {
		ctx = x.as(ctx)
	}
	got := &capture{}
	if err := l.conn.Send(ctx, m, x.forward(m), got); err != nil {
		return nil, err
	}
	if got.response == nil {
		return nil, errNoAnswer
	}
	return got.response, nil
}

// listen passes on what the session's upstreams say by themselves.
func (s *session) listen(ctx context.Context, x *exchange, last string) error {
	if s.only == "" {
		return x.listenAll(ctx)
	}
	t, err := x.front.target(ctx, s.who.Principal, s.only)
	if err != nil {
		return err
	}
	l, err := x.live(ctx, t)
	if err != nil {
		return err
	}
	return l.conn.Listen(ctx, last, &filter{out: opened{x.out}, target: t, live: l, way: x.outputWay(t)})
}

// opened begins a stream as soon as the upstream's has begun.
type opened struct{ *httpOut }

// Head begins the stream.
func (o opened) Head(status int, stream bool) {
	o.httpOut.Head(status, stream)
	o.open()
}

var _ link.Out = opened{}
