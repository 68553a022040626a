// Package console is the web pages where a person sees what agents do and
// answers what waits.
//
// The pages are rendered on the server and kept up to date over one stream of
// server-sent events per tab. They hold no state and decide nothing: every
// act goes to a [Desk], which checks it and records it. GET changes nothing.
//
// What a person is shown decides what may run, so the page that asks shows
// every byte of a call, invisible characters as marked escapes; what is too
// long to show whole cannot be approved. An answer carries the digest that was
// on screen and, signed, when it came on screen: what was there for under a
// second cannot be approved. A live update adds below or marks in place; it
// never moves what has focus.
//
// The pages stand on the same machine as agents that can open ports of their
// own. Browsers send cookies to every port of a host, so a cookie alone shows
// pages but acts on nothing: an act also carries a proof that only pages of
// this origin can read (see token.go). Foreign hosts, origins and fetches
// are refused before any page runs (guard.go).
//
// The package never shows a credential, an agent's token or a code, and makes
// no request to anywhere.
//
// Start reading at console.go, then request.go for the page that matters
// most, answer.go for what happens to an answer, and events.go for the stream.
package console
