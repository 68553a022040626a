// Package wire reads MCP messages without changing them.
//
// A gateway that decodes a message into types and encodes it again loses what
// the types do not know, rounds large numbers and signs a hash of its own
// making. Here a message stays the bytes it came in. [Parse] reads it once,
// strictly: one JSON object, names compared with their case, no name twice, no
// trailing data, no batch. What it notes are spans of the original bytes, and
// [Splice] replaces such spans where something must differ; all other bytes
// stay as they are.
//
// [Reader] and [Event] do the same for server-sent events, and [ParseList] for
// the answers to list requests, whose items are kept or left out whole.
//
// The package is pure. Start reading at [Parse].
package wire
