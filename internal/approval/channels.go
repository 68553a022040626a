package approval

import (
	"sync"
	"time"
)

// Presence is a way in which a person is looking.
type Presence string

// The ways of looking.
const (
	// ConsoleOpen is a console page that is connected for live updates.
	ConsoleOpen Presence = "console"
	// WatchRunning is a terminal that watches for requests.
	WatchRunning Presence = "watch"
)

// Channels knows whether a person can be reached: a call waits for an answer
// only where one can. It is safe for concurrent use.
type Channels struct {
	// Linger is how long someone who left still counts as looking: a browser
	// that goes from one page to the next is gone for a moment. Set it before
	// use.
	Linger time.Duration

	mu        sync.Mutex
	open      map[Presence]int
	left      time.Time            // when someone left last
	delivered map[string]time.Time // request → when it is over
}

// NewChannels makes an empty registry.
func NewChannels() *Channels {
	return &Channels{open: make(map[Presence]int), delivered: make(map[string]time.Time)}
}

// Join notes that someone looks, until leave is called.
func (c *Channels) Join(p Presence) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[p]++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[p]--
		c.left = time.Now()
	})
}

// Delivered notes that a notice of a request reached its channel.
func (c *Channels) Delivered(request string, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(time.Now())
	c.delivered[request] = expires
}

// prune forgets notices of requests that are over.
func (c *Channels) prune(now time.Time) {
	for id, expires := range c.delivered {
		if now.After(expires) {
			delete(c.delivered, id)
		}
	}
}

// Live says whether any channel is live: someone looks, or a notice of a
// request that still waits was delivered.
func (c *Channels) Live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(time.Now())
	return c.looking() || len(c.delivered) > 0
}

// LiveFor says whether a person can know of one request: someone looks, or its
// own notice was delivered.
func (c *Channels) LiveFor(request string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	expires, ok := c.delivered[request]
	return c.looking() || (ok && time.Now().Before(expires))
}

func (c *Channels) looking() bool {
	return c.open[ConsoleOpen] > 0 || c.open[WatchRunning] > 0 || !c.left.IsZero() && time.Since(c.left) < c.Linger
}

// Open says how many look, in which way.
func (c *Channels) Open(p Presence) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[p]
}
