// Package api is the gate's HTTP interface, over TCP on the loopback and over
// a unix socket.
//
// It has two halves that share no credential. The agent half submits calls,
// reports outcomes and follows the caller's own requests; it takes an agent's
// token, or on the unix socket the identity of the peer process. The approver
// half answers requests and changes state; it takes an approver's credential
// and nothing else. A token of one half is refused by the other.
//
// Routes are data ([Server.routes] in routes.go): method, path, half, the Go
// types that go in and out, and what serves it. The OpenAPI document is
// generated from the same table, so that it cannot say anything else.
//
// The package decides nothing and stores nothing: calls go to package gate,
// acts of people to package admin. Input is parsed strictly (unknown fields,
// duplicate names and trailing data are refused), and only the public half of
// an error leaves the process.
package api
