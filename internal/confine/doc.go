// Package confine turns what somebody declared about a process into what the
// sandbox holds it to.
//
// An Access says which files a process reads and writes, which hosts it
// reaches, which variables it sees and whether it starts programs; each part
// was said or left out. Spec makes a sandbox.Spec of it: what was left out
// becomes the sandbox's tightest default, and what cannot be held exactly is an
// error, never something wider. FromTool takes an Access from what a tool says
// about itself, FromPolicy from a session policy: what the profile approves by itself is let through, what it asks about
// is asked about where that is possible live (hosts) and else refused.
//
// It is pure: it reads no file and starts nothing. Start reading at Access.Spec.
package confine
