package hook

import (
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// openCall is a call that was let through and whose end was not told yet.
type openCall struct {
	// id is the gate's name of the call.
	id string
	// input is what the host was told to run.
	input jsontext.Value
	// changed says that this is not what the host asked about.
	changed bool

	principal call.Principal
	host      string // the host's id of the use, "" if it has none
	tool      string
}

// ranAs begins the detail of an outcome that says under which name a call ran.
const ranAs = "ran as "

// ranAs says by which name a transcript may know a call that was changed, where
// the host has no ids: it tells of what ran.
func (o *openCall) ranAs(e *event) string {
	if !o.changed || e.id != "" {
		return ""
	}
	return ranAs + e.use()
}

// RanAs returns the name under which a call ran, by the detail of its outcome.
func RanAs(detail string) (use string, ok bool) { return strings.CutPrefix(detail, ranAs) }

// maxOpen bounds what is remembered. The oldest go first: their end is then
// not recorded, and stays unknown.
const maxOpen = 4096

// openCalls remembers what was let through, oldest first.
type openCalls struct {
	mu   sync.Mutex
	list []openCall
}

func (o *openCalls) add(p call.Principal, e *event, c openCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) >= maxOpen {
		o.list = slices.Delete(o.list, 0, maxOpen/4)
	}
	c.principal, c.host, c.tool = p, e.id, e.tool
	o.list = append(o.list, c)
}

// find looks for the call that an event of this session is about: by the
// host's id where both have one, else by what it does.
func (o *openCalls) find(p call.Principal, e *event) int {
	return slices.IndexFunc(o.list, func(c openCall) bool {
		if c.principal != p || c.tool != e.tool {
			return false
		}
		if c.host != "" && e.id != "" {
			return c.host == e.id
		}
		return string(c.input) == string(e.input)
	})
}

// take removes and returns the call that an event is about.
func (o *openCalls) take(p call.Principal, e *event) (openCall, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.find(p, e)
	if i < 0 {
		return openCall{}, false
	}
	c := o.list[i]
	o.list = slices.Delete(o.list, i, i+1)
	return c, true
}

// has says whether a call was let through, or left to the host to ask about.
func (o *openCalls) has(p call.Principal, e *event) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.find(p, e) >= 0
}

// drop removes and returns all calls of a session.
func (o *openCalls) drop(session string) (dropped []openCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = slices.DeleteFunc(o.list, func(c openCall) bool {
		if c.principal.Session == session {
			dropped = append(dropped, c)
			return true
		}
		return false
	})
	return dropped
}
