// Package manifest is the permission manifest: the reviewable view of what
// every agent and tool of a program may touch, and the comparison of two of
// them.
//
// A manifest holds agents, tools with their policies, constraints and schemas,
// grants, approvals, redaction, budgets, providers without their keys, MCP
// servers with the definitions that were pinned, the enforcement switch and
// the vet checker's waivers. Its canonical form (RFC 8785) is hashed with
// SHA-256; the hash stands in the file, is checked when the file is read, and
// may be signed with Ed25519.
//
// [Verify] holds a manifest against a baseline that was reviewed before. It
// compares meanings, not spellings: "/srv/a/**" where "/srv/**" was is a
// narrowing and passes. Whatever cannot be compared counts as wider, a stance
// that was taken back counts as wider than any stance, and an unknown risk is
// higher than a critical one.
//
// The package reads no file and no clock. It never decides about a call: the
// hash goes on the records of the log, so that each says under which
// declarations it was made. Start reading at manifest.go, then verify.go.
package manifest
