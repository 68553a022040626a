// Package link holds conversations with upstream MCP servers.
//
// A [Conn] takes messages as bytes and hands back what the upstream says, as
// bytes, in order. There are two kinds. [HTTP] speaks Streamable HTTP: every
// message is a request of its own and its answer or stream comes back on it,
// over a connection of a [Pool] where that is plain HTTP.
// [Pipe] speaks over one stream in each direction: the standard input and
// output of a process ([StartProcess]), the older HTTP with server-sent events
// ([DialSSE]), or a connection that somebody else opened ([NewPipe]). What comes
// up the pipe is given to the request it belongs to.
//
// [Keeper] starts a conversation again after it broke, with growing pauses, and
// repeats the handshake, so that a crash of one upstream is its own affair.
//
// The package decides nothing and filters nothing; that is for the front.
// Start reading at [Conn].
package link
