// Package provider knows the agent CLIs: how each is started for a request, and
// how what it prints is read. A provider is a file here, and nothing elsewhere
// knows a flag of a CLI.
//
// [Prepare] turns a request into a [Launch]: arguments, environment, files that
// isolate its configuration, the channel on which its tool calls are decided,
// and a parser. Every field of a request is either used, or refused with the
// reason, or, where the gate is stricter than the field, noted as a warning. The
// prompt goes in by standard input or a private file, never on a command line,
// where every process of the machine could read it.
//
// In gated launches, the default, no flag lets the CLI decide for itself: what
// it wants to do is asked about, one call at a time. Classic launches carry the
// permissive flags of the public skill, and are the operator's choice.
//
// The environment of a CLI is a list of what it needs, taken from the gate's
// own. Its home is a folder of the gate's, so that neither the user's settings
// nor a repository's decide what it asks about.
//
// The package starts nothing and touches no file but those that a CLI left in
// its home. Start reading at [Prepare]; then claude.go.
package provider
