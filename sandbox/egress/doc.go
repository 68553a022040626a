// Package egress is the only way out of a sandbox's network: a proxy that
// speaks HTTP CONNECT, plain HTTP and SOCKS5 on one port and lets through
// declared hosts.
//
// The listener is made inside the sandbox's own network namespace and passed
// out as a descriptor, so the confined process has nothing to connect to but
// this proxy, and the proxy has no address on the host.
//
// A name is judged before it is looked up, so that a refused name never
// becomes a query that carries data out. It is resolved once; addresses that
// are private, loopback, link-local, multicast or a cloud's metadata service
// are refused unless they were declared; the address that was checked is the
// one that is dialled. Names must agree: the Host header with the target, the
// server name in a TLS greeting with the CONNECT name. Deny wins, and the
// gate's own addresses are refused even if declared.
//
// What it never does: look inside TLS, retry with another address after a
// refusal, or ask a person more than three times per run.
//
// Start reading at Proxy.decide in proxy.go; rules.go is the pattern language.
package egress
