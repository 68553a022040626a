package call

import "fmt"

// Kind says where the base level of a call comes from. The zero value is no
// kind, and a call without a kind is refused.
type Kind uint8

const (
	// Native calls are operations of the gate itself: elements, memories,
	// agents, the gatekeeper.
	Native Kind = iota + 1
	// External calls reach the world: a host's tool, an upstream MCP tool, a
	// declared tool, a confined process.
	External
	// Dispatch calls hand a whole request to an agent CLI.
	Dispatch
)

var kindNames = [...]string{Native: "native", External: "external", Dispatch: "dispatch"}

// Valid reports whether k is one of the three kinds.
func (k Kind) Valid() bool { return k >= Native && k <= Dispatch }

// String returns the kind's name, "invalid" for none.
func (k Kind) String() string {
	if !k.Valid() {
		return "invalid"
	}
	return kindNames[k]
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the exact name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = 0
	for i, name := range kindNames {
		if name != "" && string(text) == name {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a kind of call: use native, external or dispatch", text)
}

// Endpoint is the semantic class of a native operation.
type Endpoint uint8

const (
	// Create adds something that was not there.
	Create Endpoint = iota + 1
	// Read changes nothing.
	Read
	// Update changes what is there.
	Update
	// Delete removes.
	Delete
	// Execute runs something.
	Execute
)

var endpointNames = [...]string{Create: "CREATE", Read: "READ", Update: "UPDATE", Delete: "DELETE", Execute: "EXECUTE"}

// Endpoints lists all endpoints.
func Endpoints() []Endpoint { return []Endpoint{Create, Read, Update, Delete, Execute} }

// Valid reports whether e is one of the five endpoints.
func (e Endpoint) Valid() bool { return e >= Create && e <= Execute }

// Base returns the level of an operation on e that has no override.
func (e Endpoint) Base() Level {
	switch e {
	case Read:
		return AutoApprove
	case Create:
		return ConfirmSession
	case Update, Delete, Execute:
		return ConfirmSingleUse
	}
	return Deny
}

// String returns the endpoint's name, "" for none.
func (e Endpoint) String() string {
	if !e.Valid() {
		return ""
	}
	return endpointNames[e]
}

// MarshalText writes the endpoint's name.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the exact name of an endpoint; the empty text is none.
func (e *Endpoint) UnmarshalText(text []byte) error {
	*e = 0
	if len(text) == 0 {
		return nil
	}
	for i, name := range endpointNames {
		if string(text) == name {
			*e = Endpoint(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not an endpoint: use one of CREATE, READ, UPDATE, DELETE, EXECUTE", text)
}
