package admin

import "sync"

// Changes wakes up those who wait for something to change. Whoever waits asks
// for the channel first and then reads, so that no change is missed.
type Changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// NewChanges makes one.
func NewChanges() *Changes { return &Changes{next: make(chan struct{})} }

// Wait returns a channel that is closed at the next change.
func (c *Changes) Wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// Tell wakes up everyone who waits.
func (c *Changes) Tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}
