// Package forward takes an agent's hook event to the gate's unix socket and
// brings the answer back.
//
// The event goes out as it came in; standard output, standard error and the
// exit code are what the gate says they are. Whatever else happens is a block,
// which every agent understands: exit code 2 with the reason on standard
// error, and for the one that reads it there on standard output. That holds for a gate that is away, an answer that is cut off, input
// that is too large, an unknown flag, and for a deadline that lies well inside
// the host's own.
//
// Where the gate is comes from the command line that `gatehouse connect` wrote
// into the agent's settings, never from the environment, which a repository may
// have set. The socket's directory must belong to the gate's user, and so must
// the process that listens there: a squatted socket is refused.
//
// The package is paid for on every tool call, so it links next to nothing: no
// net, no net/http, no JSON, no package of this module. It speaks just enough
// HTTP/1.0 to post one body and read one answer.
//
// Start reading at [Main].
package forward
