// Package policy turns policy files into an immutable [Snapshot] and decides
// calls with it.
//
// [Snapshot.Decide] is the whole decision: every stage votes, the votes are
// joined, the strictest counts. It takes no context and returns no error;
// whatever can go wrong is a vote with a reason. It neither reads a clock nor
// touches a file, and with a caller's buffer it allocates nothing on the way
// to AUTO_APPROVE.
//
// Files are read strictly ([Parse]): an unknown key, operation or capability
// is an error with file, line and the nearest right name. Layers (machine,
// user, project, session) are merged by [Compile]: a lower layer tightens
// freely and loosens only what the one above marked adjustable. [Loosens]
// compares two snapshots; what it cannot decide counts as loosening. The
// built-in profiles are files of the same schema, in the folder policies.
//
// A pattern is asked in two ways (pattern.go): exactly when it allows, loosely
// when it objects. A call that does not say what exactly it touches is covered
// by nothing and may be met by everything.
//
// The package never asks anyone, never stores anything and never runs
// anything. Start reading at [Snapshot.Decide] in decide.go.
package policy
