package call

import (
	"crypto/sha256"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Run is the arguments of an [OpRun] call: a command and what holds it. What is
// not listed it cannot reach, unless it is unconfined.
type Run struct {
	Command []string `json:"command"`
	// Read and Write are real paths; DIR/** is a tree.
	Read  []string `json:"read,omitzero"`
	Write []string `json:"write,omitzero"`
	// Hosts it may reach; Public is every public one.
	Hosts  []string `json:"hosts,omitzero"`
	Public bool     `json:"public,omitzero"`
	// Ask says that other hosts are asked about when it wants them.
	Ask bool `json:"ask,omitzero"`
	// Unconfined says that nothing holds it.
	Unconfined bool `json:"unconfined,omitzero"`
}

// ParseRun reads the arguments of a run. Unknown members are refused: what they
// ask for would not be held.
func ParseRun(args jsontext.Value) (*Run, error) {
	r := &Run{}
	if err := json.Unmarshal(args, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, &InvalidError{Field: "args", Problem: "are not those of a run: " + err.Error()}
	}
	if len(r.Command) == 0 || r.Command[0] == "" {
		return nil, &InvalidError{Field: "args", Problem: "name no command"}
	}
	return r, nil
}

// confining are what a sandbox must have shown before a run counts as
// confined; in place of no-network it may hold the hosts.
var confining = []string{"write-roots", "read-roots", "metadata", "unix-sockets", "processes", "ipc", "privileges", "syscalls", "environment", "descriptors", "tree-dead"}

// Achieved names the guarantees that a sandbox's own list amounts to.
func Achieved(shown []string) []Guarantee {
	for _, name := range confining {
		if !slices.Contains(shown, name) {
			return nil
		}
	}
	if !slices.Contains(shown, "no-network") && !slices.Contains(shown, "host-names") {
		return nil
	}
	return []Guarantee{{Name: "confined"}}
}

// Effect hashes what is done, whoever asks for it, so that what starts can be
// held against what was let through. Call it on a normalised call.
func (c *Call) Effect() Digest {
	h := sha256.New()
	write(h, "gatehouse/effect/1")
	write(h, c.Kind.String())
	write(h, c.Operation)
	write(h, string(c.Args))
	write(h, c.Dir)
	var d Digest
	h.Sum(d[:0])
	return d
}
