// Package client talks to the daemon.
//
// A [Client] speaks the HTTP API over the daemon's unix socket. It carries a
// credential or a token if it was given one, and nothing else: it opens
// neither the store nor a key, because it may have been started by an agent.
//
// Errors of the daemon come back as [api.Error] with what to do about them;
// [ErrNoDaemon] says that nobody answers.
//
// Start reading at [Client.Do].
package client
