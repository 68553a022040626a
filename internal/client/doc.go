// Package client talks to the daemon.
//
// A [Client] speaks the HTTP API over the daemon's unix socket, or over TCP
// where an address is given. It carries a credential or a token if it was
// given one, and nothing else: it opens neither the store nor a key, because
// it may have been started by an agent.
package client
