package store

import (
	"context"
	"slices"
	"sync"
)

// noticeBuffer is how many notices wait for a slow subscriber before the next ones are dropped.
const noticeBuffer = 64

// Notice wakes subscribers of a topic after a commit.
type Notice struct {
	Topic   string
	Payload string
}

// Notify wakes the subscribers of topic once tx is committed, on every node. It is a wake-up, not a message: a
// subscriber that is slow or briefly disconnected misses some, so what counts must be in a table. On PostgreSQL a
// payload over 7 KiB arrives empty.
func Notify(tx *Tx, topic, payload string) {
	tx.notices = append(tx.notices, Notice{Topic: topic, Payload: payload})
}

// Subscribe returns a channel that gets the notices of topic until ctx or the store ends, which closes it. Read the
// state you wait for after subscribing, and again on every notice, whatever its payload: a full channel drops, and
// after a lost connection to PostgreSQL one notice with an empty payload says that others may be missing.
func (s *Store) Subscribe(ctx context.Context, topic string) <-chan Notice {
	return s.hub.subscribe(ctx, topic)
}

// hub delivers notices inside the process. It never blocks.
type hub struct {
	mu     sync.Mutex
	topics map[string][]chan Notice
	closed bool
}

func newHub() *hub { return &hub{topics: make(map[string][]chan Notice)} }

func (h *hub) subscribe(ctx context.Context, topic string) <-chan Notice {
	ch := make(chan Notice, noticeBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(ch)
		return ch
	}
	h.topics[topic] = append(h.topics[topic], ch)
	context.AfterFunc(ctx, func() { h.unsubscribe(topic, ch) })
	return ch
}

func (h *hub) unsubscribe(topic string, ch chan Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.topics[topic], ch)
	if i < 0 {
		return // the hub was closed first
	}
	h.topics[topic] = slices.Delete(h.topics[topic], i, i+1)
	if len(h.topics[topic]) == 0 {
		delete(h.topics, topic)
	}
	close(ch)
}

func (h *hub) deliver(notices []Notice) {
	if len(notices) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range notices {
		for _, ch := range h.topics[n.Topic] {
			select {
			case ch <- n:
			default: // full: what waits there makes the subscriber read again anyway
			}
		}
	}
}

// wakeAll tells every subscriber that notices may have been missed.
func (h *hub) wakeAll() {
	h.mu.Lock()
	notices := make([]Notice, 0, len(h.topics))
	for topic := range h.topics {
		notices = append(notices, Notice{Topic: topic})
	}
	h.mu.Unlock()
	h.deliver(notices)
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, chans := range h.topics {
		for _, ch := range chans {
			close(ch)
		}
	}
	clear(h.topics)
}

// unique drops repeated notices and keeps the order of the rest: functions of one group often say the same.
func unique(notices []Notice) []Notice {
	seen := make(map[Notice]bool, len(notices))
	return slices.DeleteFunc(notices, func(n Notice) bool {
		again := seen[n]
		seen[n] = true
		return again
	})
}
