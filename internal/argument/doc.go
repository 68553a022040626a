// Package argument holds the arguments of a call against what its tool
// declares. It is the first of two layers: it stops a call before it runs,
// whatever the tool is made of; the sandbox stops what the tool does besides.
//
// What an argument means comes from its role. A path that is read is held
// against the read globs, one that is written against the write globs, a URL
// against the hosts, a variable against the variables, a command against the
// programs. A string without a role is looked at only if it is an absolute
// path, starts with "~/" or is a file URL; then it must lie within what is read
// or written. Values nested in objects and arrays are looked at like others.
//
// The gate engages by declaration: a side on which the tool takes no stance is
// not checked, and a tool without any is not checked at all. "None" means none.
// What cannot be read (a NUL byte, a path of another user's home, a host that
// programs read differently) is a violation, never a pass.
//
// The package does no I/O: symbolic links are followed through a Linker that
// the caller supplies, one question per component of a path. It decides
// nothing: it says what goes beyond the declaration. Start at gate.go.
package argument
